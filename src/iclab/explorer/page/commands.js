/** The commands that ask the product the question of a state, and that open the page at it. */
import { typed } from "./numbers.js";
import { address } from "./state.js";

/**
 * The line `iclab run ...` of a state: every flag that differs from the usual case of the study.
 * @param {{study: string, controls: import("./state.js").Control[], also: Record<string, any>}} view
 * @param {Record<string, any>} state
 */
export function runCommand({ study, controls, also }, state) {
  const words = ["iclab", "run", study];
  for (const { key, flag, usual } of controls) {
    if (flag && inWords(state[key]) !== inWords(usual)) words.push(flag, inWords(state[key]));
  }
  for (const [flag, value] of Object.entries(also)) words.push(flag, inWords(value));
  return words.join(" ");
}

/**
 * The line that opens the page at a state.
 * @param {string} view
 * @param {import("./state.js").Control[]} controls
 * @param {Record<string, any>} state
 */
export const openCommand = (view, controls, state) => `iclab explore --state '${address(view, controls, state)}'`;

/** @param {any} value @returns {string} */
const inWords = (value) =>
  Array.isArray(value)
    ? value.map((one) => typed(one)).join(" ")
    : typeof value === "number"
      ? typed(value)
      : String(value);

/** A number or a list of them in Python. @param {number | number[]} value @returns {string} */
export function pythonic(value) {
  if (Array.isArray(value)) return `(${value.map((one) => typed(one)).join(", ")}${value.length === 1 ? "," : ""})`;
  return Number.isFinite(value) ? typed(value) : value > 0 ? "np.inf" : "-np.inf";
}
