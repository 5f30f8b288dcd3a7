// What the page says: notices that are seen, words that are heard, and questions before something is lost.

import { find } from "./dom.js";

// A notice, with one thing that can be done about it if there is one: { words, act }.
export function complain(sentence, { cure = null, gentle = false } = {}) {
  find("notice-words").textContent = sentence;
  find("notice").hidden = false;
  find("notice").classList.toggle("gentle", gentle);
  const act = find("notice-act");
  act.hidden = cure === null;
  if (cure) {
    act.textContent = cure.words;
    act.onclick = cure.act;
  }
}

export const hush = () => (find("notice").hidden = true);
find("notice-close").addEventListener("click", hush);

export function report(sentence, bad = false) {
  if (bad) complain(sentence);
  else find("said").textContent = sentence;
}

// Do something that asks the server; what goes wrong is said, and undefined is the answer then.
export async function attempt(act) {
  try {
    return await act();
  } catch (complaint) {
    complain(complaint.message);
    return undefined;
  }
}

// Whether the answer to a question is yes.
export function sure(sentence, yes, no = "Keep") {
  const dialog = find("question");
  find("question-words").textContent = sentence;
  find("question-yes").textContent = yes;
  find("question-yes").previousElementSibling.textContent = no;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

export const counted = (count, thing) => `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;

// Seconds as people say them.
export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return `${whole} s left`;
  const [minutes, hours] = [Math.round(whole / 60), whole / 3600];
  return minutes < 60 ? `${minutes} min left` : `${hours.toFixed(1)} h left`;
}
