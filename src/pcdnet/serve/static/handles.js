// Handles on the stage that turn and scale the selected object, by pointer or keyboard, where the model's objects do that.

import { find, make } from "./dom.js";
import { degrees, poseOf } from "./poses.js";
import { report } from "./words.js";

const AWAY = 28; // dots on the screen from the box to the handle that turns
const INSET = 12; // half a handle: none lies beyond the stage
export const TURN = [1, 15]; // degrees of a key, alone and with Shift; with Shift a drag goes through multiples, too
export const GROWTH = [1.02, 1.1]; // the same for sizes, as factors
const SIZE_STEP = 0.1; // scales that a drag goes through with Shift
const UP = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 };

// An angle or a size that a key makes of another; the server's angles grow counter-clockwise.
export const turned = (angle, way, far) => angle + way * TURN[Number(far)];
export const grown = (scale, way, far) => scale * GROWTH[Number(far)] ** way;

export class Handles {
  constructor(scene, stage) {
    Object.assign(this, { scene, stage });
    this.place = find("handles");
    this.turn = this.#handle("turn", "Angle", (way, far) => ({ angle: turned(this.pose.angle, way, far) }));
    this.size = this.#handle("size", "Size", (way, far) => ({ scale: grown(this.pose.scale, way, far) }));
    scene.listen(() => this.update());
  }

  get thing() {
    return this.scene.objects[this.scene.index(this.scene.selected)];
  }

  get pose() {
    return poseOf(this.thing);
  }

  update() {
    const { scene } = this;
    const poses = scene.bank?.poses;
    const shown = Boolean(poses && scene.size && this.thing && scene.shrunk === 1);
    const focused = [this.turn, this.size].find((handle) => handle === document.activeElement);
    this.turn.hidden = !shown || !poses.angles;
    this.size.hidden = !shown || !poses.scales;
    if (focused?.hidden) this.stage.element.focus({ preventScroll: true });
    if (!shown) return;
    const { angle, scale } = this.pose;
    const corners = scene.bank.sprites.corners(this.thing);
    const middle = [0, 1].map((axis) => (corners[0][axis] + corners[1][axis]) / 2);
    const away = [-Math.cos((angle * Math.PI) / 180) * AWAY, -Math.sin((angle * Math.PI) / 180) * AWAY];
    this.#put(this.turn, middle, away);
    this.#put(this.size, corners[2], [0, 0]);
    this.#tell(this.turn, angle, poses.angles && (poses.angles[0] < 0 ? [0, 360] : poses.angles), `${degrees(angle)} counter-clockwise`);
    this.#tell(this.size, scale, poses.scales, `${scale.toFixed(2)} times its prototype`);
  }

  #put(handle, point, away) {
    const [top, left] = point.map((place, axis) => {
      const side = this.scene.size[axis];
      return `clamp(${INSET}px, ${(100 * place) / side}% + ${away[axis]}px, 100% - ${INSET}px)`;
    });
    Object.assign(handle.style, { top, left });
  }

  #tell(handle, value, range, words) {
    if (!range) return;
    const about = { "aria-valuenow": Number(value.toFixed(3)), "aria-valuemin": range[0], "aria-valuemax": range[1], "aria-valuetext": words };
    for (const [name, each] of Object.entries(about)) handle.setAttribute(name, each);
  }

  #handle(kind, label, step) {
    const handle = make("div", { class: `handle ${kind}`, role: "slider", tabindex: "0", "aria-label": label, title: label });
    handle.hidden = true;
    handle.addEventListener("keydown", (event) => {
      if (!(event.key in UP) || event.altKey || event.ctrlKey || event.metaKey) return;
      this.#change(step(UP[event.key], event.shiftKey), true);
      report(handle.getAttribute("aria-valuetext"));
      event.preventDefault();
      event.stopPropagation();
    });
    let drag = null;
    handle.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      if (event.button !== 0) return;
      drag = { from: this.#polar(event), pose: this.pose };
      handle.setPointerCapture(event.pointerId);
    });
    handle.addEventListener("pointermove", (event) => {
      event.stopPropagation();
      if (drag) this.#change(kind === "turn" ? this.#turnedBy(drag, event) : this.#grownBy(drag, event), false);
    });
    for (const type of ["pointerup", "pointercancel"]) {
      handle.addEventListener(type, (event) => {
        event.stopPropagation();
        drag = null;
        this.scene.settle();
      });
    }
    this.place.append(handle);
    return handle;
  }

  // The original shows no edit: what is turned must be seen to turn.
  #change(changes, settle) {
    if (this.stage.kind === "image") this.stage.look("reconstruction");
    this.scene.repose(this.scene.selected, changes, settle);
  }

  #turnedBy({ from, pose }, event) {
    const angle = pose.angle + ((this.#polar(event).angle - from.angle) * 180) / Math.PI;
    return { angle: event.shiftKey ? Math.round(angle / TURN[1]) * TURN[1] : angle };
  }

  #grownBy({ from, pose }, event) {
    const scale = (pose.scale * this.#polar(event).far) / from.far;
    return { scale: event.shiftKey ? Math.max(SIZE_STEP, Math.round(scale / SIZE_STEP) * SIZE_STEP) : scale };
  }

  // Where the pointer is around the middle of the object: counter-clockwise from the right, and how far.
  #polar(event) {
    const [row, column] = this.stage.point(event);
    const [y, x] = this.scene.bank.sprites.middle(this.thing);
    return { angle: Math.atan2(y - row, column - x), far: Math.max(0.5, Math.hypot(row - y, column - x)) };
  }
}
