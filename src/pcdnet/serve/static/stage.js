// The large picture: look at it in five ways, point at objects, drag them.

import { check, dots, find, make, radios } from "./dom.js";
import { VIEWS, outline, show, view } from "./painter.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDEST = 560;

export class Stage {
  constructor(scene) {
    this.scene = scene;
    this.kind = "image";
    this.element = find("stage");
    this.canvas = find("picture");
    this.marks = find("marks");
    this.small = new Map();
    const options = VIEWS.map(([kind, words]) => {
      const content = make("canvas", { "aria-hidden": "true" });
      this.small.set(kind, content);
      return { value: kind, label: words, content, words };
    });
    this.group = radios("views", "View", options, (kind) => this.look(kind));
    this.group.id = "views";
    find("views").replaceWith(this.group);
    new ResizeObserver(() => this.#fit()).observe(this.element.parentElement);
    scene.listen(() => this.update());
    this.#point();
  }

  look(kind) {
    this.kind = kind;
    this.update();
  }

  renamed() {
    this.drawn = null;
    this.update();
  }

  update() {
    const { scene } = this;
    if (!scene.size) return;
    if (scene.painted !== this.drawn) {
      this.drawn = scene.painted;
      this.data = new Map(VIEWS.map(([kind]) => [kind, view(kind, scene.painted, scene.objects, scene.image, scene.bank)]));
      for (const [kind, canvas] of this.small) show(canvas, this.data.get(kind));
      this.#fit();
    }
    check(this.group, this.kind);
    show(this.canvas, this.data.get(this.kind));
    this.#mark();
  }

  // One of the views as it is shown small.
  imageOf(kind) {
    return this.small.get(kind);
  }

  #fit() {
    if (!this.scene.size) return;
    const [H, W] = this.scene.size;
    const scale = dots(Math.min(this.element.parentElement.clientWidth / W, WIDEST / W, Math.max(280, innerHeight * 0.72) / H));
    this.canvas.style.width = `${W * scale}px`;
    this.canvas.style.height = `${H * scale}px`;
    this.marks.setAttribute("viewBox", `0 0 ${W} ${H}`);
  }

  #mark() {
    const { scene } = this;
    this.marks.replaceChildren();
    for (const [id, kind] of [[scene.hovered, "lit"], [scene.selected, "chosen"]]) {
      if (id === null || (kind === "lit" && id === scene.selected)) continue;
      const d = outlineOf(scene, id);
      for (const name of ["halo", kind]) this.#draw(name, d);
    }
    const thing = scene.objects[scene.index(scene.selected)];
    if (thing && scene.bank.poses && scene.shrunk === 1) this.#draw("turned", around(scene.bank.sprites.corners(thing)));
  }

  #draw(name, d) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    this.marks.append(path);
  }

  // Where the pointer is in the picture: row and column, with fractions.
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [H, W] = this.scene.size;
    return [((event.clientY - box.top) / box.height) * H, ((event.clientX - box.left) / box.width) * W];
  }

  pixel(event) {
    return this.point(event).map(Math.floor);
  }

  #point() {
    const { element, scene } = this;
    let drag = null;
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const pixel = this.pixel(event);
      const id = scene.at(...pixel);
      scene.select(id);
      if (id === null) return;
      drag = { id, pixel, position: scene.objects[scene.index(id)].position };
      element.setPointerCapture(event.pointerId);
    });
    element.addEventListener("pointermove", (event) => {
      const [row, column] = this.pixel(event);
      if (!drag) {
        const id = scene.at(row, column);
        element.classList.toggle("over", id !== null);
        scene.hover(id);
        return;
      }
      const [dy, dx] = [row - drag.pixel[0], column - drag.pixel[1]];
      if (!drag.moved && dy === 0 && dx === 0) return;
      drag.moved = true;
      element.classList.add("dragging");
      // The original shows no edit: what is dragged must be seen to move.
      if (this.kind === "image") this.look("reconstruction");
      scene.place(drag.id, [drag.position[0] + dy, drag.position[1] + dx], false);
    });
    const end = () => {
      drag = null;
      element.classList.remove("dragging");
      scene.settle();
    };
    element.addEventListener("pointerup", end);
    element.addEventListener("pointercancel", end);
    element.addEventListener("pointerleave", () => drag || scene.hover(null));
  }
}

// Around what is seen of an object; around all of it where nothing is seen.
function outlineOf(scene, id) {
  const n = scene.index(id);
  const thing = scene.objects[n];
  const [H, W] = scene.size;
  if (scene.shrunk > 1) return around(scene.bank.sprites.corners(thing).map((corner) => corner.map((place) => place / scene.shrunk)));
  const { row, column, h, w, first, masks, box: [top, left, bottom, right] } = scene.bank.sprite(thing);
  const box = [row + top, column + left, row + bottom, column + right];
  const { instances } = scene.painted;
  const seen = outline((y, x) => y >= 0 && x >= 0 && y < H && x < W && instances[y * W + x] === n + 1, box);
  const opaque = (y, x) => y >= 0 && x >= 0 && y < h && x < w && masks[first + y * w + x] > 0.5;
  return seen || outline((y, x) => opaque(y - row, x - column), box);
}

// A box with its corners at these rows and columns.
export const around = (corners) => `M${corners.map(([row, column]) => `${column} ${row}`).join("L")}Z`;
