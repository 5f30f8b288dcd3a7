// What the page asks the server for. Every failure becomes a Complaint with a sentence to show.

export class Complaint extends Error {
  constructor(sentence, fit = false) {
    super(sentence);
    this.fit = fit; // whether the picture would be taken if it were resized
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Complaint("The server does not answer; is it still running?");
  }
  if (answer.ok) return answer;
  const words = await answer.json().catch(() => ({}));
  throw new Complaint(words.error ?? `The server answered with ${answer.status}.`, words.fit);
}

const json = (method, body) => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

export const getModel = async () => (await ask("/api/model")).json();
export const getSamples = async () => (await ask("/api/samples")).json();
export const decomposeSample = async (sample) => (await ask("/api/decompose", json("POST", { sample }))).json();
export const inspect = async (image, prototype) => (await ask("/api/inspect", json("POST", { image, prototype }))).json();
export const render = async (scene) => (await ask("/api/render", json("POST", scene))).json();
export const rename = async (p, name) => (await ask(`/api/names/${p}`, json("PUT", { name }))).json();
export const exported = async (message) => (await ask("/api/export", json("POST", message))).blob();

export async function decomposeFile(file, fit) {
  const form = new FormData();
  form.append("image", file, file.name || "pasted.png");
  form.append("fit", String(fit));
  return (await ask("/api/decompose", { method: "POST", body: form })).json();
}

const TYPES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

// The numbers of an array that came from the server; browsers run on little-endian machines.
export function numbers(array) {
  const bytes = Uint8Array.from(atob(array.data), (sign) => sign.charCodeAt(0));
  return new TYPES[array.dtype](bytes.buffer);
}
