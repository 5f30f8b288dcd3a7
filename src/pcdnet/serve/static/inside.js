// Inside the PC cell: the localization map of a prototype, and greedy selection step by step.

import { inspect, numbers } from "./api.js";
import { check, dots, find, make, number, radios } from "./dom.js";
import { paint, show, view } from "./painter.js";
import { poseWords } from "./poses.js";
import { complain } from "./words.js";

const [WIDEST, HIGHEST] = [480, 360];
const ROOM = 26; // dots on the screen for the little picture of a pose
const WHERE = "How well a prototype fits with its middle at each place: bright is likely. Rings are the peaks that are tried.";
const TRIED = " It is tried in these poses, each with the height of its highest peak; choose one to see its map.";
const WHY = "Greedy selection takes, one after the other, what lowers the error most.";
const FITTED =
  " What was proposed in the poses on the left was turned, sized and moved until it fitted, one by one; selection chooses among these fitted poses. In brackets is the pose that was proposed.";

// From dark over violet and orange to a pale yellow, in equal steps of lightness.
const RAMP = [[8, 6, 20], [58, 20, 92], [140, 38, 108], [214, 78, 74], [250, 150, 50], [252, 232, 160]];

function ramp(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  return RAMP[low].map((value, c) => value + (place - low) * (RAMP[low + 1][c] - value));
}

const high = (height) => (Math.abs(height) < 1 ? height.toFixed(3) : number(height));
const samePose = (one, other) => ["angle", "scale", "mirrored"].every((name) => one?.[name] === other?.[name]);
// A candidate, or an object, as the painter takes objects.
const thingOf = ({ pose = {}, ...thing }) => ({ ...thing, ...pose });

function drawn(data) {
  const canvas = make("canvas");
  show(canvas, data);
  return canvas;
}

// How many peaks there are, and how high they are, in words.
function heights(peaks) {
  if (peaks.length === 0) return "no peak is tried";
  const [first, last] = [peaks[0], peaks.at(-1)].map(high);
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
    this.pose = null; // the number of the coarse pose whose map is shown; null for the one that fits best
    this.found = null;
    this.panel.addEventListener("toggle", () => this.refresh());
    find("step").addEventListener("input", () => this.#step());
    new ResizeObserver(() => this.found && this.#draw()).observe(this.panel);
    this.renamed();
  }

  renamed() {
    this.kinds = this.scene.bank.picker("Prototype whose map is shown", (p) => {
      this.prototype = p;
      this.pose = null;
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
    this.pose = null;
    check(this.kinds, this.prototype);
    this.refresh();
  }

  async refresh() {
    if (!this.panel.open || !this.scene.size) return;
    const asked = ++this.#asked;
    try {
      const found = await inspect(this.scene.message, this.prototype, this.pose);
      if (asked !== this.#asked) return;
      const fresh = this.found === null;
      this.found = found;
      this.heat = numbers(found.map.heat);
      this.image = this.scene.image;
      if (fresh) this.#begin();
      this.#showPoses();
      this.#draw();
    } catch (complaint) {
      complain(complaint.message);
    }
  }

  #begin() {
    find("where-words").textContent = WHERE + (this.found.map.poses ? TRIED : "");
    find("why-words").textContent = WHY + (this.found.fitted ? FITTED : "");
    const step = find("step");
    step.max = this.found.steps.length - (this.found.refined ? 0 : 1);
    step.value = Math.min(1, step.max);
  }

  // The coarse poses of the prototype, each with the height of its best peak: a row for every size, a column for every angle.
  #showPoses() {
    const place = find("heat-poses");
    const { poses = [], pose, prototype } = this.found.map;
    place.hidden = poses.length < 2;
    if (place.hidden) return;
    const known = `${prototype} ${poses.map(({ height }) => height)}`;
    if (this.strip !== known) {
      this.strip = known;
      const { bank } = this.scene;
      const best = Math.max(...poses.map(({ height }) => height));
      const largest = Math.max(...poses.map(({ pose: { scale } }) => scale));
      const options = poses.map((tried, n) => {
        const content = make("span", { class: "tried" });
        content.append(bank.thumb(prototype, [1, 1, 1], (ROOM * tried.pose.scale) / largest, tried.pose), make("small", { class: "number" }, high(tried.height)));
        content.classList.toggle("best", tried.height === best);
        const words = poseWords(tried.pose, bank.poses) || "upright";
        return { value: n, label: `${words}: best peak ${high(tried.height)}`, content };
      });
      const group = radios("coarse", "Pose whose map is shown", options, (n) => {
        this.pose = n;
        this.refresh();
      });
      group.style.setProperty("--angles", new Set(poses.map(({ pose: { angle } }) => angle)).size);
      place.replaceChildren(group);
    }
    check(place, pose);
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
    const { step = 1 } = map;
    const [top, left] = [0, 1].map((axis) => (map.origin[axis] + map.middle[axis] - step / 2) * scale);
    context.drawImage(this.#glowing(rows, columns), left, top, columns * step * scale, rows * step * scale);
    const shown = map.poses?.[map.pose].pose;
    const mine = candidates.filter(({ prototype, pose }) => prototype === map.prototype && samePose(pose, shown));
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
    const name = [this.scene.bank.names[map.prototype], shown && poseWords(shown, this.scene.bank.poses)].filter(Boolean).join(", ");
    find("heat-words").textContent = `${name}: ${heights(mine.map(({ height }) => height))}`;
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
    const { poses } = this.scene.bank;
    const again = poses ? "Then the chosen objects are fitted together, and what is left is looked at again" : "Refinement then looks again";
    const end = poses
      ? "These objects were fitted together; some may have been added, exchanged or left out."
      : "An error was left, so the choices were reconsidered, and these explain the picture better.";
    find("refined").textContent = last ? end : `${again}: move the slider to its end.`;
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
    row.append(bank.thumb(proposal.prototype, proposal.colour, 28, proposal.pose && { angle: proposal.pose.angle, mirrored: proposal.pose.mirrored }), middle, make("span", { class: "number" }, number(proposal.gain)));
    const [top, left] = proposal.position.map((place) => Number(place.toFixed(1)));
    const { proposed, pose } = proposal;
    const found = pose && poseWords(pose, bank.poses);
    const from = proposed ? `, proposed as ${poseWords(proposed, bank.poses)}` : "";
    row.title = `${mark ? "chosen next" : "rival"}: row ${top}, column ${left}${found ? `; ${found}${from}` : ""}`;
    if (found) middle.append(make("small", { class: "words faint number" }, `${found}${proposed ? ` (${poseWords(proposed, bank.poses)})` : ""}`));
    for (const [type, shown] of [["pointerenter", [...chosen, proposal]], ["focus", [...chosen, proposal]], ["pointerleave", chosen], ["blur", chosen]]) {
      row.addEventListener(type, () => this.#picture(shown));
    }
    return row;
  }

  #picture(found) {
    const { bank, size, background } = this.scene;
    const objects = found.map(thingOf);
    const canvas = find("sofar");
    const painted = paint(bank, objects, size, this.image, background);
    const data = view("reconstruction", painted, objects, this.image, bank);
    show(canvas, data);
    const scale = this.#scale(canvas);
    canvas.style.width = `${size[1] * scale}px`;
  }
}
