// What the page asks the server for. Every failure becomes a Complaint with a sentence to show.
// Addresses are relative to the page, which need not be at the root of its server.

export class Complaint extends Error {
  constructor(sentence, { fit = false, status = 0 } = {}) {
    super(sentence);
    this.fit = fit; // whether the picture would be taken if it were resized
    this.status = status; // 0 where there was no answer
  }
}

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (reason) {
    if (reason.name === "AbortError") throw reason;
    throw new Complaint("The server does not answer; is it still running?");
  }
  if (answer.ok) return answer;
  const words = await answer.json().catch(() => ({}));
  throw new Complaint(words.error ?? `The server answered with ${answer.status}.`, { fit: words.fit, status: answer.status });
}

const json = (method, body) => ({
  method,
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

const get = async (path, options) => (await ask(path, options)).json();
// An answer may be empty.
const tell = async (path, options) => {
  const words = await (await ask(path, options)).text();
  return words ? JSON.parse(words) : null;
};
const drop = (path) => tell(path, { method: "DELETE" });

export const getModel = () => get("api/model");
export const getNames = () => get("api/names");
export const rename = (p, name) => tell(`api/names/${p}`, json("PUT", { name }));

export const getPictures = (start, count, signal) => get(`api/pictures?start=${start}&count=${count}`, { signal });
export const pictureAt = (n) => `api/pictures/${n}`;
// With the mark of the strip, browsers may keep it.
export const thumbnailAt = (n, mark) => `api/pictures/${n}/thumbnail${mark ? `?mark=${mark}` : ""}`;

export const decomposePicture = (picture, fit) => tell("api/decompose", json("POST", fit ? { picture, fit } : { picture }));
export const inspect = (image, prototype, pose = null) => tell("api/inspect", json("POST", { image, prototype, ...(pose === null ? {} : { pose }) }));
export const render = (scene) => tell("api/render", json("POST", scene));
export const exported = async (message) => (await ask("api/export", json("POST", message))).blob();

export const getEdits = () => get("api/edits");
export const keepEdits = (n, scene) => tell(`api/edits/${n}`, json("PUT", scene));
export const discardEdits = (n) => drop(`api/edits/${n}`);
export const discardAllEdits = () => drop("api/edits");

export const getCounts = () => get("api/counts");
export const startCounts = () => tell("api/counts", json("POST", {}));
export const stopCounts = () => drop("api/counts");
export const changeKind = (prototypes, change) => tell("api/kinds", json("PUT", { prototypes, ...change }));

export const getCorrections = () => get("api/corrections");
export const correct = (correction) => tell("api/corrections", json("POST", correction));
export const takeBack = (id) => drop(`api/corrections/${encodeURIComponent(id)}`);
export const takeBackRemoved = (prototype) => drop(`api/corrections/removed/${prototype}`);

export const getLearning = () => get("api/learning");
export const startLearning = (minutes) => tell("api/learning", json("POST", { minutes }));
export const stopLearning = () => drop("api/learning");
export const learnedPicture = (n) => get(`api/learning/pictures/${n}`);
export const adoptLearned = () => tell("api/learning/adopt", json("POST", {}));
export const restoreFormer = () => tell("api/learning/restore", json("POST", {}));

export const askResults = (format) => tell("api/results", json("POST", { format }));
export const resultsAt = (format) => `api/results/${format}`;
// How far they are; the file itself is not read here.
export async function resultsOf(format) {
  const answer = await ask(resultsAt(format));
  if (answer.status === 202) return answer.json();
  await answer.body.cancel();
  return { state: "done" };
}

// The formats of results, from the server's own description.
export async function getFormats() {
  const description = await get("openapi.json");
  return description.components.schemas.Export.properties.format.enum;
}

export async function decomposeFile(file, fit) {
  const form = new FormData();
  form.append("image", file, file.name || "pasted.png");
  form.append("fit", String(fit));
  return (await ask("api/decompose", { method: "POST", body: form })).json();
}

const TYPES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array };

// The numbers of an array that came from the server; browsers run on little-endian machines.
export function numbers(array) {
  const bytes = Uint8Array.from(atob(array.data), (sign) => sign.charCodeAt(0));
  return new TYPES[array.dtype](bytes.buffer);
}
