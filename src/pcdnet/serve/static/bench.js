// What is on the bench: a picture of the strip or one that was dropped, and what becomes of its edits.

import { decomposeFile, decomposePicture } from "./api.js";
import { find, make, number, percent } from "./dom.js";
import { complain, counted, hush, report, sure } from "./words.js";

const GUESTS = 12; // dropped pictures that are kept in the page at most, beside edited ones

export class Bench {
  #asked = 0;
  #last = null; // the objects when they were looked at last

  // `parts` are the model (which can change), scene, stage, inside, strip and keeping.
  constructor(parts) {
    Object.assign(this, parts);
    this.number = null; // in the strip
    this.guest = null; // or a picture that was dropped: { name, file, fit, explained, objects }
    this.guests = [];
    this.own = new Map(); // edits of the strip's pictures that the server does not keep
    this.scene.listen(() => this.#changed());
    find("discard").addEventListener("click", async () => {
      if (await sure("The edits of this picture give way to what was found.", "Discard them")) this.scene.discard();
    });
    addEventListener("beforeunload", (event) => this.unsaved && event.preventDefault());
  }

  // Whether anything would be lost with the page.
  get unsaved() {
    return this.keeping.pending > 0 || this.own.size > 0 || this.guests.some(({ edited }) => edited);
  }

  async open(n, fit = false) {
    this.strip.show(n);
    const waiting = this.keeping.of(n);
    const shown = await this.#show(() => decomposePicture(n, fit), this.#resizing(() => this.open(n, true)));
    if (!shown) return;
    const [explained, done] = shown;
    if (explained.note) complain(explained.note);
    this.number = n;
    this.guest = null;
    const edits = waiting === undefined ? explained.edits?.objects : waiting?.objects;
    this.strip.mark(n, { edited: Boolean(edits) });
    done(this.own.get(n) ?? edits);
  }

  // Of a folder with nothing in it, or before the first picture, there is nothing to open again.
  async reopen() {
    if (this.guest) await this.#read(this.guest);
    else if (this.number !== null) await this.open(this.number);
  }

  async openFile(file, fit = false) {
    if (file.size > this.model.most_bytes) {
      complain(`${file.name} has more than ${this.model.most_bytes >> 20} MiB; choose a smaller picture.`);
      return;
    }
    const known = this.guests.find((guest) => guest.file === file);
    await this.#read(known ? Object.assign(known, { fit }) : { name: file.name || "pasted.png", file, fit });
  }

  async #read(guest) {
    const cure = guest.fit ? null : this.#resizing(() => this.openFile(guest.file, true));
    const shown = await this.#show(() => decomposeFile(guest.file, guest.fit), cure);
    if (!shown) return;
    Object.assign(guest, { explained: shown[0], objects: null, edited: false });
    if (!this.guests.includes(guest)) this.guests.push(guest);
    const idle = this.guests.filter((each) => !each.edited && each !== guest);
    if (this.guests.length > GUESTS && idle.length) this.guests.splice(this.guests.indexOf(idle[0]), 1);
    this.#welcome(guest, shown[1]);
    if (cure) this.#hintAtSize(cure);
  }

  #resizing(act) {
    return this.model.size && { words: `Resize it to ${this.model.size.join("×")}`, act };
  }

  async openGuest(guest) {
    if (!guest.explained) return this.#read(guest); // other prototypes have come since
    const shown = await this.#show(async () => guest.explained);
    return shown && this.#welcome(guest, shown[1], guest.objects);
  }

  #welcome(guest, done, objects = null) {
    this.strip.show(null);
    this.number = null;
    this.guest = guest;
    done(objects);
  }

  async away(guest) {
    if (guest.edited && !(await sure(`The edits of ${guest.name} are kept in this page alone, and would be gone.`, "Put it away"))) return;
    this.guests.splice(this.guests.indexOf(guest), 1);
    if (this.guest === guest) this.strip.go(0);
    else this.#showGuests();
  }

  // Lets the last one who asks onto the bench; who gets there has the answer, and says when it is known what it is.
  async #show(ask, cure = null) {
    const mine = ++this.#asked;
    hush();
    find("bench").setAttribute("aria-busy", "true");
    try {
      const explained = await ask();
      if (mine !== this.#asked) return null;
      return [explained, (objects) => this.#put(explained, objects)];
    } catch (complaint) {
      if (mine === this.#asked) complain(complaint.message, { cure: complaint.fit ? cure : null });
      return null;
    } finally {
      if (mine === this.#asked) find("bench").removeAttribute("aria-busy");
    }
  }

  #put(explained, objects) {
    const { scene, stage, inside } = this;
    const whole = !explained.shrunk;
    find("bench").hidden = find("prototypes").hidden = false;
    find("inside").hidden = !whole;
    find("add").disabled = !whole;
    this.#last = null; // what is put here is no edit
    stage.kind = "image";
    scene.open(explained);
    if (objects && whole) scene.lay(objects);
    stage.look(scene.edited ? "reconstruction" : "image");
    this.#last = scene.objects;
    inside.reset();
    this.#tell();
    report(`${scene.name || "The picture"}: ${counted(scene.found.length, "object")} found.`);
    this.opened?.();
  }

  #changed() {
    const { scene } = this;
    if (this.#last === null || scene.changing || scene.objects === this.#last) return;
    this.#last = scene.objects;
    if (this.stage.kind === "image") this.stage.look("reconstruction"); // an edit is not seen in the original
    if (this.guest) Object.assign(this.guest, { objects: scene.edited ? scene.objects : null, edited: scene.edited });
    else if (this.number !== null) this.#keep(this.number);
    this.#tell();
  }

  #keep(n) {
    const { scene } = this;
    const counted = (this.strip.entry(n)?.objects ?? null) !== null;
    this.strip.mark(n, { edited: scene.edited, ...(counted ? { objects: scene.visible.length } : {}) });
    if (this.model.renaming) this.keeping.keep(n, scene.edited ? scene.toEdits() : null);
    else if (scene.edited) this.own.set(n, scene.objects);
    else this.own.delete(n);
    this.kept?.();
  }

  // All edits of the strip's pictures are gone.
  discarded() {
    this.own.clear();
    if (this.number === null) return;
    this.#last = null;
    this.scene.discard();
    this.#last = this.scene.objects;
    this.#tell();
  }

  #tell() {
    const { scene } = this;
    const { error, errors } = scene.painted;
    find("discard").hidden = !scene.edited;
    find("picture-name").textContent = scene.name;
    find("error").textContent = `error ${number(error)}${errors[0] > 0 ? `, ${percent(1 - error / errors[0])} explained` : ""}`;
    const limit = this.model.objects;
    find("limit").hidden = !scene.limited;
    find("limit").textContent = `${counted(scene.found.length, "object")}: as many as the model can find, so there may be more. Train it with --model.max-objects ${2 * limit}.`;
    if (!this.model.renaming && this.own.size) find("kept").textContent = "edits stay in this page alone";
    else if (this.guest) find("kept").textContent = this.guest.edited ? "edits stay in this page alone" : "";
    else if (!scene.edited && !this.keeping.pending) find("kept").textContent = "";
    this.#showGuests();
  }

  #showGuests() {
    const place = find("guests");
    place.hidden = this.guests.length === 0;
    place.replaceChildren(
      ...this.guests.map((guest) => {
        const both = make("span", { class: "joined" });
        const chip = make("button", { type: "button", "aria-pressed": String(guest === this.guest) }, `${guest.name}${guest.edited ? " · edited" : ""}`);
        chip.addEventListener("click", () => this.openGuest(guest));
        const away = make("button", { type: "button", "aria-label": `Put ${guest.name} away` }, "✕");
        away.addEventListener("click", () => this.away(guest));
        both.append(chip, away);
        return both;
      }),
    );
  }

  // Any size can be decomposed, but objects of another size than those that were learned are not found.
  #hintAtSize(cure) {
    const { scene, model } = this;
    if (scene.shrunk > 1) {
      const words = `This picture is ${scene.whole.join("×")}, and shown ${scene.shrunk} times smaller; pcdnet decompose writes what was found in it.`;
      complain(words, { gentle: true });
    } else if (model.size && scene.size.some((length, axis) => length !== model.size[axis])) {
      const words = `This picture is ${scene.size.join("×")}; the model learned from ${model.size.join("×")}, and knows objects of that scale.`;
      complain(words, { cure, gentle: true });
    }
  }
}
