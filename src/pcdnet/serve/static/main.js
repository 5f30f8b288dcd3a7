// The page: brings model, strip, bench, kinds, corrections and the rest together.

import { discardAllEdits, getEdits, getModel, render } from "./api.js";
import { Bank, showBank } from "./bank.js";
import { Bench } from "./bench.js";
import { find } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Handles } from "./handles.js";
import { Inside } from "./inside.js";
import { takeFiles } from "./intake.js";
import { Keeping } from "./keeping.js";
import { Keys } from "./keys.js";
import { Kinds } from "./kinds.js";
import { Learning } from "./learning.js";
import { List } from "./list.js";
import { Saving } from "./saving.js";
import { Scene } from "./scene.js";
import { Stage } from "./stage.js";
import { Strip } from "./strip.js";
import { Teaching } from "./teaching.js";
import { attempt, complain, counted, report, sure } from "./words.js";

const SOON = 150; // milliseconds until a picture is opened that keys have come to

// A token in the address has become a cookie by now, and should not stay where it is seen.
if (location.search) history.replaceState(null, "", location.pathname);

const model = await getModel().catch((complaint) => {
  complain(complaint.message);
  throw complaint;
});
const scene = new Scene(new Bank(model));
const stage = new Stage(scene);
const handles = new Handles(scene, stage);
const inside = new Inside(scene, model.min_gain);
const keeping = new Keeping(() => {
  showEdited();
  if (kinds.state?.done) kinds.polling.soon();
});
const strip = new Strip(choose);
const bench = new Bench({ model, scene, stage, inside, strip, keeping });
const teaching = new Teaching(bench, () => {
  drawing.draw(teaching.here);
  for (const card of find("bank").children) card.removed?.(teaching.removed);
});
const drawing = new Drawing(scene, stage, (box, name) => teaching.add(box, name));
const keys = new Keys(bench, drawing);
const list = (keys.list = new List(scene, (event) => keys.onScene(event)));
const kinds = new Kinds(bench, renamed);
const learning = new Learning(bench, compared, renew);
const saving = new Saving(bench);

bench.opened = () => {
  drawing.stop();
  drawing.draw(teaching.here);
};
bench.counting = () => kinds.polling.now();

// ---- pictures

let waiting = null;

function choose(n, soon) {
  clearTimeout(waiting);
  if (soon) waiting = setTimeout(() => bench.open(n), SOON);
  else bench.open(n);
}

takeFiles((file) => bench.openFile(file));

// The pictures that are worth comparing: those with corrections, the one on the bench, and the first.
function compared() {
  const numbers = [...teaching.drawn.map(({ picture }) => picture), bench.number, ...Array(4).keys()];
  return [...new Set(numbers)].filter((n) => n !== null && n < strip.count);
}

// ---- edits

async function showEdited() {
  const found = await attempt(getEdits);
  if (!found) return;
  find("edited").hidden = !found.count;
  find("edited-words").textContent = `${counted(found.count, "picture")} edited`;
}

find("discard-all").addEventListener("click", async () => {
  if (!(await sure("All edits of this folder's pictures would be gone, on this machine too.", "Discard all"))) return;
  keeping.forget();
  const done = await attempt(async () => ((await discardAllEdits()), true));
  if (!done) return;
  bench.discarded();
  strip.refresh();
  kinds.polling.soon();
  await showEdited();
});

find("undo").addEventListener("click", () => scene.undo());
find("redo").addEventListener("click", () => scene.redo());
find("add").addEventListener("click", () => scene.add());
scene.listen(() => {
  find("undo").disabled = !scene.undoable;
  find("redo").disabled = !scene.redoable;
});

// ---- what there is to know

function introduce() {
  const { model } = bench;
  const { bank } = scene;
  document.title = `${model.name} · pcdnet`;
  find("title").textContent = model.name;
  const size = model.size ? `, pictures of ${model.size.join("×")}` : "";
  find("about").textContent = `${bank.P} prototypes, up to ${model.objects} objects a picture${size}`;
  find("version").textContent = `pcdnet ${model.version}`;
  find("bank-words").textContent = model.renaming ? "what the objects look like; click a name to change it" : "what the objects look like";
  showBank(bank, find("bank"), {
    renaming: model.renaming,
    report,
    renamed: () => {
      renamed();
      kinds.polling.now();
    },
    remove: (p, gone) => teaching.remove(p, gone),
  });
  find("prototypes").hidden = false;
  find("teaching").hidden = find("draw").hidden = !model.renaming;
}

function renamed() {
  for (const card of find("bank").children) card.renamed?.();
  stage.renamed();
  list.renamed();
  inside.renamed();
}

// Other weights have taken the place of those that were shown.
async function renew() {
  bench.model = await getModel();
  scene.renew(new Bank(bench.model));
  inside.minGain = bench.model.min_gain;
  introduce();
  renamed();
  await bench.reopen();
  for (const guest of bench.guests) if (guest !== bench.guest) guest.explained = null;
  strip.refresh();
  await Promise.all([teaching.refresh(), kinds.polling.now(), showEdited()]);
}

introduce();
// For tests, and for the curious: what the server makes of the scene that is shown.
window.pcdnet = { scene, stage, handles, strip, bench, keeping, kinds, drawing, teaching, learning, render: () => render(scene.toMessage()) };

await attempt(() => strip.open());
if (strip.count) {
  strip.show(0);
  await bench.open(0);
}
await Promise.all([kinds.polling.now(), ...(model.renaming ? [teaching.refresh(), learning.polling.now(), showEdited()] : [])]);
document.documentElement.dataset.ready = "true";
