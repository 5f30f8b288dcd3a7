// The keyboard: keys of the scene, keys that work everywhere, and the dialog that shows them.

import { find, make } from "./dom.js";
import { grown, turned } from "./handles.js";
import { VIEWS } from "./painter.js";
import { poseOf } from "./poses.js";
import { report } from "./words.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const TENTH = 0.1; // pixels that an arrow key moves an object with Alt
const WAYS = { q: 1, e: -1, "+": 1, "=": 1, "-": -1 };

// Keys of what the objects of a model do beside being moved; Q turns counter-clockwise.
function poseKeys(poses) {
  const keys = [
    [poses?.subpixel, "Alt ← ↑ → ↓", "move it a tenth of a pixel"],
    [poses?.angles, "Q E", "turn it a degree left, right; with Shift 15"],
    [poses?.scales, "+ −", "larger, smaller by 2 %"],
    [poses?.mirror, "M", "mirror it"],
  ];
  return keys.filter(([has]) => has).map(([, key, words]) => [key, words]);
}

const shortcuts = (poses) => [
  ["Pictures", [["[ ]", "previous, next picture"], ["← → Home End", "in the strip: go through it"], ["Page Up, Page Down", "in the strip: a width further"]]],
  [
    "Objects",
    [
      [", .", "previous, next object"],
      ["← ↑ → ↓", "move it a pixel; with Shift five"],
      ...poseKeys(poses),
      ["Page Up, Page Down", "forward, backward"],
      ["Delete", "remove it"],
      ["Esc", "let go of it"],
      ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
    ],
  ],
  ["A missing thing", [["B", "draw a box"], ["← ↑ → ↓", "place the box; with Shift size it"], ["Enter", "name and add it"], ["Esc", "leave"]]],
  ["Views", [["1 – 5", "picture, painted, left over, objects, kinds"], ["?", "these shortcuts"]]],
];

export class Keys {
  constructor(bench, drawing) {
    Object.assign(this, { bench, drawing, scene: bench.scene, stage: bench.stage });
    this.fill();
    find("help").addEventListener("click", () => find("shortcuts").showModal());
    document.addEventListener("keydown", (event) => this.anywhere(event));
    find("stage").addEventListener("keydown", (event) => this.onScene(event));
  }

  fill() {
    const posed = poseKeys(this.scene.bank.poses).map(([key, words]) => `${key}: ${words}`);
    if (posed.length) find("stage").ariaLabel += ` ${posed.join(". ")}.`;
    for (const [title, keys] of shortcuts(this.scene.bank.poses)) {
      const part = make("section");
      const list = make("dl");
      for (const [key, words] of keys) list.append(make("dt", {}, key), make("dd", {}, words));
      part.append(make("h3", {}, title), list);
      find("keys").append(part);
    }
  }

  // Those that work wherever nothing is written.
  anywhere(event) {
    if (document.querySelector("dialog[open]") || event.defaultPrevented) return;
    if (event.target.matches("input:not([type=radio], [type=checkbox], [type=range], [type=color]), textarea, select")) return;
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      if (key === "z") event.shiftKey ? this.scene.redo() : this.scene.undo();
      else if (key === "y") this.scene.redo();
      else return;
    } else if (event.altKey) return;
    else if (key === "?") find("shortcuts").showModal();
    else if (key === "[" || key === "]") this.bench.strip.step(key === "[" ? -1 : 1);
    else if (key === "b" && !find("draw").disabled) this.drawing.active ? this.drawing.stop() : this.drawing.start();
    else if (/^[1-5]$/.test(key) && this.scene.size) this.stage.look(VIEWS[key - 1][0]);
    else return;
    event.preventDefault();
  }

  // Those of the scene and of the list of its objects.
  onScene(event) {
    const { scene, stage } = this;
    const tenths = event.altKey && event.key in MOVES && scene.bank.poses?.subpixel;
    if (event.target.matches("input") || (event.altKey && !tenths) || event.ctrlKey || event.metaKey) return;
    const id = scene.selected;
    const n = scene.index(id);
    const step = { ",": -1, ".": 1 }[event.key];
    if (step && scene.visible.length) this.#choose(step);
    else if (n < 0) return;
    else if (event.key in MOVES) {
      const [row, column] = scene.objects[n].position;
      const far = tenths ? TENTH : event.shiftKey ? 5 : 1;
      if (stage.kind === "image") stage.look("reconstruction");
      scene.place(id, [row + far * MOVES[event.key][0], column + far * MOVES[event.key][1]]);
      report(scene.placeOf(n));
    } else if (event.key === "Delete" || event.key === "Backspace") {
      scene.remove(id);
      if (document.activeElement === document.body) (scene.selected === null ? find("stage") : this.list).focus();
      report("Removed.");
    } else if (event.key === "PageUp" || event.key === "PageDown") {
      scene.deepen(id, event.key === "PageUp" ? -1 : 1);
      report(`${scene.index(id) + 1} from the front.`);
    } else if (event.key === "Escape") scene.select(null);
    else if (!this.#pose(id, event)) return;
    event.preventDefault();
  }

  // Whether a key is one that turns, scales or mirrors, and the model's objects do that.
  #pose(id, { key, shiftKey }) {
    const { scene, stage } = this;
    const { angles, scales, mirror } = scene.bank.poses ?? {};
    const { angle, scale, mirrored } = poseOf(scene.objects[scene.index(id)]);
    const [name, way] = [key.toLowerCase(), WAYS[key.toLowerCase()]];
    const changes =
      (angles && (name === "q" || name === "e") && { angle: turned(angle, way, shiftKey) }) ||
      (scales && "+=-".includes(name) && { scale: grown(scale, way, false) }) ||
      (mirror && name === "m" && { mirrored: !mirrored });
    if (!changes) return false;
    if (stage.kind === "image") stage.look("reconstruction");
    scene.repose(id, changes);
    report(scene.placeOf(scene.index(id)));
    return true;
  }

  #choose(step) {
    const { scene } = this;
    const { visible } = scene;
    const n = visible.findIndex(({ id }) => id === scene.selected);
    scene.select(visible[(n + step + visible.length + (n < 0 && step < 0)) % visible.length].id);
    report(`${scene.bank.names[scene.objects[scene.index(scene.selected)].prototype]} selected.`);
  }
}
