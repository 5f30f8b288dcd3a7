// Poses: prototypes turned, scaled, mirrored and moved by fractions of a pixel, as the server paints them; tests compare.

const FULL_TURN = 360;
const MARGIN = 2; // pixels around an object in a frame of its own
const KEPT = 256; // painted prototypes that are kept
const OPAQUE = 0.5;

const modulo = (value, turn = FULL_TURN) => ((value % turn) + turn) % turn;
const nearest = (value) => Math.floor(value + 0.5);

// The pose of an object, upright where nothing is said of it.
export const poseOf = ({ angle = 0, scale = 1, mirrored = false }) => ({ angle, scale, mirrored });

// An object as it is sent: without a pose if it has none.
export function placed({ prototype, position, colour, angle, scale, mirrored }) {
  const pose = angle === undefined ? {} : { angle, scale, mirrored };
  return { prototype, position, colour, ...pose };
}

export const degrees = (angle) => `${(Math.round(10 * modulo(angle)) % (10 * FULL_TURN)) / 10}°`;

// A pose in words; nothing of what a model's objects do not do.
export function poseWords(thing, poses) {
  if (!poses) return "";
  const { angle, scale, mirrored } = poseOf(thing);
  const words = [poses.angles && degrees(angle), poses.scales && `${scale.toFixed(2)}×`, mirrored && "mirrored"];
  return words.filter(Boolean).join(", ");
}

// The nearest angle and scale that a model's objects have.
export function within({ angle, scale, mirrored }, { angles, scales, mirror }) {
  return { angle: angles ? nearestAngle(angle, angles) : 0, scale: scales ? Math.min(Math.max(scale, scales[0]), scales[1]) : 1, mirrored: mirror && mirrored };
}

function nearestAngle(angle, [low, high]) {
  const beyond = modulo(angle - low);
  if (beyond <= high - low) return modulo(angle);
  return modulo(beyond - (high - low) < FULL_TURN - beyond ? high : low);
}

// A prototype as it is painted for an object: where in the picture, its values, and the box of what is opaque of it.
export class Sprites {
  #kept = new Map();

  constructor(bank, poses) {
    this.bank = bank;
    const frame = [bank.h + 2 * MARGIN, bank.w + 2 * MARGIN];
    this.poses = poses ?? { angles: null, scales: null, mirror: false, subpixel: false, frame, interpolated: false };
  }

  of(thing) {
    const { bank } = this;
    const { prototype, position } = thing;
    const { angle, scale, mirrored } = poseOf(thing);
    const upright = modulo(angle) === 0 && scale === 1 && !mirrored;
    if (upright && position.every(Number.isInteger)) {
      const { h, w, prototypes, masks, boxes } = bank;
      return { row: position[0], column: position[1], h, w, first: prototype * h * w, prototypes, masks, box: boxes[prototype] };
    }
    const exact = position.map(Math.fround);
    const [row, column] = exact.map(nearest);
    const [down, right] = [exact[0] - row, exact[1] - column];
    const key = [prototype, angle, scale, mirrored, down, right].join(" ");
    if (!this.#kept.has(key)) {
      if (this.#kept.size >= KEPT) this.#kept.clear();
      this.#kept.set(key, this.#made(prototype, { angle, scale, mirrored, down, right, upright }));
    }
    const made = this.#kept.get(key);
    return { ...made, row: row - ((made.h - bank.h) >> 1), column: column - ((made.w - bank.w) >> 1) };
  }

  #made(prototype, pose) {
    const { bank, poses } = this;
    const [h, w] = this.#fits(pose) ? poses.frame : frameOf(bank, pose);
    const [prototypes, masks] = [bank.prototypes, bank.masks].map((values) => {
      const layer = values.subarray(prototype * bank.h * bank.w, (prototype + 1) * bank.h * bank.w);
      const make = pose.upright && !poses.interpolated ? moved : resampled;
      return make(layer, [bank.h, bank.w], pose, [h, w]);
    });
    return { h, w, first: 0, prototypes, masks, box: boxOf(masks, h, w) };
  }

  // Whether the frame of the model's poses is made for a pose.
  #fits({ angle, scale }) {
    const { angles, scales } = this.poses;
    const turned = angles ? modulo(angle - angles[0]) <= angles[1] - angles[0] : modulo(angle) === 0;
    const [small, large] = scales ?? [1, 1];
    return turned && small <= scale && scale <= large;
  }

  // Where the middle about which an object is turned lies in the picture: row and column.
  middle({ position }) {
    return [position[0] + this.bank.h / 2, position[1] + this.bank.w / 2];
  }

  // The corners of the box around an object, turned as it is: from its top left clockwise, each a row and a column.
  corners(thing) {
    const { angle, scale, mirrored } = poseOf(thing);
    const { h, w, boxes } = this.bank;
    const [top, left, bottom, right] = boxes[thing.prototype];
    const [sine, cosine] = [Math.sin((angle * Math.PI) / 180), Math.cos((angle * Math.PI) / 180)];
    const [row, column] = this.middle(thing);
    const sides = [left - w / 2, right - w / 2].map((x) => (mirrored ? -x : x)).sort((a, b) => a - b);
    const around = [[top, sides[0]], [top, sides[1]], [bottom, sides[1]], [bottom, sides[0]]];
    return around.map(([y, x]) => [row + scale * (cosine * (y - h / 2) - sine * x), column + scale * (cosine * x + sine * (y - h / 2))]);
  }
}

// Height and width that hold a prototype in one pose, with as many odd sides as it has.
function frameOf(bank, { angle, scale }) {
  const [h, w] = [bank.h, bank.w].map((side) => scale * (side + 1)); // what is interpolated ends beyond the last middle
  const [sine, cosine] = [Math.sin, Math.cos].map((of) => Math.abs(of((angle * Math.PI) / 180)));
  const sides = [Math.ceil(cosine * h + sine * w), Math.ceil(cosine * w + sine * h)];
  return sides.map((side, axis) => side + modulo(side - [bank.h, bank.w][axis], 2) + 2 * MARGIN);
}

// Mirrored left to right, then scaled, then turned, then moved, and interpolated linearly.
function resampled(layer, [h, w], { angle, scale, mirrored, down, right }, [H, W]) {
  const made = new Float32Array(H * W);
  const [sine, cosine] = [Math.sin((angle * Math.PI) / 180) / scale, Math.cos((angle * Math.PI) / 180) / scale];
  const at = (y, x) => (y >= 0 && x >= 0 && y < h && x < w ? layer[y * w + x] : 0);
  for (let row = 0; row < H; row++) {
    for (let column = 0; column < W; column++) {
      const [dy, dx] = [row - (H - 1) / 2 - down, column - (W - 1) / 2 - right];
      const y = sine * dx + cosine * dy + (h - 1) / 2;
      const x = (mirrored ? -1 : 1) * (cosine * dx - sine * dy) + (w - 1) / 2;
      const [top, left] = [Math.floor(y), Math.floor(x)];
      if (top < -1 || left < -1 || top >= h || left >= w) continue;
      const [low, far] = [y - top, x - left];
      const above = (1 - far) * at(top, left) + far * at(top, left + 1);
      const below = (1 - far) * at(top + 1, left) + far * at(top + 1, left + 1);
      made[row * W + column] = (1 - low) * above + low * below;
    }
  }
  return made;
}

// Only moved: shifted in the Fourier domain, one axis after the other.
function moved(layer, [h, w], { down, right }, [H, W]) {
  const [top, left] = [(H - h) >> 1, (W - w) >> 1];
  const [rows, columns] = [shifting(H, down), shifting(W, right)];
  const between = new Float64Array(H * w);
  for (let y = 0; y < H; y++) {
    for (let x = 0; x < w; x++) for (let from = 0; from < h; from++) between[y * w + x] += rows[modulo(y - top - from, H)] * layer[from * w + x];
  }
  const made = new Float32Array(H * W);
  for (let y = 0; y < H; y++) {
    for (let x = 0; x < W; x++) {
      let sum = 0;
      for (let from = 0; from < w; from++) sum += columns[modulo(x - left - from, W)] * between[y * w + from];
      made[y * W + x] = Math.min(1, Math.max(0, sum)); // beside sharp edges it overshoots
    }
  }
  return made;
}

// What a point becomes at every distance on a circle of n pixels when it is shifted by a fraction of one.
function shifting(n, by) {
  return Float64Array.from({ length: n }, (_, at) => {
    let sum = 1;
    for (let k = 1; 2 * k < n; k++) sum += 2 * Math.cos((2 * Math.PI * k * (at - by)) / n);
    if (n % 2 === 0) sum += Math.cos(Math.PI * by) * Math.cos(Math.PI * at);
    return sum / n;
  });
}

// Top, left, bottom and right of what is opaque; the whole frame where nothing is.
export function boxOf(masks, h, w, first = 0) {
  let box = [h, w, 0, 0];
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) {
      if (masks[first + y * w + x] <= OPAQUE) continue;
      box = [Math.min(box[0], y), Math.min(box[1], x), Math.max(box[2], y + 1), Math.max(box[3], x + 1)];
    }
  }
  return box[2] ? box : [0, 0, h, w];
}
