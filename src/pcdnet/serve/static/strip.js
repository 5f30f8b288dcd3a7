// The pictures of the folder as a strip, of which only what is in sight is in the document: there may be thousands.

import { getPictures, thumbnailAt } from "./api.js";
import { find, make } from "./dom.js";
import { complain, counted } from "./words.js";

const SLOT = 84; // pixels on the screen from one picture to the next, as in the style sheet
const AROUND = 4; // pictures on either side of the sight that are in the document, too
const BLOCK = 100; // pictures that are asked for at a time
const REST = 70; // milliseconds without scrolling after which what is in sight is loaded

export class Strip {
  #shown = new Map(); // elements by number
  #spare = [];
  #blocks = new Map(); // what is known of pictures, by block
  #asking = new Map();
  #rest = null;
  #frame = null;

  // `choose` is called with a number and whether to wait a moment, since more keys may come.
  constructor(choose) {
    this.choose = choose;
    this.place = find("strip");
    this.inner = make("div", { class: "strip-inner", role: "presentation" });
    this.place.append(this.inner);
    this.count = 0;
    this.current = null;
    this.stale = new Set(); // blocks that are asked for anew when they are seen
    this.place.addEventListener("scroll", () => this.#soon(), { passive: true });
    this.place.addEventListener("click", (event) => {
      const item = event.target.closest("[role=option]");
      if (item) this.go(Number(item.dataset.number));
    });
    this.place.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#soon()).observe(this.place);
    find("previous").addEventListener("click", () => this.step(-1));
    find("next").addEventListener("click", () => this.step(1));
    find("number").addEventListener("change", () => this.go(Number(find("number").value)));
  }

  async open() {
    const { count, source, mark, pictures } = await getPictures(0, BLOCK);
    this.count = count;
    this.origin = mark;
    this.#blocks.set(0, pictures);
    this.place.hidden = find("going").hidden = count === 0;
    this.source = source;
    this.place.title = source;
    this.inner.style.width = `${count * SLOT}px`;
    find("number").max = count - 1;
    find("count").textContent = `of 0–${(count - 1).toLocaleString("en")}`;
    this.#draw();
    this.#load();
  }

  // What is known of a picture, if its block has come already.
  entry(n) {
    return this.#blocks.get(Math.floor(n / BLOCK))?.[n % BLOCK];
  }

  // What has changed of a picture: edited, or its number of objects.
  mark(n, changes) {
    const entry = this.entry(n);
    if (entry) Object.assign(entry, changes);
    if (this.#shown.has(n)) this.#fill(this.#shown.get(n), n);
  }

  // Everything may have changed; what is in sight is asked for anew.
  refresh() {
    this.stale = new Set(this.#blocks.keys());
    this.#load();
  }

  go(n, soon = false) {
    if (!this.count || !Number.isFinite(n)) return;
    this.show(Math.min(Math.max(Math.round(n), 0), this.count - 1));
    this.choose(this.current, soon);
  }

  step(by) {
    this.go((this.current ?? -by) + by, true);
  }

  // Mark a picture as the one that is on the bench, or none, and bring it into sight.
  show(n) {
    this.current = n;
    if (n === null) this.place.removeAttribute("aria-activedescendant");
    else {
      const { scrollLeft, clientWidth } = this.place;
      if (n * SLOT < scrollLeft) this.place.scrollLeft = (n - 1) * SLOT;
      else if ((n + 1) * SLOT > scrollLeft + clientWidth) this.place.scrollLeft = (n + 2) * SLOT - clientWidth;
      find("number").value = n;
    }
    find("previous").disabled = n === 0;
    find("next").disabled = n === this.count - 1;
    this.#draw();
    for (const [other, item] of this.#shown) item.element.setAttribute("aria-selected", String(other === n));
    if (n !== null) this.place.setAttribute("aria-activedescendant", `picture-${n}`);
    this.#soon();
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.place.clientWidth / SLOT) - 1);
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    if (event.key in steps) this.go(Math.min(Math.max((this.current ?? 0) + steps[event.key], 0), this.count - 1), true);
    else if (event.key === "Enter" || event.key === " ") this.go(this.current ?? 0);
    else return;
    event.preventDefault();
  }

  #sight(around = 0) {
    const { scrollLeft, clientWidth } = this.place;
    return [Math.max(0, Math.floor(scrollLeft / SLOT) - around), Math.min(this.count, Math.ceil((scrollLeft + clientWidth) / SLOT) + around)];
  }

  #soon() {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#draw();
    });
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#load(), REST);
  }

  #draw() {
    const [first, last] = this.#sight(AROUND);
    for (const [n, item] of this.#shown) {
      if ((n >= first && n < last) || n === this.current) continue;
      item.picture.removeAttribute("src"); // a request that is not answered yet is dropped
      item.element.remove();
      this.#shown.delete(n);
      this.#spare.push(item);
    }
    for (let n = first; n < last; n++) this.#add(n);
    if (this.current !== null) this.#add(this.current);
    this.#spare.length = Math.min(this.#spare.length, 4 * AROUND);
  }

  #add(n) {
    if (this.#shown.has(n)) return;
    const item = this.#spare.pop() ?? this.#made();
    const { element } = item;
    element.id = `picture-${n}`;
    element.dataset.number = n;
    element.style.transform = `translateX(${n * SLOT}px)`;
    element.classList.remove("broken", "seen");
    element.setAttribute("aria-setsize", this.count);
    element.setAttribute("aria-posinset", n + 1);
    element.setAttribute("aria-selected", String(n === this.current));
    this.#shown.set(n, item);
    this.#fill(item, n);
    this.inner.append(element);
  }

  #made() {
    const element = make("div", { role: "option" });
    const cell = make("span", { class: "cell" });
    const picture = make("img", { alt: "", draggable: "false", decoding: "async" });
    picture.addEventListener("load", () => element.classList.add("seen"));
    picture.addEventListener("error", () => element.classList.toggle("broken", picture.hasAttribute("src")));
    const [name, badge] = [make("small"), make("span", { class: "badge number" })];
    cell.append(picture, badge);
    element.append(cell, name);
    return { element, picture, name, badge };
  }

  #fill({ element, name, badge }, n) {
    const entry = this.entry(n);
    const words = entry?.name || `picture ${n}`;
    const objects = entry?.objects ?? null;
    // What all names begin with would be all that is read of them.
    name.textContent = this.source && words.startsWith(this.source) ? words.slice(this.source.length) : words;
    badge.textContent = objects ?? "";
    element.title = entry?.problem ?? words;
    element.classList.toggle("edited", Boolean(entry?.edited));
    const told = [words, objects === null ? "" : counted(objects, "object"), entry?.edited ? "edited" : ""];
    element.setAttribute("aria-label", told.filter(Boolean).join(", "));
  }

  // Thumbnails and words of what is in sight; requests for what is not any more are dropped.
  #load() {
    const [first, last] = this.#sight(1);
    for (let n = first; n < last; n++) {
      const picture = this.#shown.get(n)?.picture;
      if (picture && !picture.hasAttribute("src")) picture.src = thumbnailAt(n, this.origin);
    }
    const blocks = new Set();
    for (let n = first; n < last; n++) blocks.add(Math.floor(n / BLOCK));
    for (const [block, asked] of this.#asking) if (!blocks.has(block)) asked.abort();
    for (const block of blocks) if (!this.#blocks.has(block) || this.stale.has(block)) this.#ask(block);
  }

  async #ask(block) {
    if (this.#asking.has(block)) return;
    const asked = new AbortController();
    this.#asking.set(block, asked);
    this.stale.delete(block);
    try {
      const { pictures } = await getPictures(block * BLOCK, BLOCK, asked.signal);
      this.#blocks.set(block, pictures);
      for (const [n, item] of this.#shown) if (Math.floor(n / BLOCK) === block) this.#fill(item, n);
    } catch (complaint) {
      if (complaint.name !== "AbortError") complain(complaint.message);
    } finally {
      this.#asking.delete(block);
    }
    if (this.stale.has(block)) this.#load(); // it has changed meanwhile
  }
}
