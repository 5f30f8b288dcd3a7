// A box around a thing that is missing, drawn by pointer or keyboard.

import { find } from "./dom.js";
import { report } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const LEAST = 2; // rows and columns of a box at least
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const within = (value, least, most) => Math.min(Math.max(value, least), most);

export class Drawing {
  // `done` is called with the box (top, left, height, width in the whole picture) and a name; it says whether it was taken.
  constructor(scene, stage, done) {
    Object.assign(this, { scene, stage, done, active: false, box: null, others: [] });
    const { element } = stage;
    element.addEventListener("pointerdown", (event) => this.#press(event), true);
    element.addEventListener("pointermove", (event) => this.#pull(event), true);
    for (const type of ["pointerup", "pointercancel"]) element.addEventListener(type, (event) => this.#release(event), true);
    element.addEventListener("keydown", (event) => this.#key(event), true);
    find("draw").addEventListener("click", () => (this.active ? this.stop() : this.start()));
    find("drawn-cancel").addEventListener("click", () => this.stop());
    find("drawing").addEventListener("keydown", (event) => event.key === "Escape" && this.stop());
    find("drawing").addEventListener("submit", (event) => this.#submit(event));
    scene.listen(() => this.draw());
  }

  start() {
    if (!this.scene.size) return;
    this.active = true;
    this.scene.select(null);
    this.scene.hover(null);
    this.stage.look("image");
    this.#show(null);
    this.stage.element.focus({ preventScroll: true });
    this.stage.element.scrollIntoView({ block: "nearest" });
    report("Drawing a box: arrow keys place it, with Shift they size it; Enter to go on, Escape to leave.");
  }

  stop() {
    const inside = find("drawing").contains(document.activeElement);
    this.active = false;
    this.#show(null);
    find("drawn-name").value = "";
    if (inside) this.stage.element.focus({ preventScroll: true });
  }

  // The boxes that were drawn in this picture before, and the one that is being drawn.
  draw(others = this.others) {
    this.others = others;
    if (!this.scene.size) return;
    const [H, W] = this.scene.size;
    const place = find("frame");
    place.setAttribute("viewBox", `0 0 ${W} ${H}`);
    place.replaceChildren();
    const scaled = others.map((box) => box.map((length) => length / this.scene.shrunk));
    for (const [box, kind] of [...scaled.map((each) => [each, "drawn"]), [this.box, "drawing"]]) {
      if (!box) continue;
      for (const name of ["halo", kind]) {
        const shape = document.createElementNS(SVG, "path");
        shape.setAttribute("class", name);
        shape.setAttribute("d", `M${box[1]} ${box[0]}h${box[3]}v${box[2]}h${-box[3]}Z`);
        place.append(shape);
      }
    }
  }

  #show(box) {
    this.box = box;
    this.stage.element.classList.toggle("boxing", this.active);
    find("draw").setAttribute("aria-pressed", String(this.active));
    find("drawing").hidden = !this.active;
    find("drawn-add").disabled = !box;
    const words = "Draw a box around one thing that is missing. With the keyboard: arrows move it, Shift sizes it.";
    find("drawing-words").textContent = box ? `row ${box[0]}, column ${box[1]}, ${box[2]}×${box[3]}` : words;
    this.draw();
  }

  #press(event) {
    if (!this.active || event.button !== 0) return;
    event.stopImmediatePropagation();
    event.preventDefault();
    this.from = this.#inside(this.stage.pixel(event));
    this.stage.element.setPointerCapture(event.pointerId);
    this.stage.element.focus({ preventScroll: true });
  }

  #pull(event) {
    if (!this.active) return;
    event.stopImmediatePropagation();
    if (!this.from) return;
    const to = this.#inside(this.stage.pixel(event));
    const start = [0, 1].map((axis) => Math.min(this.from[axis], to[axis]));
    const size = [0, 1].map((axis) => Math.abs(this.from[axis] - to[axis]) + 1);
    this.#show(size.every((length) => length >= LEAST) ? [...start, ...size] : null);
  }

  #release(event) {
    if (!this.active) return;
    event.stopImmediatePropagation();
    this.from = null;
    if (this.box) report(find("drawing-words").textContent);
  }

  #inside(pixel) {
    return pixel.map((place, axis) => within(place, 0, this.scene.size[axis] - 1));
  }

  #key(event) {
    if (!this.active || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") this.stop();
    else if (event.key === "Enter" && this.box) find("drawn-name").focus();
    else if (event.key in MOVES) this.#move(MOVES[event.key], event.shiftKey);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  // One pixel further, or larger; the first time the box comes up in the middle.
  #move(by, sizing) {
    const { size, bank } = this.scene;
    const mean = (axis) => bank.boxes.reduce((sum, box) => sum + box[2 + axis] - box[axis], 0) / bank.P;
    const usual = [0, 1].map((axis) => within(Math.round(mean(axis)), LEAST, size[axis]));
    const box = this.box ? [...this.box] : [...usual.map((length, axis) => (size[axis] - length) >> 1), ...usual];
    for (const axis of [0, 1]) {
      if (!this.box) break;
      if (sizing) box[2 + axis] = within(box[2 + axis] + by[axis], LEAST, size[axis] - box[axis]);
      else box[axis] = within(box[axis] + by[axis], 0, size[axis] - box[2 + axis]);
    }
    this.#show(box);
    report(find("drawing-words").textContent);
  }

  async #submit(event) {
    event.preventDefault();
    if (!this.box) return;
    find("drawn-add").disabled = true;
    const whole = this.box.map((length) => length * this.scene.shrunk);
    const [height, width] = this.scene.whole;
    const box = [whole[0], whole[1], Math.min(whole[2], height - whole[0]), Math.min(whole[3], width - whole[1])];
    const taken = await this.done(box, find("drawn-name").value.trim());
    find("drawn-add").disabled = false;
    if (taken) this.stop();
  }
}
