/** Before a run is made: the sizes that reach an error, marked on the curve of the error. */
import { geomspace } from "../../theory/numerics.js";
import { errorOf, remark, required } from "../../theory/planning.js";
import { intervals } from "../../theory/searches.js";
import { pythonic } from "../commands.js";
import { shown, typed } from "../numbers.js";
import { ERROR } from "./double_descent.js";

const QUANTITIES = /** @type {Record<string, {quantity: "alpha" | "kappa" | "tau", name: string}>} */ ({
  tasks: { quantity: "kappa", name: "tasks of the pool κ = K/D" },
  sequences: { quantity: "tau", name: "pretraining sequences τ = n/D²" },
  context: { quantity: "alpha", name: "examples of a context α = N/D" },
});
const RANGE = geomspace(1e-2, 1e4, 121);
const HALF = RANGE.filter((_, i) => i % 2 === 0); // sizes of a picture that moves
const COARSE = 1e-7; // tolerance from which on a picture moves

/**
 * The sizes in the range that is shown, for a picture that moves; what would lower the error is said at rest.
 * @param {"alpha" | "kappa" | "tau"} quantity
 * @param {number} error
 * @param {(size: number) => number} at
 * @param {number[]} curve
 */
function glance(quantity, error, at, curve) {
  const found = intervals(at, Array.from(HALF), curve, error);
  const floor = Math.min(...curve);
  const best = HALF[curve.indexOf(floor)];
  const none = `No ${quantity} that is shown reaches ${shown(error)}: the least icl error is ${shown(floor, 4)}.`;
  return { intervals: found, floor, advice: found.length ? remark(quantity, found, floor, best) : none };
}

/** @param {Record<string, any>} state @returns {0 | "best"} */
const strength = (state) => (state.ridge === "best" ? "best" : 0);

export const planView = {
  heavy: true,
  /** @param {Record<string, any>} state @param {number} tolerance */
  picture(state, tolerance) {
    const { quantity, name } = QUANTITIES[state.question];
    const ratios = { alpha: state.alpha, kappa: state.kappa, tau: state.tau, noise: state.rho };
    const at = (/** @type {number} */ size) => errorOf({ ...ratios, [quantity]: size }, strength(state), "icl");
    const sizes = tolerance < COARSE ? RANGE : HALF;
    const curve = Array.from(sizes, at);
    const found =
      tolerance < COARSE
        ? required(quantity, state.error, ratios, strength(state), "icl")
        : glance(quantity, state.error, at, curve);
    const seen = [...curve.filter((value) => value > 0 && Number.isFinite(value)), state.error];
    const ends = found.intervals.flat().filter((end) => end > RANGE[0] && end < RANGE[RANGE.length - 1]);
    const reached = Array.from(curve, (value) => (value <= state.error ? value : NaN));
    return {
      charts: [
        {
          title: `Error on new tasks against the ${name}, and the error to reach.`,
          x: { name, log: true, low: 1e-2, high: 1e4 },
          y: { name: ERROR, log: true, low: 0.7 * Math.min(...seen), high: Math.min(300, 1.4 * Math.max(...seen)) },
          curves: [
            { key: "curve", name: "new tasks (ICL)", x: sizes, y: curve, tone: "blue", width: 3, label: true },
            { name: "", x: sizes, y: reached, tone: "green", width: 6 },
          ],
          levels: [{ y: state.error, name: `to reach: ${shown(state.error)}` }],
          uprights: ends.map((x) => ({
            x,
            name: `${QUANTITIES[state.question].name.match(/[ακτ]/)?.[0]} = ${shown(x)}`,
          })),
        },
      ],
      answer: found.advice,
      numbers: { intervals: found.intervals, floor: found.floor },
    };
  },
  /** @param {Record<string, any>} state */
  command: (state) => {
    const others = ["alpha", "kappa", "tau"].filter((one) => one !== QUANTITIES[state.question].quantity);
    const given = others.map((one) => `--${one} ${typed(state[one])}`).join(" ");
    return `iclab plan ${state.question} --error ${typed(state.error)} ${given} --noise ${typed(state.rho)} --ridge ${strength(state)}`;
  },
  /** @param {Record<string, any>} state */
  python: (state) => {
    const { quantity } = QUANTITIES[state.question];
    const given = ["alpha", "kappa", "tau"]
      .filter((one) => one !== quantity)
      .map((one) => `"${one}": ${pythonic(state[one])}`);
    const ridge = strength(state) === "best" ? '"best"' : "0.0";
    return `import numpy as np
import iclab
from iclab.planning import inverse
given = {${given.join(", ")}, "noise": ${pythonic(state.rho)}}
found = inverse.required("${quantity}", error=${pythonic(state.error)}, ridge=${ridge}, **given)
curve = inverse.error_of(iclab.Ratios(**given, ${quantity}=np.geomspace(1e-2, 1e4, 121)), ${ridge}, "icl")
intervals, floor = found.intervals, found.floor
print(found.advice)`;
  },
};
