/** "Simulate this": runs of the server that serves the page. From disk there is none, and nothing is shown. */
import { byId } from "./elements.js";

const PAUSE = 500; // milliseconds between two looks at a run
const KEY = "iclab-token";

/** @typedef {{id: string, state: string, told: string, command: string, stored?: Record<string, any[]>}} Run */

/** The token of the address that the server printed; a page that is loaded anew has it still. @returns {string} */
function token() {
  const given = new URLSearchParams(location.hash.replace(/^#/, "")).get("token");
  try {
    if (given) sessionStorage.setItem(KEY, given);
    return given ?? sessionStorage.getItem(KEY) ?? "";
  } catch {
    return given ?? "";
  }
}

export class Simulator {
  /**
   * @param {() => {view: string, state: Record<string, any>}} asked what is to be simulated
   * @param {(stored: Record<string, any[]>) => void} arrived takes the result
   */
  constructor(asked, arrived) {
    this.token = location.protocol === "http:" ? token() : "";
    this.asked = asked;
    this.arrived = arrived;
    /** @type {string} */ this.running = "";
    byId("run").onclick = () => this.begin();
    byId("cancel").onclick = () => this.ask("DELETE", `/runs/${this.running}`);
  }

  /** Shows the button where a view can be simulated. @param {boolean} possible */
  offer(possible) {
    byId("simulate").hidden = !(this.token && (possible || this.running));
    byId("run").toggleAttribute("disabled", Boolean(this.running) || !possible);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {any} [body]
   * @returns {Promise<Run | null>}
   */
  async ask(method, path, body) {
    try {
      const answer = await fetch(path, {
        method,
        headers: { "Content-Type": "application/json", "X-Iclab-Token": this.token },
        body: body && JSON.stringify(body),
      });
      const found = await answer.json();
      if (answer.ok) return found;
      this.say(found.error);
    } catch {
      this.say("The server does not answer; it may have ended.");
    }
    return null;
  }

  async begin() {
    this.say("");
    const run = await this.ask("POST", "/runs", this.asked());
    if (run) await this.follow(run);
  }

  /** Says how far a run is until it is over. @param {Run} begun */
  async follow(begun) {
    /** @type {Run | null} */ let run = begun;
    this.show(begun.id);
    while (run && run.state === "running") {
      this.say(run.told);
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      run = await this.ask("GET", `/runs/${begun.id}`);
    }
    this.show("");
    if (!run) return;
    this.say(run.state === "done" ? "Done, and stored." : `${run.state}: ${run.told}`);
    if (run.stored) this.arrived(run.stored);
  }

  /** @param {string} id */
  show(id) {
    this.running = id;
    byId("cancel").hidden = !id;
    byId("run").toggleAttribute("disabled", Boolean(id));
  }

  /** @param {string} words */
  say(words) {
    byId("progress").textContent = words;
  }
}
