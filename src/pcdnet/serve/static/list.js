// The objects as a list in depth order; the selected one opens to be edited.

import { button, check, find, make, number, percent } from "./dom.js";
import { poseOf } from "./poses.js";
import { counted } from "./words.js";

const LISTED = 300;
const clamp = (value) => Math.min(1, Math.max(0, value));
const share = (gain, whole) => (whole > 0 ? percent(gain / whole) : "");
const hex = (colour) => `#${[0, 1, 2].map((c) => Math.round(255 * clamp(colour[c] ?? colour[0])).toString(16).padStart(2, "0")).join("")}`;

export class List {
  constructor(scene, keys) {
    this.scene = scene;
    this.element = find("objects");
    this.rows = new Map();
    this.listed = [];
    this.editor = this.#makeEditor();
    this.element.addEventListener("keydown", keys);
    this.element.addEventListener("pointerleave", () => scene.hover(null));
    scene.listen(() => this.update());
  }

  update() {
    const { scene } = this;
    if (!scene.size) return;
    this.listed = scene.visible.slice(0, LISTED);
    const ids = new Set(this.listed.map(({ id }) => id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      row.item.remove();
      this.rows.delete(id);
    }
    const places = new Map(scene.objects.map((thing, n) => [thing.id, n]));
    for (const thing of this.listed) this.#fill(this.#row(thing.id), thing, places.get(thing.id));
    this.#order();
    this.#edit();
    this.#count();
  }

  // Thousands of rows would make every move of the pointer slow.
  #count() {
    const { objects, visible } = this.scene;
    const hidden = objects.length - visible.length;
    const more = visible.length - this.listed.length;
    find("unlisted").textContent = [more ? `the first ${LISTED} of ${visible.length} are listed` : "", hidden ? `${counted(hidden, "object")} of hidden kinds` : ""]
      .filter(Boolean)
      .join(", ");
    this.element.dataset.empty = hidden ? "All objects of this picture are of hidden kinds." : "Nothing was found in this picture.";
  }

  renamed() {
    this.editor = this.#makeEditor();
    this.update();
  }

  focus() {
    this.rows.get(this.scene.selected)?.face.focus();
  }

  #row(id) {
    if (this.rows.has(id)) return this.rows.get(id);
    const { scene } = this;
    const item = make("li", { class: "object card" });
    const face = make("button", { class: "row", type: "button" });
    const row = { item, face, thumb: make("span"), name: make("b"), place: make("small"), swatch: make("span", { class: "swatch" }), gain: make("span", { class: "gain" }) };
    const words = make("span");
    words.append(row.name, row.place);
    face.append(row.thumb, words, row.swatch, row.gain);
    face.addEventListener("click", () => scene.select(scene.selected === id ? null : id));
    face.addEventListener("focus", () => scene.hover(id));
    face.addEventListener("blur", () => scene.hover(null));
    item.addEventListener("pointerenter", () => scene.hover(id));
    item.append(face);
    this.rows.set(id, row);
    return row;
  }

  #fill(row, thing, n) {
    const { scene } = this;
    const { bank } = scene;
    const { angle, scale, mirrored } = thing;
    const look = `${thing.prototype} ${thing.colour} ${bank.hex[thing.prototype]} ${angle} ${scale} ${mirrored}`;
    if (row.look !== look) {
      row.look = look;
      const thumb = bank.thumb(thing.prototype, thing.colour, 40, thing.angle === undefined ? {} : { angle, mirrored });
      row.thumb.replaceWith(thumb);
      row.thumb = thumb;
      row.item.style.setProperty("--kind", bank.hex[thing.prototype]);
      row.swatch.style.background = hex(thing.colour);
    }
    const gain = scene.painted.gains[n];
    row.name.textContent = bank.names[thing.prototype];
    const place = scene.placeOf(n);
    row.place.textContent = place;
    row.gain.textContent = number(gain);
    row.gain.append(make("small", {}, share(gain, scene.painted.errors[0])));
    row.gain.classList.toggle("bad", gain < 0);
    row.item.classList.toggle("lit", scene.hovered === thing.id);
    row.item.classList.toggle("chosen", scene.selected === thing.id);
    row.face.setAttribute("aria-expanded", String(scene.selected === thing.id));
    const colour = `colour ${thing.colour.map((value) => value.toFixed(2)).join(" ")}`;
    row.face.title = colour;
    row.face.setAttribute("aria-label", `${bank.names[thing.prototype]}, ${n + 1} from the front, ${place}, ${colour}, error reduction ${number(gain)}`);
  }

  // Moving an element takes the focus from it, so it is given back.
  #order() {
    const focused = document.activeElement;
    let moved = false;
    this.listed.forEach((thing, n) => {
      const { item } = this.rows.get(thing.id);
      if (this.element.children[n] === item) return;
      this.element.insertBefore(item, this.element.children[n] ?? null);
      moved = true;
    });
    if (moved && this.element.contains(focused)) focused.focus();
  }

  // In a long list only the list is moved: who points into the picture wants it to stay where it is.
  #reveal(item) {
    const { element } = this;
    const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = Math.min(top, bottom - element.clientHeight);
  }

  #makeEditor() {
    const { scene } = this;
    const now = () => scene.objects[scene.index(scene.selected)];
    const editor = make("div", { class: "editor", role: "group", "aria-label": "Edit the object" });
    const tint = make("label", { class: "tint" });
    const grey = scene.bank.C === 1;
    const words = grey ? "Brightness" : "Colour";
    const colour = make("input", grey ? { type: "range", min: 0, max: 1.5, step: 0.01, "aria-label": words } : { type: "color", "aria-label": words });
    const value = () => (grey ? [Number(colour.value)] : [1, 3, 5].map((i) => parseInt(colour.value.slice(i, i + 2), 16) / 255));
    colour.addEventListener("input", () => scene.alter(scene.selected, { colour: value() }, false));
    colour.addEventListener("change", () => scene.settle());
    tint.append(colour, make("span", { "aria-hidden": "true" }, words));
    const tools = make("div", { class: "bar" });
    tools.append(
      tint,
      make("span", { class: "push" }),
      button("↑", "Bring forward (Page Up)", () => scene.deepen(scene.selected, -1)),
      button("↓", "Send backward (Page Down)", () => scene.deepen(scene.selected, 1)),
      button("Duplicate", "Duplicate", () => scene.duplicate(scene.selected)),
      button("Delete", "Delete (Del)", () => {
        scene.remove(scene.selected);
        this.focus();
      }),
    );
    const kinds = scene.bank.picker("Prototype", (prototype) => scene.swap(scene.selected, prototype));
    const fields = poseFields(scene, now);
    editor.append(tools, ...(fields ? [fields.element] : []), kinds);
    return { element: editor, colour, kinds, now, grey, fields };
  }

  #edit() {
    const { element, colour, kinds, now, grey, fields } = this.editor;
    const thing = now();
    for (const other of this.element.querySelectorAll(".editor")) if (other !== element) other.remove();
    const row = thing && this.rows.get(thing.id);
    if (!row || this.scene.shrunk > 1) {
      element.remove();
      if (row) this.#reveal(row.item);
      return;
    }
    const { item } = row;
    if (element.parentElement !== item) {
      item.append(element);
      this.#reveal(item);
    }
    colour.value = grey ? thing.colour[0] : hex(thing.colour);
    check(kinds, thing.prototype);
    fields?.fill(thing);
  }
}

// Place and pose of the selected object as numbers, where the model's objects have poses.
function poseFields(scene, now) {
  const { poses } = scene.bank;
  if (!poses) return null;
  const element = make("div", { class: "pose" });
  const fills = [];
  const field = (has, words, step, value, change) => {
    if (!has) return;
    const label = make("label");
    const input = make("input", { type: "number", step, inputmode: "decimal" });
    input.addEventListener("change", () => {
      if (input.value !== "" && now()) change(Number(input.value));
      if (now()) input.value = shown(now());
    });
    const shown = (thing) => Number(value(thing).toFixed(2));
    fills.push((thing) => input !== document.activeElement && (input.value = shown(thing)));
    label.append(words, input);
    element.append(label);
  };
  const place = (axis) => (to) => scene.place(scene.selected, now().position.map((old, each) => (each === axis ? to : old)));
  const step = poses.subpixel ? 0.1 : 1;
  const whole = (change) => (to) => change(poses.subpixel ? to : Math.round(to));
  field(true, "Row", step, ({ position }) => position[0], whole(place(0)));
  field(true, "Column", step, ({ position }) => position[1], whole(place(1)));
  field(poses.angles, "Angle", 1, (thing) => poseOf(thing).angle, (angle) => scene.repose(scene.selected, { angle }));
  field(poses.scales, "Scale", 0.02, (thing) => poseOf(thing).scale, (scale) => scene.repose(scene.selected, { scale }));
  if (poses.mirror) {
    const label = make("label", { class: "tick" });
    const input = make("input", { type: "checkbox" });
    input.addEventListener("change", () => scene.repose(scene.selected, { mirrored: input.checked }));
    fills.push((thing) => (input.checked = poseOf(thing).mirrored));
    label.append(input, "mirrored");
    element.append(label);
  }
  return { element, fill: (thing) => fills.forEach((fill) => fill(thing)) };
}
