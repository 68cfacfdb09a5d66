/** A run of one's own: a file that is opened or dropped, its conventions, its curve over theory. Nothing leaves the page. */
import { button, make } from "./elements.js";
import { converted, logOf } from "./losses.js";
import { valueOf } from "./state.js";

const LARGEST_FILE = 30e6; // letters
const FACTORS = /** @type {Record<string, number>} */ ({ "abrupt-drop": 2, staircase: 3 }); // of the attention of a view

/** @typedef {{name: string, log: import("./losses.js").Log, conventions: import("./losses.js").Conventions}} Own */

/**
 * The content of a file: a document, a log, or the sentence that says why neither.
 * @param {File} file
 * @returns {Promise<{document?: any, own?: Own, problem?: string}>}
 */
export async function opened(file) {
  if (file.size > LARGEST_FILE)
    return {
      problem: `A file must be smaller than ${LARGEST_FILE / 1e6} MB here; got ${Math.round(file.size / 1e6)} MB. Use iclab compare or iclab inspect.`,
    };
  const text = await file.text();
  if (/^\s*\{/.test(text)) {
    try {
      const content = JSON.parse(text);
      if ("schema" in content || "table" in content) return { document: content };
    } catch {
      /* JSON lines, perhaps */
    }
  }
  const { log, problem } = logOf(text);
  const conventions = {
    rate: 0.001,
    loss: /** @type {"mean"} */ ("mean"),
    normalization: /** @type {"1/N"} */ ("1/N"),
    drawn: 1000,
  };
  return log ? { own: { name: file.name.slice(0, 60), log, conventions } } : { problem };
}

/**
 * The curve of a run in the time and loss of a view; none in a view of other things.
 * @param {Own | null} own
 * @param {string} view
 * @param {Record<string, any>} state
 * @returns {import("./marks.js").Curve[]}
 */
export function ownCurve(own, view, state) {
  if (!own || !(view in FACTORS)) return [];
  const { x, y } = converted(own.log, own.conventions, state.N, FACTORS[view]);
  return [{ key: "own", name: "your run", x, y, tone: "orange", width: 2, label: true }];
}

/**
 * The conventions of a run, stated as in iclab compare.
 * @param {Own} own
 * @param {{changed: () => void, closed: () => void, complain: (words: string) => void}} hand
 */
export function conventionsOf(own, { changed, closed, complain }) {
  const set = (/** @type {Partial<import("./losses.js").Conventions>} */ part) => {
    Object.assign(own.conventions, part);
    changed();
  };
  const number = (/** @type {"rate" | "drawn"} */ key, /** @type {string} */ label, /** @type {boolean} */ whole) => {
    const field = /** @type {HTMLInputElement} */ (
      make("input", { type: "text", value: String(own.conventions[key]), inputMode: "decimal", id: `own-${key}` })
    );
    const control = /** @type {any} */ ({ label, low: whole ? 1 : 1e-12, high: 1e9, whole, choices: [] });
    field.addEventListener("change", () => {
      const { value, problem } = valueOf(control, field.value);
      field.setAttribute("aria-invalid", String(value === undefined));
      complain(problem ?? "");
      if (value !== undefined) set({ [key]: value });
    });
    return make("div", { className: "control words" }, make("label", { htmlFor: `own-${key}` }, label), field);
  };
  const choice = (
    /** @type {"loss" | "normalization"} */ key,
    /** @type {string} */ label,
    /** @type {string[]} */ words,
  ) => {
    const select = /** @type {HTMLSelectElement} */ (
      make(
        "select",
        { id: `own-${key}` },
        ...words.map((word) => make("option", { value: word, selected: own.conventions[key] === word }, word)),
      )
    );
    select.addEventListener("change", () => set(/** @type {any} */ ({ [key]: select.value })));
    return make("div", { className: "control words" }, make("label", { htmlFor: `own-${key}` }, label), select);
  };
  return make(
    "fieldset",
    { id: "own" },
    make("legend", {}, "Your run"),
    make(
      "p",
      { className: "help" },
      `${own.name}, ${own.log.clock.length} records; the conventions are those of iclab compare`,
    ),
    number("rate", "learning rate, on the loss of the log", false),
    choice("loss", "the loss is the squared errors'", ["mean", "half", "sum"]),
    choice("normalization", "sums over tokens are divided by", ["1/N", "none", "1/(N+1)"]),
    number("drawn", "sequences that a sum is over", true),
    button("Take it away", closed),
  );
}
