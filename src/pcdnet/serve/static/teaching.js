// Corrections: boxes around things that are missing, and prototypes that are no object.

import { correct, getCorrections, pictureAt, takeBack, takeBackRemoved } from "./api.js";
import { button, dots, find, make } from "./dom.js";
import { attempt, counted, report } from "./words.js";

const ROOM = 40; // pixels on the screen for the little picture of a correction

export class Teaching {
  #crops = new Map(); // little pictures of what was drawn in pictures that the server does not have

  // `changed` is called with all corrections whenever they have changed.
  constructor(bench, changed) {
    Object.assign(this, { bench, changed, drawn: [], removed: [] });
  }

  async refresh() {
    const found = await attempt(getCorrections);
    if (!found) return;
    Object.assign(this, { drawn: found.drawn, removed: found.removed });
    this.#list();
    this.changed(this);
  }

  // The boxes that were drawn in the picture on the bench.
  get here() {
    const { number } = this.bench;
    return this.drawn.filter(({ picture }) => picture !== null && picture === number).map(({ box }) => box);
  }

  // Whether the server took the box.
  async add(box, name) {
    const { number, scene } = this.bench;
    const from = number === null ? { image: scene.message } : { picture: number };
    const made = await attempt(() => correct({ ...from, box, name }));
    if (!made) return false;
    if (number === null) this.#crops.set(made.id, cropped(this.#drawnImage(), box.map((length) => length / scene.shrunk)));
    await this.refresh();
    report(`Added; ${counted(this.drawn.length, "thing")} to learn. Learn again when all are drawn.`);
    return true;
  }

  async remove(p, gone = true) {
    const done = await attempt(async () => ((await (gone ? correct({ remove: p }) : takeBackRemoved(p))), true));
    await this.refresh();
    return Boolean(done);
  }

  #drawnImage() {
    return this.bench.stage.imageOf("image");
  }

  #list() {
    const { names } = this.bench.scene.bank;
    const items = this.drawn.map((correction) => {
      const { id, picture, box, name } = correction;
      const words = name || "a missing thing";
      const where = picture === null ? "in a dropped picture" : `in picture ${picture}`;
      const item = this.#item(this.#thumb(correction), words, where, `Take back the box around ${words} ${where}`, () =>
        attempt(() => takeBack(id)).then(() => this.refresh()),
      );
      item.title = `row ${box[0]}, column ${box[1]}, ${box[2]}×${box[3]}`;
      return item;
    });
    for (const p of this.removed) {
      const thumb = this.bench.scene.bank.thumb(p, [1, 1, 1], ROOM);
      thumb.classList.add("crossed");
      items.push(this.#item(thumb, names[p], "is no object", `Keep ${names[p]} after all`, () => this.remove(p, false)));
    }
    find("corrections").replaceChildren(...items);
    find("corrections").hidden = items.length === 0;
  }

  #item(thumb, title, words, label, undo) {
    const item = make("li", { class: "correction" });
    const text = make("span");
    text.append(make("b", { class: "clip" }, title), make("small", {}, words));
    const away = button("✕", label, undo);
    away.classList.add("quiet");
    item.append(thumb, text, away);
    return item;
  }

  #thumb({ id, picture, box }) {
    const frame = make("span", { class: "thumb" });
    if (this.#crops.has(id)) frame.append(this.#crops.get(id));
    else if (picture !== null) {
      const image = new Image();
      image.addEventListener("load", () => frame.replaceChildren(cropped(image, box)));
      image.src = pictureAt(picture);
      const link = make("button", { type: "button", class: "thumb", "aria-label": `Open picture ${picture}` });
      link.addEventListener("click", () => this.bench.strip.go(picture));
      link.append(frame);
      return link;
    }
    return frame;
  }
}

// A part of a picture, as large as there is room.
function cropped(image, [top, left, height, width]) {
  const canvas = make("canvas", { width: Math.max(1, Math.round(width)), height: Math.max(1, Math.round(height)), "aria-hidden": "true" });
  canvas.getContext("2d").drawImage(image, left, top, width, height, 0, 0, canvas.width, canvas.height);
  const scale = dots(ROOM / Math.max(width, height));
  canvas.style.width = `${width * scale}px`;
  canvas.style.height = `${height * scale}px`;
  return canvas;
}
