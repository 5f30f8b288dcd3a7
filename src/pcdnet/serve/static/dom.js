// Small makers of elements. Words are always text, never markup.

export const find = (id) => document.getElementById(id);

export function make(tag, attributes = {}, text = null) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  return element;
}

export function button(text, label, act) {
  const element = make("button", { type: "button", title: label, "aria-label": label }, text);
  element.addEventListener("click", act);
  return element;
}

let groups = 0;

// A set of radio buttons whose contents are pictures: { value, label, content } each.
export function radios(name, label, options, choose) {
  const group = make("div", { class: name, role: "radiogroup", "aria-label": label });
  const shared = `${name}-${groups++}`;
  for (const option of options) {
    const input = make("input", { class: "unseen", type: "radio", name: shared, value: option.value, "aria-label": option.label });
    input.addEventListener("change", () => choose(option.value));
    const place = make("label", { title: option.label });
    place.append(input, option.content);
    if (option.words) place.append(make("span", { "aria-hidden": "true" }, option.words));
    group.append(place);
  }
  return group;
}

export function check(group, value) {
  for (const input of group.querySelectorAll("input")) input.checked = input.value === String(value);
}

// Dots on the screen for a pixel: whole ones, so that equal pixels are equally large, unless much room would be lost.
export const dots = (room) => (Math.floor(room) >= 0.75 * room ? Math.floor(room) : room);

export const number = (value = 0) => {
  const size = Math.abs(value);
  if (size < 0.005) return "0";
  return size < 10 ? value.toFixed(2) : size < 100 ? value.toFixed(1) : value.toFixed(0);
};

// A share as a percentage, with a minus that is one.
export const percent = (share) => `${Math.abs(100 * share) < 10 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`.replace("-", "−");
