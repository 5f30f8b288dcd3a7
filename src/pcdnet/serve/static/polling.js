// Asks the server again and again, while something goes on there.

export class Polling {
  #timer = null;
  #asked = 0;

  // `ask` gets the state, `show` shows it and says whether to ask again soon.
  constructor(ask, show, pause = 500) {
    Object.assign(this, { ask, show, pause });
  }

  // Ask now; of several answers the last question's counts. What goes wrong is said once things go well no more.
  async now() {
    const mine = ++this.#asked;
    clearTimeout(this.#timer);
    let again = true;
    try {
      const state = await this.ask();
      if (mine !== this.#asked) return;
      this.troubled = false;
      again = this.show(state);
    } catch (complaint) {
      if (mine !== this.#asked) return;
      if (!this.troubled) this.failed?.(complaint);
      this.troubled = true;
      again = this.running;
    }
    this.running = again;
    if (again) this.#timer = setTimeout(() => this.now(), this.troubled ? 4 * this.pause : this.pause);
  }

  // Ask in a moment, once for many changes.
  soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.now(), this.pause);
  }
}
