// The page: brings model, scene, stage, list and the rest together.

import { Complaint, decomposeFile, decomposeSample, exported, getModel, getSamples, render } from "./api.js";
import { Bank, showBank } from "./bank.js";
import { find, make, number } from "./dom.js";
import { Inside } from "./inside.js";
import { List } from "./list.js";
import { Scene } from "./scene.js";
import { Stage } from "./stage.js";

// A token in the address has become a cookie by now, and should not stay where it is seen.
if (location.search) history.replaceState(null, "", location.pathname);

const model = await getModel().catch((complaint) => {
  complain(complaint.message);
  throw complaint;
});
const bank = new Bank(model);
const scene = new Scene(bank);
const stage = new Stage(scene);
const list = new List(scene, keys);
const inside = new Inside(scene, model.min_gain, report);

// ---- words

function complain(sentence, again = null, gentle = false) {
  find("notice-words").textContent = sentence;
  find("notice").hidden = false;
  find("notice").classList.toggle("gentle", gentle);
  const fit = find("notice-fit");
  fit.hidden = again === null;
  if (again) {
    fit.textContent = `Resize it to ${model.size[0]}×${model.size[1]}`;
    fit.onclick = again;
  }
}

function report(sentence, bad = false) {
  if (bad) complain(sentence);
  else find("said").textContent = sentence;
}

const hush = () => (find("notice").hidden = true);
find("notice-close").addEventListener("click", hush);

// ---- pictures in

let asked = 0;

async function open(ask, file = null, fitted = false) {
  const mine = ++asked;
  hush();
  find("bench").setAttribute("aria-busy", "true");
  try {
    const explained = await ask();
    if (mine !== asked) return;
    for (const id of ["bench", "inside", "prototypes"]) find(id).hidden = false;
    find("inside").hidden = Boolean(explained.shrunk);
    for (const each of [find("add"), ...document.querySelectorAll("[data-export]")]) each.disabled = Boolean(explained.shrunk);
    stage.kind = "image";
    scene.open(explained);
    inside.reset();
    const count = scene.objects.length;
    report(`${scene.name || "The picture"}: ${count} ${count === 1 ? "object" : "objects"} found.`);
    if (file && !fitted) hintAtSize(file);
  } catch (complaint) {
    if (!(complaint instanceof Complaint)) throw complaint;
    if (mine === asked) complain(complaint.message, complaint.fit && file ? () => openFile(file, true) : null);
  } finally {
    if (mine === asked) find("bench").removeAttribute("aria-busy");
  }
}

function openFile(file, fit = false) {
  mark(null);
  if (file.size > model.most_bytes) {
    hush();
    complain(`${file.name} has more than ${model.most_bytes >> 20} MiB; choose a smaller picture.`);
    return Promise.resolve();
  }
  return open(() => decomposeFile(file, fit), file, fit);
}

// Any size can be decomposed, but objects of another size than those that were learned are not found.
function hintAtSize(file) {
  if (scene.shrunk > 1) {
    const words = `This picture is ${scene.whole.join("×")}, and shown ${scene.shrunk} times smaller; pcdnet decompose writes what was found in it.`;
    return complain(words, null, true);
  }
  if (!model.size || (scene.size[0] === model.size[0] && scene.size[1] === model.size[1])) return;
  const words = `This picture is ${scene.size.join("×")}; the model learned from ${model.size.join("×")}, and knows objects of that scale.`;
  complain(words, () => openFile(file, true), true);
}

function mark(chosen) {
  for (const other of find("samples").children) other.setAttribute("aria-pressed", String(other === chosen));
}

async function showSamples() {
  const { count, source } = await getSamples();
  for (let n = 0; n < count; n++) {
    const choice = make("button", { type: "button", "aria-label": `Sample ${n}`, "aria-pressed": "false" });
    choice.append(make("img", { src: `/api/samples/${n}`, alt: "", draggable: "false" }));
    choice.addEventListener("click", () => {
      mark(choice);
      open(() => decomposeSample(n));
    });
    find("samples").append(choice);
  }
  if (count) find("samples").title = source;
  find("samples").firstElementChild?.click();
}

find("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  if (file) openFile(file);
  event.target.value = "";
});
document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData?.files ?? [];
  if (file) openFile(file);
});
let depth = 0; // dragenter and dragleave come for every element on the way
for (const [type, step] of [["dragenter", 1], ["dragleave", -1]]) {
  document.addEventListener(type, () => document.body.classList.toggle("dropping", (depth += step) > 0));
}
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  depth = 0;
  document.body.classList.remove("dropping");
  const [file] = event.dataTransfer.files;
  if (file) openFile(file);
});

// ---- keys

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function keys(event) {
  if (event.target.matches("input") || event.altKey || event.ctrlKey || event.metaKey) return;
  const id = scene.selected;
  const n = scene.index(id);
  const step = { ",": -1, ".": 1 }[event.key];
  if (step && scene.objects.length) {
    scene.select(scene.objects[(n + step + scene.objects.length + (n < 0 && step < 0)) % scene.objects.length].id);
    report(`${bank.names[scene.objects[scene.index(scene.selected)].prototype]} selected.`);
  } else if (n < 0) return;
  else if (event.key in MOVES) {
    const [row, column] = scene.objects[n].position;
    const far = event.shiftKey ? 5 : 1;
    if (stage.kind === "image") stage.look("reconstruction");
    scene.place(id, [row + far * MOVES[event.key][0], column + far * MOVES[event.key][1]]);
    report(`Row ${scene.objects[n].position[0]}, column ${scene.objects[n].position[1]}.`);
  } else if (event.key === "Delete" || event.key === "Backspace") {
    scene.remove(id);
    if (document.activeElement === document.body) (scene.selected === null ? find("stage") : list).focus();
    report("Removed.");
  } else if (event.key === "PageUp" || event.key === "PageDown") {
    scene.deepen(id, event.key === "PageUp" ? -1 : 1);
    report(`${scene.index(id) + 1} from the front.`);
  } else if (event.key === "Escape") scene.select(null);
  else return;
  event.preventDefault();
}

find("stage").addEventListener("keydown", keys);
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.target.matches("input[type=text]")) return;
  const key = event.key.toLowerCase();
  if (key === "z") event.shiftKey ? scene.redo() : scene.undo();
  else if (key === "y") scene.redo();
  else return;
  event.preventDefault();
});

// ---- edits and results out

scene.listen(() => {
  find("undo").disabled = !scene.undoable;
  find("redo").disabled = !scene.redoable;
  find("error").textContent = `error ${number(scene.painted.error)}`;
});
// An edit is not seen in the original.
let painted = null;
scene.listen(() => {
  const edited = painted !== null && scene.undoable && scene.painted !== painted;
  painted = scene.painted;
  if (edited && stage.kind === "image") stage.look("reconstruction");
});
find("undo").addEventListener("click", () => scene.undo());
find("redo").addEventListener("click", () => scene.redo());
find("add").addEventListener("click", () => scene.add());

async function download(format) {
  try {
    const blob = await exported({ scene: scene.toMessage(), format, view: stage.kind });
    const name = (scene.name || "scene").replace(/\.[a-z]+$/i, "").replace(/[^\w-]+/g, "-");
    const ending = { png: `${stage.kind}.png`, json: "json", coco: "coco.json" }[format];
    const link = make("a", { href: URL.createObjectURL(blob), download: `${name}.${ending}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (complaint) {
    complain(complaint.message);
  }
}
for (const each of document.querySelectorAll("[data-export]")) each.addEventListener("click", () => download(each.dataset.export));

// ---- what there is to know

document.title = `${model.name} · pcdnet`;
find("title").textContent = model.name;
find("about").textContent = `${bank.P} prototypes, up to ${model.objects} objects a picture${model.size ? `, pictures of ${model.size.join("×")}` : ""}`;
find("version").textContent = `pcdnet ${model.version}`;
find("bank-words").textContent = model.renaming ? "what the objects look like; click a name to change it" : "what the objects look like";
showBank(bank, find("bank"), model.renaming, report, () => {
  stage.renamed();
  list.renamed();
  inside.renamed();
});
find("prototypes").hidden = false;

// For tests, and for the curious: what the server makes of the scene that is shown.
window.pcdnet = { scene, stage, render: () => render(scene.toMessage()) };

await showSamples().catch((complaint) => complain(complaint.message));
document.documentElement.dataset.ready = "true";
