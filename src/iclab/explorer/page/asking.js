/** Pictures, asked of this thread or, where they take long, of a worker that runs the same script. */
import { check } from "./check.js";
import { VIEWS } from "./views/index.js";

/** @typedef {import("./views/index.js").Shown} Shown */
/** @typedef {{number: number, view: string, state: Record<string, any>, tolerance: number}} Question */

/** @typedef {{question: Question, settle: (shown: Shown | null) => void, refuse: (e: Error) => void}} Waiting */

const CHECK = "check"; // asked in place of a view
const PATIENCE = 300; // milliseconds of work after which a newer question is put to another worker

/** Answers questions in a worker. */
export function serve() {
  onmessage = ({ data }) => {
    const { number, view, state, tolerance } = /** @type {Question} */ (data);
    if (view === CHECK) {
      postMessage({ number, checked: check(DATA.points) });
      return;
    }
    try {
      postMessage({ number, shown: VIEWS[view].picture(state, tolerance) });
    } catch (error) {
      postMessage({ number, problem: String(/** @type {Error} */ (error).message) });
    }
  };
}

/** One who is asked for pictures and answers the last question alone. */
export class Asker {
  /** @param {string} script the text of this very script */
  constructor(script) {
    this.number = 0;
    /** @type {Worker | null} */ this.worker = null;
    /** @type {Waiting | null} */ this.waiting = null;
    /** @type {Waiting | null} */ this.working = null;
    this.script = script;
    this.begun = 0;
    this.engage();
  }

  /**
   * The outcome of the check of all functions: of a worker of its own, else of this thread.
   * @returns {Promise<import("./check.js").Outcome>}
   */
  checked() {
    return new Promise((settle) => {
      const alone = () => settle(check(DATA.points));
      try {
        const worker = new Worker(URL.createObjectURL(new Blob([this.script], { type: "text/javascript" })));
        worker.onmessage = ({ data }) => {
          worker.terminate();
          settle(data.checked);
        };
        worker.onerror = alone;
        worker.postMessage({ number: 0, view: CHECK, state: {}, tolerance: 0 });
      } catch {
        alone();
      }
    });
  }

  engage() {
    try {
      this.worker = new Worker(URL.createObjectURL(new Blob([this.script], { type: "text/javascript" })));
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = () => this.withoutWorker();
    } catch {
      this.worker = null; // a browser that starts none: this thread does the work
    }
  }

  /**
   * The picture of a view, or null where it was asked for another one meanwhile.
   * @param {string} view
   * @param {Record<string, any>} state
   * @param {number} tolerance of flows
   * @returns {Promise<Shown | null>}
   */
  ask(view, state, tolerance) {
    const question = { number: ++this.number, view, state: structuredClone(state), tolerance };
    if (!VIEWS[view].heavy || !this.worker) return here(question);
    this.waiting?.settle(null);
    return new Promise((settle, refuse) => {
      this.waiting = { question, settle, refuse };
      if (this.outdated(question) && performance.now() - this.begun > PATIENCE) this.dismiss();
      this.next();
    });
  }

  /** True where the worker is at another view, or at a finer picture than is asked now. @param {Question} question */
  outdated({ view, tolerance }) {
    const now = this.working?.question;
    return now !== undefined && (now.view !== view || now.tolerance < tolerance);
  }

  /** What the worker is at takes long, and nobody waits for it any more: another one begins. */
  dismiss() {
    this.worker?.terminate();
    this.working?.settle(null);
    this.working = null;
    this.engage();
  }

  next() {
    if (this.working || !this.waiting || !this.worker) return;
    this.working = this.waiting;
    this.waiting = null;
    this.begun = performance.now();
    this.worker.postMessage(this.working.question);
  }

  /** @param {{number: number, shown?: Shown, problem?: string}} answer */
  hear({ shown, problem }) {
    const done = this.working;
    this.working = null;
    if (shown) done?.settle(shown);
    else done?.refuse(new RangeError(problem));
    this.next();
  }

  /** The worker did not start: what it was asked is answered here. */
  withoutWorker() {
    this.worker = null;
    for (const one of [this.working, this.waiting]) if (one) here(one.question).then(one.settle, one.refuse);
    this.working = this.waiting = null;
  }
}

/** @param {Question} question @returns {Promise<Shown>} */
async function here({ view, state, tolerance }) {
  return VIEWS[view].picture(state, tolerance);
}
