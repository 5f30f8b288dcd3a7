// Paints scenes, as the server does, so that edits are seen at once. The server's picture counts; tests compare.

// Front to back in one pass. `shown` is what the objects so far put on each pixel, `through` how much of what is
// behind them is still seen; so the error after each object, and with it its gain, is known on the way.
// `background` is null for black.
export function paint(bank, objects, size, image, background) {
  const [H, W] = size;
  const { C } = bank;
  const shown = new Float64Array(H * W * C);
  const through = new Float64Array(H * W).fill(1);
  const instances = new Uint16Array(H * W);
  let error = image ? wholeError(bank, image, background, H * W) : 0;
  const gains = [];
  const errors = [error];
  objects.forEach((thing, n) => {
    const { row, column, h, w, first, prototypes, masks } = bank.sprite(thing);
    let gain = 0;
    for (let y = Math.max(0, -row); y < Math.min(h, H - row); y++) {
      for (let x = Math.max(0, -column); x < Math.min(w, W - column); x++) {
        const from = first + y * w + x;
        const mask = masks[from];
        if (mask === 0) continue;
        const at = (row + y) * W + column + x;
        if (image) gain += pixelError(bank, image, background, shown, through, at);
        for (let c = 0; c < C; c++) shown[at * C + c] += through[at] * mask * prototypes[from] * thing.colour[c];
        through[at] *= 1 - mask;
        if (image) gain -= pixelError(bank, image, background, shown, through, at);
        if (mask > 0.5 && instances[at] === 0) instances[at] = n + 1;
      }
    }
    error -= gain;
    gains.push(gain);
    errors.push(error);
  });
  if (background) for (let i = 0; i < shown.length; i++) shown[i] += through[Math.floor(i / C)] * background[i];
  return { size, picture: shown, instances, gains, errors, error: Math.max(0, error), boxes: boxesOf(instances, objects.length, W) };
}

// Top, left, height and width of what is seen of each object; null of what is hidden.
function boxesOf(instances, count, W) {
  const ends = Array(count).fill(null);
  instances.forEach((label, at) => {
    if (label === 0) return;
    const [y, x] = [Math.floor(at / W), at % W];
    const box = (ends[label - 1] ??= [y, x, y, x]);
    if (x < box[1]) box[1] = x;
    if (y > box[2]) box[2] = y;
    if (x > box[3]) box[3] = x;
  });
  return ends.map((box) => box && [box[0], box[1], box[2] - box[0] + 1, box[3] - box[1] + 1]);
}

function pixelError(bank, image, background, shown, through, at) {
  let sum = 0;
  for (let c = 0; c < bank.C; c++) {
    const i = at * bank.C + c;
    const behind = background ? through[at] * background[i] : 0;
    sum += (image[i] / 255 - shown[i] - behind) ** 2;
  }
  return sum;
}

function wholeError(bank, image, background, pixels) {
  let sum = 0;
  for (let i = 0; i < pixels * bank.C; i++) sum += (image[i] / 255 - (background?.[i] ?? 0)) ** 2;
  return sum;
}

export const VIEWS = [
  ["image", "picture"],
  ["reconstruction", "painted"],
  ["residual", "left over"],
  ["instances", "objects"],
  ["semantics", "kinds"],
];

// One way to look at a painted scene, as ImageData.
export function view(kind, painted, objects, image, bank) {
  const [H, W] = painted.size;
  const data = new ImageData(W, H);
  const { C } = bank;
  const tint = (n) => (kind === "instances" ? bank.instanceColours[n % bank.instanceColours.length] : bank.colours[objects[n].prototype]);
  for (let at = 0; at < H * W; at++) {
    const label = painted.instances[at];
    for (let c = 0; c < 3; c++) {
      const i = at * C + (C === 1 ? 0 : c);
      let value = 0;
      if (kind === "image") value = image[i];
      else if (kind === "reconstruction") value = 255 * painted.picture[i];
      else if (kind === "residual") value = Math.abs(image[i] - 255 * painted.picture[i]);
      else if (label && !bank.hidden.has(objects[label - 1].prototype)) value = tint(label - 1)[c];
      data.data[at * 4 + c] = Math.round(Math.min(255, Math.max(0, value)));
    }
    data.data[at * 4 + 3] = 255;
  }
  return data;
}

export function show(canvas, data) {
  canvas.width = data.width;
  canvas.height = data.height;
  canvas.getContext("2d").putImageData(data, 0, 0);
}

// The outline of the pixels for which `inside(row, column)` holds, as an SVG path in pixels.
export function outline(inside, [top, left, bottom, right]) {
  const steps = [];
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) {
      if (!inside(y, x)) continue;
      if (!inside(y - 1, x)) steps.push(`M${x} ${y}h1`);
      if (!inside(y + 1, x)) steps.push(`M${x} ${y + 1}h1`);
      if (!inside(y, x - 1)) steps.push(`M${x} ${y}v1`);
      if (!inside(y, x + 1)) steps.push(`M${x + 1} ${y}v1`);
    }
  }
  return steps.join("");
}
