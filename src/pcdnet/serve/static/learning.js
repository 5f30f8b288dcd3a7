// Learning again from here: its progress, and what was known before beside what is known after.

import { adoptLearned, getLearning, learnedPicture, numbers, restoreFormer, startLearning, stopLearning } from "./api.js";
import { dots, find, make, number, percent } from "./dom.js";
import { show } from "./painter.js";
import { Polling } from "./polling.js";
import { attempt, complain, counted, lasting, report, sure } from "./words.js";

const COMPARED = 4; // pictures that are shown before and after
const WIDEST = 170; // pixels on the screen of each

// What is compared: words, how to write it, and whether more is better (1), or less (-1).
const FIGURES = [
  ["explained", "of the error explained", percent, 1],
  ["mse", "mean squared error", (value) => value.toPrecision(3), -1],
  ["f1", "F1, by the ground truth", (value) => value.toFixed(3), 1],
  ["objects", "objects a picture", number, 0],
  ["prototypes", "prototypes", (value) => `${value}`, 0],
];

export class Learning {
  // `pictures` gives the numbers that are worth comparing; `renewed` is called when other weights are in their place.
  constructor(bench, pictures, renewed) {
    Object.assign(this, { bench, pictures, renewed, state: null });
    this.polling = new Polling(getLearning, (state) => this.#show(state));
    this.polling.failed = (complaint) => complain(complaint.message);
    find("learning").addEventListener("submit", (event) => {
      event.preventDefault();
      this.start(Number(find("minutes").value));
    });
    find("learning-cancel").addEventListener("click", () => this.#stop("Cancelled; the run is as it was."));
    find("restore").addEventListener("click", () => this.restore());
  }

  async start(minutes) {
    await this.bench.keeping.settled();
    this.state = null;
    find("learn").disabled = true;
    await attempt(() => startLearning(minutes));
    await this.polling.now();
  }

  async #stop(words) {
    await attempt(stopLearning);
    report(words);
    await this.polling.now();
  }

  async adopt() {
    const lost = this.bench.guests.some(({ edited }) => edited);
    const words = "Edits of pictures that were dropped here were made with the old prototypes, and would be gone.";
    if (lost && !(await sure(words, "Take the new ones", "Not yet"))) return;
    await this.#replace(adoptLearned, "The new prototypes are in use; the old ones are kept with the run.");
  }

  async restore() {
    if (await sure("The prototypes from before learning again come back in place of these.", "Give them back", "Keep these")) {
      await this.#replace(restoreFormer, "The old prototypes are back.");
    }
  }

  async #replace(ask, words) {
    const done = await attempt(async () => ((await ask()), true));
    if (!done) return;
    await this.renewed();
    await this.polling.now();
    report(words);
  }

  #show(state) {
    const before = this.state?.state;
    this.state = state;
    const running = state.state === "running";
    find("learning").hidden = running || state.state === "done" || !this.bench.model.renaming;
    find("learn").disabled = false;
    find("learning-now").hidden = !running;
    find("restore").hidden = running || state.state === "done" || !this.bench.model.renaming || !state.former;
    if (running) this.#progress(state);
    else if (state.state === "failed" && before === "running") complain(`Nothing was learned: ${state.message}`);
    if (state.state === "done") {
      if (before !== "done") this.#compare(state, before === "running");
    } else find("outcome").hidden = true;
    return running;
  }

  #progress({ step, steps, eta, loss, message }) {
    const bar = find("learned");
    if (steps) bar.value = step / steps;
    else bar.removeAttribute("value");
    const under = steps > 0 && step < steps;
    const words = [under ? `step ${step.toLocaleString("en")} of ${steps.toLocaleString("en")}` : message || "getting ready", lasting(eta)];
    find("learning-words").textContent = [...words, loss === null ? "" : `loss ${loss.toPrecision(3)}`].filter(Boolean).join(" · ");
  }

  // Before and after: figures, then pictures, then what to do. Who waited for it is taken there.
  #compare({ before, after, reasons }, waited) {
    const place = find("outcome");
    const title = make("h3", { tabindex: "-1" }, "Before and after");
    place.replaceChildren(title, figures(before, after));
    if (reasons?.length) {
      const list = make("ul", { class: "faint reasons" });
      list.append(...reasons.map((reason) => make("li", {}, reason)));
      place.append(list);
    }
    const pictures = make("div", { class: "compared" });
    const acts = make("div", { class: "bar" });
    const take = make("button", { type: "button", class: "main" }, "Take the new prototypes");
    take.addEventListener("click", () => this.adopt());
    const leave = make("button", { type: "button" }, "Discard them");
    leave.addEventListener("click", () => this.#stop("Discarded; the run is as it was."));
    acts.append(take, leave);
    place.append(pictures, acts);
    place.hidden = false;
    if (waited) {
      title.focus({ preventScroll: true });
      place.scrollIntoView({ block: "nearest" });
    }
    report("Learning is done. Compare before and after, then take the new prototypes or discard them.");
    this.#fill(pictures);
  }

  async #fill(place) {
    for (const n of this.pictures().slice(0, COMPARED)) {
      const both = await attempt(() => learnedPicture(n));
      if (!both || !place.isConnected) return;
      place.append(compared(n, both));
    }
  }
}

function figures(before, after) {
  const table = make("table", { class: "figures number" });
  const head = make("tr");
  head.append(make("td"), make("th", { scope: "col" }, "before"), make("th", { scope: "col" }, "after"));
  table.append(head);
  for (const [key, words, write, sense] of FIGURES) {
    if ([before?.[key], after?.[key]].some((value) => value === null || value === undefined)) continue;
    const row = make("tr");
    const change = after[key] - before[key];
    const cell = make("td", { class: sense * change > 0 ? "better" : sense * change < 0 ? "worse" : "" }, write(after[key]));
    if (sense && change) cell.append(make("small", { "aria-hidden": "true" }, change > 0 ? " ▲" : " ▼"));
    row.append(make("th", { scope: "row" }, words), make("td", {}, write(before[key])), cell);
    table.append(row);
  }
  return table;
}

// A picture, and what is made of it before and after.
function compared(n, { before, after }) {
  const row = make("figure");
  row.append(make("figcaption", { class: "faint" }, `picture ${n}`));
  for (const [array, words, found] of [[before.image, "picture"], [before.reconstruction, "before", before], [after.reconstruction, "after", after]]) {
    const one = make("div");
    const canvas = make("canvas", { role: "img", "aria-label": `${words}, picture ${n}` });
    show(canvas, asImage(array));
    const scale = dots(WIDEST / Math.max(...array.shape.slice(0, 2)));
    canvas.style.width = `${array.shape[1] * scale}px`;
    one.append(canvas, make("small", {}, found ? `${words}: ${counted(found.scene.objects.length, "object")}` : words));
    row.append(one);
  }
  return row;
}

function asImage(array) {
  const [height, width, channels] = array.shape;
  const values = numbers(array);
  const data = new ImageData(width, height);
  for (let at = 0; at < height * width; at++) {
    for (let c = 0; c < 3; c++) data.data[4 * at + c] = values[at * channels + (channels === 1 ? 0 : c)];
    data.data[4 * at + 3] = 255;
  }
  return data;
}
