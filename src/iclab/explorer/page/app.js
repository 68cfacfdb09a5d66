/** The page: one view at a time, its state in the address, everything can leave. In a worker it only answers. */
import { Asker, serve } from "./asking.js";
import { bindButtons } from "./buttons.js";
import { Chart } from "./chart.js";
import { openCommand, runCommand } from "./commands.js";
import { row } from "./controls.js";
import { byId, button, make } from "./elements.js";
import { shown } from "./numbers.js";
import { conventionsOf, opened, ownCurve } from "./own.js";
import { marks, nearest, said } from "./overlay.js";
import { probed } from "./probing.js";
import { Simulator } from "./simulate.js";
import { address, read, usual } from "./state.js";
import { inspect, offered } from "./views/inspect.js";
import { VIEWS } from "./views/index.js";

const [DRAGGED, RESTING] = [1e-6, 1e-9]; // tolerances of flows
const REST = 200; // milliseconds after the last move

export class App {
  /** @param {string} script */
  constructor(script) {
    this.asker = new Asker(script);
    this.simulator = new Simulator(
      () => ({ view: this.view, state: this.state }),
      (stored) => {
        for (const [view, results] of Object.entries(stored))
          DATA.stored[view] = [...results, ...(DATA.stored[view] ?? [])];
        this.render(false);
      },
    );
    this.view = DATA.address.split("&")[0].slice("view=".length);
    /** @type {Record<string, any>} */ this.state = {};
    /** @type {import("./marks.js").Curve[][]} */ this.pinned = [];
    /** @type {import("./views/index.js").Shown | null} */ this.seen = null;
    /** @type {import("./own.js").Own | null} */ this.own = null;
    /** @type {Chart[]} */ this.charts = [];
    /** @type {number | undefined} */ this.tolerance = undefined;
    this.dragged = false;
    this.drawn = ""; // the view that was drawn last
    this.beyond = false; // of what a page can integrate
    this.asked = false;
    this.timer = 0;
    this.writing = 0;
    this.written = "";
    for (const part of document.querySelectorAll("[data-live]")) part.removeAttribute("hidden");
    bindButtons(this);
    addEventListener("hashchange", () => this.open(location.hash));
    if (DATA.document) this.inspect(DATA.document);
    this.open(location.hash || (window.name.startsWith("view=") ? window.name : DATA.address));
    const idle = window.requestIdleCallback ?? ((/** @type {() => void} */ act) => setTimeout(act, 300));
    idle(() => this.check());
  }

  /** Says whether this browser answers as the library did. */
  async check() {
    const { calls, worst, wrong } = await this.asker.checked();
    byId("checked").textContent = wrong.length
      ? `Do not trust the curves of this browser: ${wrong.join(", ")} differ from Python.`
      : `Checked in this browser against Python: ${calls} calls of all functions, largest relative difference ${shown(worst, 2)}.`;
    byId("checked").className = wrong.length ? "vermilion" : "";
  }

  get known() {
    return DATA.views[this.view];
  }

  /** Shows what an address names. @param {string} hash */
  open(hash) {
    if (hash.replace(/^#/, "") === this.written) return;
    const { view, state, embedded, changed } = read(hash, DATA.views, this.view);
    document.body.classList.toggle("embedded", embedded);
    this.choose(view, state);
    this.complain(changed && `The address asks for what this page has not, and is shown without it: ${changed}.`);
  }

  /** @param {string} view @param {Record<string, any>} state */
  choose(view, state) {
    const other = view !== this.view;
    this.view = view;
    this.state = state;
    if (other) this.pinned = [];
    byId("question").textContent = this.known.question;
    byId("source").textContent = this.known.source;
    document.title = `${this.known.title}: iclab explorer`;
    for (const one of document.querySelectorAll("[data-of]"))
      one.toggleAttribute("hidden", one.getAttribute("data-of") !== view);
    for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("nav a"))) {
      const current = link.getAttribute("href") === `#view=${view}`;
      if (!current) link.removeAttribute("aria-current");
      else link.setAttribute("aria-current", "page");
      if (current && link.parentElement) link.parentElement.scrollLeft = link.offsetLeft - 60; // of a narrow strip
    }
    byId("facts").parentElement?.toggleAttribute("hidden", !this.known.facts.length);
    byId("facts").replaceChildren(
      ...this.known.facts.map((/** @type {any} */ fact) =>
        button(fact.words, () =>
          this.choose(view, { ...usual(this.known.controls), ...structuredClone(fact.state) }),
        ),
      ),
    );
    this.simulator.offer(Boolean(this.known.simulates));
    this.showControls();
    return this.draw();
  }

  showControls() {
    const rows = this.known.controls
      .filter((/** @type {any} */ control) => !control.hidden)
      .map((/** @type {any} */ control) =>
        row(control, {
          get: () => this.state[control.key],
          put: (value, dragged) => {
            this.state[control.key] = value;
            this.complain("");
            this.move(dragged);
          },
          complain: (words) => this.complain(words),
        }),
      );
    if (this.own)
      rows.push(
        conventionsOf(this.own, {
          changed: () => this.render(false),
          closed: () => {
            this.own = null;
            this.showControls();
            this.render(false);
          },
          complain: (words) => this.complain(words),
        }),
      );
    byId("controls").replaceChildren(...rows);
  }

  /** @param {string} words */
  complain(words) {
    byId("problem").textContent = words;
  }

  /** Draws in the next frame; finely once nothing has moved for a while. @param {boolean} dragged */
  move(dragged) {
    this.dragged = dragged;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.dragged = false;
      this.draw();
    }, REST);
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  /** Draws the state; a view that takes long is drawn coarsely first. */
  async draw() {
    if (this.drawn !== this.view && VIEWS[this.view].heavy && this.tolerance === undefined) await this.ask(DRAGGED);
    await this.ask(this.tolerance ?? (this.dragged ? DRAGGED : RESTING));
  }

  /** @param {number} tolerance of flows */
  async ask(tolerance) {
    const { view, dragged } = this;
    try {
      const shown = await this.asker.ask(view, this.state, tolerance);
      if (!shown || view !== this.view) return;
      if (this.beyond) this.complain("");
      this.beyond = false;
      this.seen = shown;
      this.drawn = view;
      this.render(dragged);
    } catch (error) {
      this.beyond = true;
      const why = /** @type {Error} */ (error).message;
      this.complain(`This lies beyond what a page can integrate (${why}). Ask with the command below.`);
      this.tell();
    }
  }

  /** @param {boolean} dragged */
  render(dragged) {
    const pictures = this.pictures();
    while (this.charts.length < pictures.length) this.charts.push(this.newChart());
    this.charts.forEach((chart, i) => {
      chart.box.hidden = i >= pictures.length;
      if (i < pictures.length) chart.draw(pictures[i]);
    });
    byId("answer").textContent = this.seen?.answer ?? "";
    if (!dragged || this.best?.differing.length) this.sayVerdicts();
    if (!dragged) byId("spoken").textContent = this.seen?.answer ?? "";
    this.tell();
  }

  /** What the product says of stored runs; a list that was opened stays open. */
  sayVerdicts() {
    const box = byId("verdicts");
    const opened = box.querySelector("details")?.open ?? false;
    const findings = make("ul", {}, ...(this.seen?.findings ?? []).map((words) => make("li", {}, words)));
    const count = findings.children.length;
    const told = count > 2 ? make("details", {}, make("summary", {}, `${count} findings`), findings) : findings;
    box.replaceChildren(...said(this.best ?? null, this.state), ...(count ? [told] : []));
    const list = box.querySelector("details");
    if (list) list.open = opened;
  }

  /** What is drawn: pinned copies, stored runs, and theory over them. */
  pictures() {
    const best = nearest(DATA.stored[this.view] ?? [], this.state, this.known.controls);
    this.best = best;
    return (this.seen?.charts ?? []).map((picture, i) => {
      const laid =
        i === 0 && best
          ? marks(picture, best.found, !best.differing.length, this.state.seed)
          : { curves: [], dots: [] };
      const own = i === 0 ? ownCurve(this.own, this.view, this.state) : [];
      const curves = [...(this.pinned[i] ?? []), ...laid.curves, ...own, ...picture.curves];
      return { ...picture, curves, dots: [...laid.dots, ...(picture.dots ?? [])] };
    });
  }

  newChart() {
    const box = document.createElement("div");
    box.className = "chart";
    byId("charts").append(box);
    return new Chart(
      box,
      (words) => {
        byId("reading").textContent = words;
      },
      (moved) => {
        Object.assign(this.state, moved);
        this.move(true);
      },
    );
  }

  /** Commands and address of the state. */
  tell() {
    const controls = this.known.controls;
    byId("address").textContent = openCommand(this.view, controls, this.state);
    byId("command").textContent = VIEWS[this.view].command?.(this.state) ?? runCommand(this.known, this.state);
    byId("python").textContent = VIEWS[this.view].python(this.state);
    clearTimeout(this.writing);
    this.writing = window.setTimeout(() => {
      this.written = address(this.view, controls, this.state);
      try {
        history.replaceState(null, "", `#${this.written}`);
      } catch {
        /* a frame without an address of its own */
      }
    }, 250);
  }

  /** Shows a file: a document of iclab inspect, or a run of one's own. @param {File | undefined} file */
  async take(file) {
    if (!file) return;
    const { document: content, own, problem } = await opened(file);
    const wrong = content ? this.inspect(content) : (problem ?? "");
    if (content && !wrong) await this.choose("inspect", usual(DATA.views.inspect.controls));
    this.complain(wrong);
    if (!own || wrong) return;
    this.own = own;
    if (!["staircase", "abrupt-drop"].includes(this.view))
      await this.choose("abrupt-drop", usual(DATA.views["abrupt-drop"].controls));
    this.showControls();
    this.render(false);
  }

  /** Shows a document from now on; the sentence that says why it cannot. @param {any} content */
  inspect(content) {
    const wrong = inspect(content);
    if (wrong) return wrong;
    const names = offered();
    for (const control of DATA.views.inspect.controls) {
      control.choices = names[/** @type {"matrix"} */ (control.key)];
      control.start = control.choices[0];
    }
    return "";
  }
}

if (typeof document === "undefined") {
  serve();
} else {
  probed(new App(document.currentScript?.textContent ?? ""));
}
