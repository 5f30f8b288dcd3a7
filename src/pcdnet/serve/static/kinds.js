// The kinds: how many there are of each, here and in the folder; naming, merging and hiding them.

import { changeKind, getCounts, getNames, startCounts, stopCounts } from "./api.js";
import { button, find, make } from "./dom.js";
import { Polling } from "./polling.js";
import { attempt, complain, counted, lasting, report } from "./words.js";

const PICTURES = 3; // prototypes of a kind that are shown
const LISTED = 12; // pictures at the limit that are listed
const DARKEST = 0.25; // colours are told apart by their hues down to this brightness

// Colours as points whose distances say how different they look, as the library has them; tests compare.
function point(colour) {
  if (colour.length === 1) return colour;
  const mean = colour.reduce((sum, value) => sum + value, 0) / colour.length;
  return [...colour.map((value) => (value - mean) / Math.max(...colour, DARKEST)), mean / 2];
}

// Of the kinds of a prototype the one whose colour an object has.
export function nearest(kinds, colour) {
  if (kinds.length < 2) return kinds[0];
  const apart = ({ tint }) => point(tint).reduce((sum, value, at) => sum + (value - point(colour)[at]) ** 2, 0);
  return kinds.reduce((best, kind) => (apart(kind) < apart(best) ? kind : best));
}

export class Kinds {
  #chosen = new Set(); // kinds by name
  #rows = new Map();

  // `bench` knows scene and strip; `renamed` is called when names or what is hidden have changed.
  constructor(bench, renamed) {
    Object.assign(this, { bench, scene: bench.scene, renamed, state: null });
    this.polling = new Polling(getCounts, (state) => this.#show(state));
    this.polling.failed = (complaint) => complain(complaint.message);
    this.scene.listen(() => this.#here());
    find("count-start").addEventListener("click", () => attempt(startCounts).then(() => this.polling.now()));
    find("count-stop").addEventListener("click", () => attempt(stopCounts).then(() => this.polling.now()));
    find("merge-cancel").addEventListener("click", () => this.#choose(null));
    find("merging").addEventListener("submit", (event) => {
      event.preventDefault();
      this.merge([...this.#chosen], find("merged-name").value.trim());
    });
  }

  get kinds() {
    return this.state?.kinds ?? [];
  }

  #kind(name) {
    return this.kinds.find((kind) => kind.name === name);
  }

  // One name for the prototypes of several kinds.
  async merge(names, name) {
    const prototypes = names.flatMap((each) => this.#kind(each)?.prototypes ?? []);
    if (!name || !(await this.#change(prototypes, { name }))) return;
    this.#choose(null);
    report(`${counted(names.length, "kind")} are now one: ${name}.`);
  }

  async #change(prototypes, change) {
    const done = await attempt(async () => {
      await changeKind(prototypes, change);
      return getNames();
    });
    if (!done) {
      this.#fill();
      return false;
    }
    this.scene.bank.named(done);
    await this.polling.now();
    this.renamed();
    if ("hidden" in change) this.bench.strip.refresh();
    return true;
  }

  #show(state) {
    const moved = this.state && (state.done !== this.state.done || state.state !== this.state.state);
    this.state = state;
    const running = state.state === "running";
    const { renaming } = this.bench.model;
    find("kinds").hidden = state.kinds.length === 0;
    find("count-start").hidden = running || !renaming || state.total === 0;
    find("count-start").textContent = state.state === "done" ? "Count again" : state.done ? "Go on counting" : "Count the whole folder";
    find("count-stop").hidden = find("counting").hidden = !running;
    find("counted").value = state.total ? state.done / state.total : 0;
    find("counting-words").textContent = [`${state.done.toLocaleString("en")} of ${state.total.toLocaleString("en")}`, lasting(state.eta)].filter(Boolean).join(", ");
    if (state.state === "failed" && moved !== false) complain(`The folder is not counted: ${state.message}`);
    const objects = state.kinds.filter(({ hidden }) => !hidden).reduce((sum, kind) => sum + kind.objects, 0);
    find("kinds-words").textContent = state.done ? `${counted(objects, "object")} in ${counted(state.done, "picture")}` : "";
    this.#limits(state);
    for (const name of this.#chosen) if (!this.#kind(name)) this.#chosen.delete(name);
    this.#fill();
    if (moved) this.bench.strip.refresh();
    return running;
  }

  #limits({ at_limit: which, pictures_at_limit: count }) {
    find("limits").hidden = count === 0;
    if (!count) return;
    const words = `${counted(count, "picture")} ${count === 1 ? "has" : "have"} as many objects as the model can find: `;
    const links = which.slice(0, LISTED).map((n) => {
      const link = make("button", { type: "button", class: "link" }, `${n}`);
      link.addEventListener("click", () => this.bench.strip.go(n));
      return link;
    });
    const cure = ` Train it with --model.max-objects ${2 * this.bench.model.objects} to find more.`;
    find("limits").replaceChildren(words, ...links, `${count > links.length ? " …" : ""}${cure}`);
  }

  #fill() {
    const list = find("kind-list");
    for (const [name, row] of this.#rows) {
      if (this.#kind(name)) continue;
      row.item.remove();
      this.#rows.delete(name);
    }
    const most = Math.max(1, ...this.kinds.map(({ objects }) => objects));
    this.kinds.forEach((kind, at) => {
      const known = this.#rows.get(kind.name);
      const look = `${kind.prototypes} ${kind.colour} ${kind.tint}`;
      if (known && known.look !== look) known.item.remove();
      const row = known?.look === look ? known : this.#made(kind, look);
      this.#rows.set(kind.name, row);
      if (list.children[at] !== row.item) list.insertBefore(row.item, list.children[at] ?? null);
      row.item.classList.toggle("off", kind.hidden);
      row.hide.textContent = kind.hidden ? "Show" : "Hide";
      row.hide.title = `${row.hide.textContent} ${kind.name}`;
      row.hide.setAttribute("aria-label", row.hide.title);
      row.folder.textContent = this.state.done ? kind.objects.toLocaleString("en") : "–";
      row.folder.title = this.state.done ? `in ${counted(kind.pictures, "picture")}` : "not counted yet";
      row.bar.value = this.state.done ? kind.objects / most : 0;
      row.check.checked = this.#chosen.has(kind.name);
      if (row.name !== document.activeElement) row.name.value = kind.group;
    });
    this.#here();
    this.#offer();
  }

  // How many of each are in the picture on the bench.
  #here() {
    const kinds = new Map();
    for (const kind of this.kinds) for (const p of kind.prototypes) kinds.set(p, [...(kinds.get(p) ?? []), kind]);
    const here = new Map();
    for (const { prototype, colour } of this.scene.objects) {
      const name = nearest(kinds.get(prototype) ?? [], colour)?.name;
      here.set(name, (here.get(name) ?? 0) + 1);
    }
    for (const [name, row] of this.#rows) {
      row.here.textContent = here.get(name) ?? 0;
      row.item.classList.toggle("absent", !here.has(name));
    }
  }

  #made(kind, look) {
    const { bank } = this.scene;
    const { renaming } = this.bench.model;
    const item = make("li", { class: "kind-row" });
    item.style.setProperty("--kind", kind.colour);
    const pictures = make("span", { class: "kind-pictures", "aria-hidden": "true" });
    const tint = kind.tint ?? [1, 1, 1];
    for (const p of kind.prototypes.slice(0, PICTURES)) pictures.append(bank.thumb(p, tint, 32));
    if (kind.prototypes.length > PICTURES) pictures.append(make("small", {}, `+${kind.prototypes.length - PICTURES}`));
    const check = make("input", { type: "checkbox", "aria-label": `Choose ${kind.name} to merge it` });
    check.addEventListener("change", () => this.#choose(kind.name, check.checked));
    const name = make("input", { type: "text", maxlength: 60, "aria-label": `Name of the kind ${kind.name}`, autocomplete: "off", spellcheck: "false" });
    name.value = kind.group;
    name.readOnly = !renaming;
    name.addEventListener("keydown", (event) => {
      if (event.key === "Escape") name.value = kind.group;
      if (event.key === "Enter" || event.key === "Escape") name.blur();
    });
    name.addEventListener("change", () => {
      if (name.value.trim() !== kind.group) this.#change(kind.prototypes, { name: name.value.trim() });
    });
    const [here, folder] = [make("b", { class: "number" }), make("b", { class: "number" })];
    const bar = make("meter", { min: 0, max: 1, value: 0, "aria-hidden": "true" });
    const numbers = make("span", { class: "kind-numbers" });
    for (const [value, words] of [[here, "here"], [folder, "folder"]]) {
      const one = make("span");
      one.append(value, make("small", {}, words));
      numbers.append(one);
    }
    const hide = button("Hide", `Hide ${kind.name}`, () => this.#hide(kind.name));
    hide.classList.add("quiet");
    check.hidden = hide.hidden = !renaming;
    const called = make("span", { class: "kind-name" });
    called.append(name);
    if (kind.tint) called.append(make("small", { class: "faint" }, kind.name.slice(kind.group.length)));
    item.append(check, pictures, called, numbers, hide, bar);
    if (renaming) this.#dragged(item, kind.name);
    return { item, look, check, name, here, folder, bar, hide };
  }

  #hide(name) {
    const { prototypes, hidden } = this.#kind(name);
    return this.#change(prototypes, { hidden: !hidden });
  }

  // One kind dropped on another becomes it.
  #dragged(item, name) {
    item.draggable = true;
    item.addEventListener("dragstart", (event) => {
      if (event.target !== item) return;
      this.dragging = name;
      event.dataTransfer.effectAllowed = "link";
      event.dataTransfer.setData("text/plain", name);
    });
    item.addEventListener("dragend", () => (this.dragging = null));
    for (const type of ["dragenter", "dragover"]) {
      item.addEventListener(type, (event) => {
        if (!this.dragging || this.dragging === name) return;
        event.preventDefault();
        item.classList.add("target");
      });
    }
    item.addEventListener("dragleave", (event) => item.contains(event.relatedTarget) || item.classList.remove("target"));
    item.addEventListener("drop", (event) => {
      item.classList.remove("target");
      if (!this.dragging || this.dragging === name) return;
      event.preventDefault();
      this.merge([name, this.dragging], name);
    });
  }

  // Choose a kind to merge it, or no longer; null lets go of all.
  #choose(name, chosen = true) {
    if (name === null) this.#chosen.clear();
    else if (chosen) this.#chosen.add(name);
    else this.#chosen.delete(name);
    for (const [each, row] of this.#rows) row.check.checked = this.#chosen.has(each);
    this.#offer();
  }

  #offer() {
    const names = [...this.#chosen];
    const ready = names.length > 1;
    const fresh = ready && find("merging").hidden;
    find("merging").hidden = !ready;
    if (!ready) return;
    find("merging-words").textContent = `Merge ${names.length} kinds into`;
    const groups = names.map((name) => this.#kind(name)?.group ?? name);
    if (fresh) find("merged-name").value = groups.find((name) => !/^prototype \d+$/.test(name)) ?? groups[0];
  }
}
