/** The state of a view: what its controls say, and its address. Only known keys and numbers in range are taken. */
import { typed } from "./numbers.js";

/**
 * @typedef {{key: string, label: string, help: string, low: number, high: number, log: boolean, whole: boolean,
 *   spectrum: boolean, choices: string[], open: boolean, hidden: boolean, start: any, usual?: any, flag: string}} Control
 */
/** @typedef {Record<string, any>} State */

const LONGEST = 4000; // letters of an address
const APART = ["view", "v", "embed", "token"]; // keys that are no control
export const LARGEST = 8; // eigenvalues of a spectrum

/** @param {Control[]} controls @returns {State} */
export const usual = (controls) =>
  Object.fromEntries(controls.map(({ key, start }) => [key, Array.isArray(start) ? [...start] : start]));

/**
 * The value that a text stands for, or why it stands for none.
 * @param {Control} control
 * @param {string} text
 * @returns {{value?: any, problem?: string}}
 */
export function valueOf(control, text) {
  if (control.choices.length)
    return control.choices.includes(text)
      ? { value: text }
      : { problem: `${control.label} must be one of ${control.choices.join(", ")}.` };
  if (control.spectrum) return spectrumOf(control, text);
  const number = plainNumber(text);
  const kind = control.whole ? "a whole number" : "a number";
  if (Number.isNaN(number) || number < control.low || number > control.high || (control.whole && number % 1 !== 0))
    return {
      problem: `${control.label} must be ${kind} from ${typed(control.low)} to ${typed(control.high)}; got ${text.slice(0, 40) || "nothing"}.`,
    };
  return { value: number };
}

/** A number in decimal notation, with a point; NaN for other words, commas among them. @param {string} text */
function plainNumber(text) {
  const plain = text.trim().replace("−", "-");
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
}

/**
 * Eigenvalues in a text, with any signs between them, largest first.
 * @param {Control} control
 * @param {string} text
 * @returns {{value?: number[], problem?: string}}
 */
export function spectrumOf(control, text) {
  const parts = text
    .slice(0, 100000)
    .split(/[\s,;|[\]()]+/)
    .filter(Boolean);
  if (parts.length < 1 || parts.length > LARGEST)
    return {
      problem: `A spectrum must have 1 to ${LARGEST} eigenvalues here; got ${parts.length}. For more use the command line.`,
    };
  const values = parts.map(Number);
  const odd = parts.find((_, i) => !(values[i] >= control.low && values[i] <= control.high));
  if (odd !== undefined)
    return {
      problem: `Eigenvalues must be numbers from ${typed(control.low)} to ${typed(control.high)}; got ${odd.slice(0, 40)}.`,
    };
  return { value: values.sort((one, other) => other - one) };
}

/**
 * The view and the state that an address names; what it does not know is dropped, numbers are held in range, and
 * `changed` says so.
 * @param {string} hash
 * @param {Record<string, {controls: Control[]}>} views
 * @param {string} otherwise
 */
export function read(hash, views, otherwise) {
  const query = new URLSearchParams(hash.length > LONGEST ? "" : hash.replace(/^#/, ""));
  const asked = query.get("view") ?? otherwise;
  const view = Object.hasOwn(views, asked) ? asked : otherwise;
  const state = usual(views[view].controls);
  const known = [...views[view].controls.map(({ key }) => key), ...APART];
  const odd = [...new Set(query.keys())].filter((key) => !known.includes(key) || query.getAll(key).length > 1);
  const changed = odd.map((key) => `${key} (unknown, or there several times)`);
  if (hash.length > LONGEST) changed.push("all of it (too long)");
  if (view !== asked) changed.push(`view=${asked}`);
  for (const control of views[view].controls) {
    const text = query.get(control.key);
    if (text === null || control.open) continue;
    const near = control.choices.length
      ? text
      : control.spectrum
        ? text
            .split(",")
            .slice(0, LARGEST)
            .map((one) => held(control, one))
            .join(",")
        : held(control, text);
    const { value } = valueOf(control, near);
    if (value !== undefined) state[control.key] = value;
    if (value === undefined || near !== text) changed.push(`${control.key}=${text}`);
  }
  const words = changed.map((one) => one.slice(0, 60)).join(", ");
  return { view, state, embedded: query.has("embed"), changed: words };
}

/** A number held in the range of its control. @param {Control} control @param {string} text */
function held({ low, high, whole }, text) {
  const number = plainNumber(text);
  if (Number.isNaN(number)) return text;
  const within = Math.min(high, Math.max(low, whole ? Math.round(number) : number));
  return within === number ? text : String(within);
}

/**
 * The address of a state, without #.
 * @param {string} view
 * @param {Control[]} controls
 * @param {State} state
 */
export function address(view, controls, state) {
  const words = controls.map(({ key }) => `${key}=${encoded(state[key])}`);
  return [`view=${view}`, ...words].join("&");
}

/** @param {any} value @returns {string} */
const worded = (value) =>
  Array.isArray(value)
    ? value.map((one) => typed(one)).join(",")
    : typeof value === "number"
      ? typed(value)
      : String(value);

/** A value in an address: what is no number has no sign of its own there. @param {any} value */
const encoded = (value) =>
  typeof value === "string" ? encodeURIComponent(value).replaceAll("'", "%27") : worded(value);
