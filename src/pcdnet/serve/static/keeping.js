// Edits on their way to the run: kept soon after they are made, in the order in which they were made, and again until it works.

import { discardEdits, keepEdits } from "./api.js";
import { find, make } from "./dom.js";

const PAUSE = 300; // milliseconds after the last edit
const [AGAIN, LATEST] = [1000, 15_000]; // milliseconds until it is tried again, at first and at most

export class Keeping {
  #waiting = new Map(); // the edited scene by picture, or null to discard its edits; the oldest first
  #timer = null;
  #busy = false;
  #listeners = [];

  // `kept` is called when something has arrived.
  constructor(kept) {
    this.kept = kept;
    this.delay = AGAIN;
  }

  get pending() {
    return this.#waiting.size;
  }

  keep(n, scene) {
    this.#waiting.set(n, scene);
    this.#say("keeping…");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#work(), PAUSE);
  }

  // What waits for a picture, or for all, is not sent any more.
  forget(n = null) {
    if (n === null) this.#waiting.clear();
    else this.#waiting.delete(n);
    this.#settle();
  }

  // What waits for a picture: a scene, null if its edits are discarded, or undefined.
  of(n) {
    return this.#waiting.get(n);
  }

  // When nothing is on its way any more.
  settled() {
    if (this.#waiting.size === 0) return Promise.resolve();
    this.#hurry();
    return new Promise((resolve) => this.#listeners.push(resolve));
  }

  #hurry() {
    clearTimeout(this.#timer);
    this.#work();
  }

  async #work() {
    if (this.#busy) return;
    this.#busy = true;
    while (this.#waiting.size) {
      const [n, scene] = this.#waiting.entries().next().value;
      try {
        await (scene ? keepEdits(n, scene) : discardEdits(n));
        if (this.#waiting.get(n) === scene) this.#waiting.delete(n);
        this.delay = AGAIN;
        this.#settle();
        this.kept(n);
      } catch (complaint) {
        this.#fail(n, complaint.message);
        await new Promise((resolve) => {
          this.again = resolve;
          setTimeout(resolve, this.delay);
        });
        this.delay = Math.min(2 * this.delay, LATEST);
      }
    }
    this.#busy = false;
  }

  #settle() {
    find("unkept").hidden = true;
    if (!this.#waiting.size) this.#say("kept");
    if (this.#waiting.size) return;
    for (const resolve of this.#listeners.splice(0)) resolve();
  }

  #fail(n, sentence) {
    const now = make("button", { type: "button" }, "Try now");
    now.addEventListener("click", () => this.again?.());
    const words = `The edits of picture ${n} are not kept yet: ${sentence} They stay in this page, and are tried again.`;
    find("unkept").replaceChildren(make("span", {}, words), now);
    find("unkept").hidden = false;
    this.#say("not kept");
  }

  #say(words) {
    find("kept").textContent = words;
    find("kept").classList.toggle("bad", words === "not kept");
  }
}
