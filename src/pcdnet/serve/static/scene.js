// The scene on the bench: its objects front to back, what is selected, and the way back to earlier states.

import { numbers } from "./api.js";
import { paint } from "./painter.js";
import { placed, poseOf, poseWords, within } from "./poses.js";

// A large picture as the server painted it.
function overview({ scene, reconstruction, instances }, size) {
  const gains = scene.objects.map(({ gain }) => gain);
  let error = scene.error + gains.reduce((sum, gain) => sum + gain, 0);
  const errors = [error, ...gains.map((gain) => (error -= gain))];
  const picture = Float64Array.from(numbers(reconstruction), (value) => value / 255);
  const boxes = scene.objects.map(({ box }) => box);
  return { size, picture, instances: numbers(instances), gains, errors, error: scene.error, boxes };
}

function sameObjects(some, others) {
  const words = (objects) => JSON.stringify(objects.map(placed));
  return words(some) === words(others);
}

const rounded = (value, parts) => Math.round(value * parts) / parts;

export class Scene {
  #past = [];
  #future = [];
  #before = null; // the objects before a change that is still going on, a drag for example
  #listeners = [];
  #ids = 0;

  constructor(bank) {
    this.bank = bank;
    this.objects = [];
    this.selected = null;
    this.hovered = null;
    this.size = null;
  }

  open(explained) {
    this.message = explained.image;
    this.image = numbers(explained.image);
    this.behind = explained.background; // where the model makes one for each picture
    this.background = this.behind ? numbers(this.behind) : this.bank.background;
    this.shrunk = explained.shrunk ?? 1; // a large picture is shown smaller, and cannot be edited
    this.whole = explained.scene.size;
    this.size = this.shrunk > 1 ? explained.image.shape.slice(0, 2) : this.whole;
    this.shown = this.shrunk > 1 ? overview(explained, this.size) : null;
    this.name = explained.scene.name;
    this.objects = explained.scene.objects.map((thing) => this.#known(thing));
    this.found = this.objects; // what the model found, whatever becomes of it
    this.limited = explained.at_limit ?? false; // as many objects as the model can find
    this.#past = [];
    this.#future = [];
    this.#before = null;
    this.selected = this.hovered = null;
    this.#repaint();
  }

  // Earlier edits over what was found, which undo brings back.
  lay(objects) {
    this.#change(objects.map((thing) => this.#known(thing)));
  }

  // An object of the server's, or one that was kept: where there are poses, each has one.
  #known(thing) {
    return { id: this.#ids++, ...placed(thing), ...(this.bank.poses ? poseOf(thing) : {}) };
  }

  // Back to what was found; undo brings the edits back.
  discard() {
    this.selected = this.hovered = null;
    this.#change(this.found);
  }

  // Other prototypes, of which no scene is known yet.
  renew(bank) {
    this.bank = bank;
    this.objects = this.found = [];
    this.selected = this.hovered = null;
    this.#past = [];
    this.#future = [];
    this.#before = null;
    if (!this.size) return;
    this.shown = null;
    this.background = this.behind ? numbers(this.behind) : bank.background;
    this.#repaint();
  }

  get edited() {
    return this.objects !== this.found && !sameObjects(this.objects, this.found);
  }

  // Whether a change is still going on.
  get changing() {
    return this.#before !== null;
  }

  // Objects of kinds that are not hidden, front to back.
  get visible() {
    return this.objects.filter(({ prototype }) => !this.bank.hidden.has(prototype));
  }

  listen(listener) {
    this.#listeners.push(listener);
  }

  // What is sent to the server of the scene.
  toMessage(objects = this.objects) {
    return { ...this.toEdits(objects), image: this.message, background: this.behind };
  }

  // What is kept of it: the server has the picture.
  toEdits(objects = this.objects) {
    return { size: this.size, objects: objects.map(placed), name: this.name };
  }

  // What is seen of an object, in words.
  placeOf(n) {
    const box = this.painted.boxes[n];
    const place = box ? `row ${box[0]}, column ${box[1]}, ${box[2]}×${box[3]}` : "hidden by others";
    return [place, poseWords(this.objects[n], this.bank.poses)].filter(Boolean).join("; ");
  }

  index(id) {
    return this.objects.findIndex((thing) => thing.id === id);
  }

  at(row, column) {
    const [H, W] = this.size;
    if (row < 0 || column < 0 || row >= H || column >= W) return null;
    const thing = this.objects[this.painted.instances[row * W + column] - 1];
    return thing && !this.bank.hidden.has(thing.prototype) ? thing.id : null;
  }

  select(id) {
    if (this.selected === id) return;
    this.selected = id;
    this.#tell();
  }

  hover(id) {
    if (this.hovered === id) return;
    this.hovered = id;
    this.#tell();
  }

  // A swapped prototype may lie elsewhere in its frame.
  swap(id, prototype) {
    const thing = { ...this.objects[this.index(id)], prototype };
    this.alter(id, { prototype, position: this.#kept(thing, thing.position) });
  }

  // Change one object; with settle = false the change is still going on, and undone as one later.
  alter(id, changes, settle = true) {
    this.#change(this.objects.map((thing) => (thing.id === id ? { ...thing, ...changes } : thing)), settle);
  }

  // Turn, scale or mirror an object, as far as the model's objects are; in steps that can be read.
  repose(id, changes, settle = true) {
    const thing = this.objects[this.index(id)];
    const pose = poseOf(thing);
    const { angle, scale, mirrored } = { ...pose, ...changes };
    const wanted = within({ angle: rounded(angle, 10), scale: rounded(scale, 1000), mirrored }, this.bank.poses);
    for (const name of Object.keys(changes)) pose[name] = wanted[name];
    if (JSON.stringify(pose) === JSON.stringify(poseOf(thing))) return;
    this.alter(id, { ...pose, position: this.#kept({ ...thing, ...pose }, thing.position) }, settle);
  }

  place(id, wanted, settle = true) {
    const thing = this.objects[this.index(id)];
    const position = this.#kept(thing, wanted.map((place) => rounded(place, 100)));
    if (position[0] !== thing.position[0] || position[1] !== thing.position[1]) this.alter(id, { position }, settle);
  }

  // The nearest place at which an opaque row and column of an object are in the picture: nothing is lost from sight.
  #kept(thing, [row, column]) {
    const sprite = this.bank.sprite({ ...thing, position: [row, column] });
    const [down, along] = [sprite.row - row, sprite.column - column];
    const [top, left, bottom, right] = sprite.box;
    const between = (value, least, most) => Math.min(Math.max(value, least), most);
    return [
      between(row, 1 - bottom - down, this.size[0] - 1 - top - down),
      between(column, 1 - right - along, this.size[1] - 1 - left - along),
    ];
  }

  deepen(id, by) {
    const from = this.index(id);
    const to = from + by;
    if (to < 0 || to >= this.objects.length) return;
    const objects = [...this.objects];
    objects.splice(to, 0, objects.splice(from, 1)[0]);
    this.#change(objects);
  }

  remove(id) {
    if (this.shown) return;
    const n = this.index(id);
    const objects = this.objects.filter((thing) => thing.id !== id);
    this.selected = objects[Math.min(n, objects.length - 1)]?.id ?? null;
    this.hovered = null;
    this.#change(objects);
  }

  duplicate(id) {
    if (this.shown) return;
    const n = this.index(id);
    const [row, column] = this.objects[n].position;
    const copy = { ...this.objects[n], id: this.#ids++ };
    copy.position = this.#kept(copy, [row + 2, column + 2]);
    this.selected = copy.id;
    this.#change(this.objects.toSpliced(n, 0, copy));
  }

  add(prototype = 0) {
    if (this.shown) return;
    const position = [0, 1].map((axis) => Math.round((this.size[axis] - [this.bank.h, this.bank.w][axis]) / 2));
    const pose = this.bank.poses ? within(poseOf({}), this.bank.poses) : {};
    const thing = { id: this.#ids++, prototype, position, colour: Array(this.bank.C).fill(1), ...pose };
    this.selected = thing.id;
    this.#change([thing, ...this.objects]);
  }

  settle() {
    if (this.#before === null) return;
    this.#past.push(this.#before);
    this.#before = null;
    this.#tell();
  }

  get undoable() {
    return this.#past.length > 0;
  }

  get redoable() {
    return this.#future.length > 0;
  }

  undo() {
    this.settle();
    if (this.undoable) this.#travel(this.#past, this.#future);
  }

  redo() {
    if (this.redoable) this.#travel(this.#future, this.#past);
  }

  #travel(from, to) {
    to.push(this.objects);
    this.objects = from.pop();
    if (this.index(this.selected) < 0) this.selected = null;
    this.#repaint();
  }

  #change(objects, settle = true) {
    if (this.shown) return;
    if (settle) this.#past.push(this.#before ?? this.objects);
    this.#before = settle ? null : (this.#before ?? this.objects);
    this.#future = [];
    this.objects = objects;
    this.#repaint();
  }

  #repaint() {
    this.painted = this.shown ?? paint(this.bank, this.objects, this.size, this.image, this.background);
    this.#tell();
  }

  #tell() {
    for (const listener of this.#listeners) listener(this);
  }
}
