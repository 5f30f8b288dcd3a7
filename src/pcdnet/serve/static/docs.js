// The routes, from the server's own description.

import { find, make } from "./dom.js";

find("example").textContent = `curl -F image=@picture.png ${new URL("api/decompose", document.baseURI)}`;
const description = await (await fetch("openapi.json")).json();
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, route] of Object.entries(methods)) {
    const card = make("div", { class: "card route" });
    card.append(make("code", {}, `${method.toUpperCase()} ${path}`), make("p", { class: "faint" }, route.description ?? ""));
    find("routes").append(card);
  }
}
