// Inside the PC cell: the localization map of a prototype, and greedy selection step by step.

import { inspect, numbers } from "./api.js";
import { check, dots, find, make, number } from "./dom.js";
import { paint, show, view } from "./painter.js";
import { complain } from "./words.js";

const [WIDEST, HIGHEST] = [480, 360];

// From dark over violet and orange to a pale yellow, in equal steps of lightness.
const RAMP = [[8, 6, 20], [58, 20, 92], [140, 38, 108], [214, 78, 74], [250, 150, 50], [252, 232, 160]];

function ramp(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((value, c) => value + (place - low) * (RAMP[low + 1][c] - value));
}

function drawn(data) {
  const canvas = make("canvas");
  show(canvas, data);
  return canvas;
}

// How many peaks there are, and how high they are, in words.
function heights(peaks) {
  if (peaks.length === 0) return "no peak is tried";
  const [first, last] = [peaks[0], peaks.at(-1)].map((height) => (Math.abs(height) < 1 ? height.toFixed(3) : number(height)));
  if (peaks.length === 1) return `1 peak, of height ${first}`;
  return `${peaks.length} peaks, of heights from ${first} down to ${last}`;
}

export class Inside {
  #asked = 0;

  constructor(scene, minGain) {
    this.scene = scene;
    this.minGain = minGain;
    this.panel = find("inside");
    this.prototype = 0;
    this.found = null;
    this.panel.addEventListener("toggle", () => this.refresh());
    find("step").addEventListener("input", () => this.#step());
    new ResizeObserver(() => this.found && this.#draw()).observe(this.panel);
    this.renamed();
  }

  renamed() {
    this.kinds = this.scene.bank.picker("Prototype whose map is shown", (p) => {
      this.prototype = p;
      this.refresh();
    });
    find("heat-kinds").replaceChildren(this.kinds);
    check(this.kinds, this.prototype);
    if (this.found) this.#step();
  }

  // Another picture is on the bench.
  reset() {
    this.found = null;
    this.prototype = this.scene.objects[0]?.prototype ?? 0;
    check(this.kinds, this.prototype);
    this.refresh();
  }

  async refresh() {
    if (!this.panel.open || !this.scene.size) return;
    const asked = ++this.#asked;
    try {
      const found = await inspect(this.scene.message, this.prototype);
      if (asked !== this.#asked) return;
      const fresh = this.found === null;
      this.found = found;
      this.heat = numbers(found.map.heat);
      this.image = this.scene.image;
      if (fresh) this.#begin();
      this.#draw();
    } catch (complaint) {
      complain(complaint.message);
    }
  }

  #begin() {
    const step = find("step");
    step.max = this.found.steps.length - (this.found.refined ? 0 : 1);
    step.value = Math.min(1, step.max);
  }

  #draw() {
    this.#drawHeat();
    this.#step();
  }

  #scale(canvas) {
    const [H, W] = this.scene.size;
    return dots(Math.min(Math.min(canvas.parentElement.clientWidth || 320, WIDEST) / W, HIGHEST / H));
  }

  #drawHeat() {
    const { map, candidates } = this.found;
    const [H, W] = this.scene.size;
    const canvas = find("heat");
    const scale = this.#scale(canvas);
    canvas.width = Math.round(W * scale);
    canvas.height = Math.round(H * scale);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.#dimmed(), 0, 0, W * scale, H * scale);
    const [rows, columns] = map.heat.shape;
    const [top, left] = [0, 1].map((axis) => (map.origin[axis] + map.middle[axis] - 0.5) * scale);
    context.drawImage(this.#glowing(rows, columns), left, top, columns * scale, rows * scale);
    const mine = candidates.filter((candidate) => candidate.prototype === map.prototype);
    mine.forEach((candidate, n) => {
      const [y, x] = [0, 1].map((axis) => (candidate.position[axis] + map.middle[axis]) * scale);
      context.lineWidth = n === 0 ? 2.5 : 1.5;
      for (const [ink, grow] of [["#000c", 1.2], ["#fff", 0]]) {
        context.strokeStyle = ink;
        context.beginPath();
        context.arc(x, y, Math.max(6, 1.1 * scale) + grow, 0, 2 * Math.PI);
        context.stroke();
      }
    });
    find("heat-words").textContent = `${this.scene.bank.names[map.prototype]}: ${heights(mine.map(({ height }) => height))}`;
    canvas.setAttribute("aria-label", `Localization map of ${this.scene.bank.names[map.prototype]}`);
  }

  // The map alone: what is low is clear.
  #glowing(rows, columns) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of this.heat) [low, high] = [Math.min(low, value), Math.max(high, value)];
    low = Math.max(low, 0);
    const data = new ImageData(columns, rows);
    this.heat.forEach((value, at) => {
      const share = (value - low) / (high - low || 1);
      if (share > 0.02) data.data.set([...ramp(share), 255 * Math.min(1, 2 * share)], 4 * at);
    });
    return drawn(data);
  }

  // The picture in the dark, so that one sees what the heat lies over.
  #dimmed() {
    const [H, W] = this.scene.size;
    const { C } = this.scene.bank;
    const data = new ImageData(W, H);
    for (let at = 0; at < H * W; at++) {
      const light = Math.max(...this.image.subarray(at * C, at * C + C)) / 255;
      data.data.set([...RAMP[0].map((value) => value + 62 * light), 255], 4 * at);
    }
    return drawn(data);
  }

  #step() {
    if (!this.found) return;
    const { steps, refined, error } = this.found;
    const n = Number(find("step").value);
    const last = refined && n === steps.length;
    const choices = `After ${n} ${n === 1 ? "choice" : "choices"} the error is ${number(steps[n]?.error)}.`;
    find("step-words").textContent = last ? `After refinement the error is ${number(error)}.` : choices;
    find("rivals").hidden = last;
    find("refined").hidden = !refined;
    find("refined").textContent = last
      ? "An error was left, so the choices were reconsidered, and these explain the picture better."
      : "Refinement then looks again: move the slider to its end.";
    if (last) {
      this.#picture(this.scene.found);
      return;
    }
    const step = steps[n];
    const chosen = steps.slice(0, n).map(({ chosen }) => chosen);
    this.#picture(chosen);
    const place = find("rivals");
    place.replaceChildren();
    const best = Math.max(step.chosen?.gain ?? 0, step.rivals[0]?.gain ?? 0, this.minGain);
    if (step.chosen) place.append(this.#rival(step.chosen, best, chosen, "won"));
    else place.append(make("p", { class: "faint" }, this.#why(step)));
    for (const rival of step.rivals.filter(({ gain }) => gain > 0.005)) place.append(this.#rival(rival, best, chosen, ""));
  }

  #why(step) {
    const least = number(this.minGain);
    if ((step.rivals[0]?.gain ?? 0) < this.minGain) return `It ends here: nothing would lower the error by ${least} or more.`;
    return "It ends here: there are as many objects as the model may find.";
  }

  #rival(proposal, best, chosen, mark) {
    const { bank } = this.scene;
    const row = make("div", { class: `rival ${mark}`, tabindex: "0" });
    const words = make("span", { class: "words" }, bank.names[proposal.prototype]);
    const meter = make("meter", { min: 0, max: best, value: Math.max(0, proposal.gain), "aria-label": "error reduction" });
    const middle = make("span", {});
    middle.append(words, meter);
    row.append(bank.thumb(proposal.prototype, proposal.colour, 28), middle, make("span", { class: "number" }, number(proposal.gain)));
    row.title = `${mark ? "chosen next" : "rival"}: row ${proposal.position[0]}, column ${proposal.position[1]}`;
    for (const [type, shown] of [["pointerenter", [...chosen, proposal]], ["focus", [...chosen, proposal]], ["pointerleave", chosen], ["blur", chosen]]) {
      row.addEventListener(type, () => this.#picture(shown));
    }
    return row;
  }

  #picture(objects) {
    const { bank, size, background } = this.scene;
    const canvas = find("sofar");
    const painted = paint(bank, objects, size, this.image, background);
    const data = view("reconstruction", painted, objects, this.image, bank);
    show(canvas, data);
    const scale = this.#scale(canvas);
    canvas.style.width = `${size[1] * scale}px`;
  }
}
