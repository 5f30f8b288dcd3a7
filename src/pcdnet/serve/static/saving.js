// Downloads: the picture on the bench, or the whole folder, in every format that the server offers.

import { askResults, exported, getFormats, resultsAt, resultsOf } from "./api.js";
import { check, find, make, radios } from "./dom.js";
import { attempt, lasting } from "./words.js";

const PAUSE = 500; // milliseconds from one look at the results to the next
const WORDS = {
  png: ["PNG", "what is shown"],
  json: ["JSON", "objects, places, colours"],
  coco: ["COCO", "for training others"],
  csv: ["CSV", "a table for spreadsheets"],
  parquet: ["Parquet", "a large table"],
  yolo: ["YOLO", "boxes as text files"],
  "label-studio": ["Label Studio", "tasks with predictions"],
};
const ENDINGS = { "label-studio": "label-studio.json", coco: "coco.json", yolo: "yolo.txt" };

export class Saving {
  constructor(bench) {
    this.bench = bench;
    this.format = "json";
    this.asked = 0;
    find("save").addEventListener("click", () => this.open());
    find("save-one").addEventListener("click", () => attempt(() => this.one()));
    find("save-all").addEventListener("click", () => this.all());
    find("saving").addEventListener("close", () => this.#progress(null));
  }

  async open() {
    if (!this.group) {
      const formats = await attempt(getFormats);
      if (!formats) return;
      const options = formats.map((format) => {
        const [name, words] = WORDS[format] ?? [format, ""];
        const content = make("span");
        content.append(make("b", {}, name), make("small", {}, words));
        return { value: format, label: name, content };
      });
      this.group = radios("formats", "Format", options, (format) => (this.format = format));
      this.group.id = "formats";
      find("formats").replaceWith(this.group);
    }
    check(this.group, this.format);
    const { scene, strip, model } = this.bench;
    find("save-one").disabled = scene.shrunk > 1;
    find("save-all").hidden = strip.count === 0 || !model.renaming;
    find("save-all").textContent = `The whole folder (${strip.count.toLocaleString("en")})`;
    find("saving").showModal();
  }

  // The picture, with its edits; objects of hidden kinds are seen in it, but are no results.
  async one() {
    const { scene, stage } = this.bench;
    const { format } = this;
    const seen = format === "png" && ["image", "reconstruction", "residual"].includes(stage.kind);
    const blob = await exported({ scene: scene.toMessage(seen ? scene.objects : scene.visible), format, view: stage.kind });
    const name = (scene.name || "scene").replace(/\.[a-z]+$/i, "").replace(/[^\w-]+/g, "-");
    const address = URL.createObjectURL(blob);
    this.#save(address, `${name}.${format === "png" ? `${stage.kind}.png` : (ENDINGS[format] ?? format)}`);
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  // The whole folder: the server makes it, and counts first what is not counted yet.
  async all() {
    const mine = ++this.asked;
    const { format } = this;
    await this.bench.keeping.settled();
    await attempt(async () => {
      let state = await askResults(format);
      this.bench.counting?.();
      while (mine === this.asked && find("saving").open && state && state.state === "running") {
        this.#progress(state);
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
        state = await resultsOf(format);
      }
      if (mine !== this.asked || !find("saving").open) return;
      this.#progress(null);
      if (state?.state === "failed") find("saving-words").textContent = state.message;
      else this.#save(resultsAt(format), "");
    });
    if (mine === this.asked) find("saving-progress").hidden = true;
  }

  #progress(state) {
    find("saving-progress").hidden = state === null;
    find("saving-progress").value = state?.total ? state.done / state.total : 0;
    find("saving-words").textContent = state ? [`${state.done} of ${state.total}`, lasting(state.eta)].filter(Boolean).join(", ") : "";
    if (state === null) find("saving-words").textContent = "";
  }

  #save(address, name) {
    make("a", { href: address, download: name }).click();
  }
}
