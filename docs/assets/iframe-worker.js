// Browsers start no workers from files, so search would not work in a folder that is opened without a server.
// There, a hidden frame does a worker's work: it is given messages as a worker is, and what it posts comes back.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) =>
        Promise.all(
          urls.map(
            (each) =>
              new Promise((done) => {
                const script = frame.contentDocument.createElement("script");
                script.src = each;
                script.onload = done;
                frame.contentDocument.body.append(script);
              }),
          ),
        );
      inside.importScripts(url).then(() => {
        this.frame = frame;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.frame) this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame?.remove();
    }
  };
}
