// The prototypes: their numbers, their little pictures, their names.

import { numbers, rename } from "./api.js";
import { button, dots, make, radios } from "./dom.js";
import { Sprites, boxOf } from "./poses.js";

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

export class Bank {
  constructor(model) {
    [this.P, this.h, this.w] = model.prototypes.shape;
    this.C = model.channels;
    this.prototypes = numbers(model.prototypes);
    this.masks = numbers(model.masks);
    this.background = model.background && numbers(model.background);
    this.use = model.use;
    this.named(model);
    this.instanceColours = model.instance_colours.map(rgb);
    this.boxes = Array.from({ length: this.P }, (_, p) => boxOf(this.masks, this.h, this.w, p * this.h * this.w));
    this.poses = model.poses ?? null; // in which ways objects differ from their prototypes
    this.sprites = new Sprites(this, this.poses);
  }

  // What the prototypes are called, and their colours: those of one name share theirs.
  named({ names, colours, hidden = [] }) {
    this.names = names;
    this.hidden = new Set(hidden); // prototypes whose objects are left out of lists, counts and results
    this.hex = colours;
    this.colours = colours.map(rgb);
  }

  // An object as it is painted: where in the picture, its values, and the box of what is opaque of it.
  sprite(thing) {
    return this.sprites.of(thing);
  }

  // A framed picture of a prototype in a colour, cut to what is seen of it; in a pose if one is given.
  thumb(p, colour = [1, 1, 1], room = 40, pose = {}) {
    const frame = make("span", { class: "thumb" });
    frame.append(this.drawn(this.sprite({ prototype: p, position: [0, 0], ...pose }), colour, room));
    return frame;
  }

  drawn({ first, h, w, prototypes, masks, box: [top, left, bottom, right] }, colour, room) {
    const data = new ImageData(right - left, bottom - top);
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) {
        const from = first + y * w + x;
        const at = 4 * ((y - top) * data.width + x - left);
        for (let c = 0; c < 3; c++) data.data[at + c] = Math.round(255 * Math.max(0, prototypes[from] * (colour[c] ?? colour[0])));
        data.data[at + 3] = Math.round(255 * masks[from]);
      }
    }
    const canvas = make("canvas", { width: data.width, height: data.height, "aria-hidden": "true" });
    canvas.getContext("2d").putImageData(data, 0, 0);
    const scale = dots(room / Math.max(data.width, data.height));
    canvas.style.width = `${data.width * scale}px`;
    canvas.style.height = `${data.height * scale}px`;
    return canvas;
  }

  // A row of prototypes of which one can be chosen; arrow keys go through it.
  picker(label, choose) {
    const options = Array.from({ length: this.P }, (_, p) => ({ value: p, label: this.names[p], content: this.thumb(p, [1, 1, 1], 26) }));
    return radios("kinds", label, options, (value) => choose(Number(value)));
  }
}

// The cards of all prototypes. `work` says whether they can be changed (`renaming`), who hears of it (`report`,
// `renamed`), and what to do with a prototype that is no object (`remove`).
export function showBank(bank, place, work) {
  place.replaceChildren(...Array.from({ length: bank.P }, (_, p) => cardOf(bank, p, work)));
}

function cardOf(bank, p, { renaming, report, renamed, remove }) {
  const card = make("div", { class: "kind" });
  const pair = make("div", { class: "pair" });
  // Where nothing is painted, a prototype's values mean nothing.
  const painted = bank.prototypes.map((value, at) => value * bank.masks[at]);
  pair.append(plane(bank, painted, p, `prototype ${p}`), plane(bank, bank.masks, p, "its mask"));
  const name = make("input", { type: "text", maxlength: 60, "aria-label": `Name of prototype ${p}`, autocomplete: "off", spellcheck: "false" });
  name.readOnly = !renaming;
  name.addEventListener("change", async () => {
    try {
      bank.named(await rename(p, name.value));
      report(`Prototype ${p} is now called ${bank.names[p]}.`);
      renamed();
    } catch (complaint) {
      report(complaint.message, true);
      card.renamed();
    }
  });
  name.addEventListener("keydown", (event) => {
    if (event.key === "Escape") name.value = bank.names[p];
    if (event.key === "Enter" || event.key === "Escape") name.blur();
  });
  const ends = make("div", { class: "bar" });
  ends.append(make("small", {}, bank.use ? `${(100 * bank.use[p]).toFixed(0)} % of objects` : `prototype ${p}`));
  const gone = button("No object", `Prototype ${p} is no object`, () => remove(p, gone.getAttribute("aria-pressed") !== "true"));
  gone.classList.add("quiet", "push");
  gone.setAttribute("aria-pressed", "false");
  if (renaming) ends.append(gone);
  card.append(pair, name, ends);
  card.renamed = () => {
    name.value = bank.names[p];
    card.style.setProperty("--kind", bank.hex[p]);
  };
  card.removed = (removed) => {
    gone.setAttribute("aria-pressed", String(removed.includes(p)));
    card.classList.toggle("gone", removed.includes(p));
  };
  card.renamed();
  return card;
}

function plane(bank, values, p, label) {
  const canvas = make("canvas", { width: bank.w, height: bank.h, role: "img", "aria-label": label });
  const data = new ImageData(bank.w, bank.h);
  for (let i = 0; i < bank.h * bank.w; i++) {
    const value = Math.round(255 * values[p * bank.h * bank.w + i]);
    data.data.set([value, value, value, 255], 4 * i);
  }
  canvas.getContext("2d").putImageData(data, 0, 0);
  return canvas;
}
