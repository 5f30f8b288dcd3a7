// Pictures that come as files: chosen, pasted, or dropped anywhere.

import { find } from "./dom.js";

export function takeFiles(open) {
  const first = (files) => files?.length && open(files[0]);
  find("file").addEventListener("change", (event) => {
    first([...event.target.files]);
    event.target.value = "";
  });
  document.addEventListener("paste", (event) => first(event.clipboardData?.files));
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0; // dragenter and dragleave come for every element on the way
  for (const [type, step] of [["dragenter", 1], ["dragleave", -1]]) {
    document.addEventListener(type, (event) => {
      if (holdsFiles(event)) document.body.classList.toggle("dropping", (depth += step) > 0);
    });
  }
  document.addEventListener("dragover", (event) => holdsFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("dropping");
    first(event.dataTransfer.files);
  });
}
