/**
 * Time courses of linear attention in closed form: aligned heads of separate attention, white merged attention.
 * Mirrors iclab.theory.dynamics.aligned and closed_forms. Times are in units of τ, of the flow of −½∇L.
 */
import { exprel, increasingRoot } from "./numerics.js";
import { modes, moments, signalAndCurvature } from "./population.js";

/** @typedef {import("./population.js").Regression} Regression */
/** @typedef {import("./population.js").Moments} Moments */

/**
 * Losses of the fixed points that hold the modes of largest contribution, from none to all.
 * @param {Moments} moments
 */
export function plateaus(moments) {
  const levels = [moments.nullLoss];
  let gone = 0;
  for (const part of modes(moments).contribution) levels.push(moments.nullLoss - (gone += part));
  return levels;
}

/**
 * Values of heads that start as value, key and query `initial` along a direction each: dv/dt = g v² − h v⁵.
 * A curve for each direction, in the order of the inputs.
 * @param {Regression} problem
 * @param {ArrayLike<number>} initial positive, one for each direction
 * @param {ArrayLike<number>} time
 */
export function alignedValues(problem, initial, time) {
  const { signal, curvature } = signalAndCurvature(moments(problem));
  return signal.map((g, d) => Float64Array.from(time, alignedValue(g, curvature[d], initial[d])));
}

/**
 * Loss with one aligned head for each mode, an exact staircase: null loss − Σ (2 g v³ − h v⁶).
 * @param {Regression} problem
 * @param {ArrayLike<number>} initial
 * @param {ArrayLike<number>} time
 */
export function alignedLoss(problem, initial, time) {
  const law = moments(problem);
  const { signal, curvature } = signalAndCurvature(law);
  const values = alignedValues(problem, initial, time);
  return Float64Array.from(time, (_, at) => {
    let total = 0;
    for (let d = 0; d < signal.length; d++) {
      const cube = values[d][at] ** 3;
      total += (2 * signal[d] - curvature[d] * cube) * cube;
    }
    return law.nullLoss - total;
  });
}

/**
 * Time from the blow-up of a small head to half of its drop, negative: −1.2534 (h/g)^(1/3)/g, for each mode, largest
 * contribution first; −∞ where it contributes nothing.
 * @param {Moments} moments
 */
export function halfDropShift(moments) {
  const half = Math.cbrt(1 - Math.sqrt(0.5)); // v/v* where half of the loss is gone
  const { signal, curvature, contribution } = modes(moments);
  const pace = (/** @type {number} */ g, /** @type {number} */ d) => g * Math.cbrt(g / curvature[d]);
  return signal.map((g, d) => (contribution[d] > 0 ? risingClock(half) / pace(g, d) : -Infinity));
}

/**
 * Loss of merged attention for white inputs and tasks from a small start: Γ = σ(t) I with σ logistic.
 * @param {Regression} problem
 * @param {number} amplitude w₀
 * @param {ArrayLike<number>} time
 */
export function whiteMergedLoss(problem, amplitude, time) {
  const law = moments(problem);
  const { dimension, g, h } = whiteMode(law);
  const first = amplitude ** 2 / Math.sqrt(dimension); // σ(0)
  const rate = 2 * Math.sqrt(dimension) * g;
  return Float64Array.from(time, (t) => {
    const held = 2 * Math.sqrt(dimension) * h * t * exprel(-rate * t);
    const strength = first / (Math.exp(-rate * t) + first * held);
    return law.nullLoss - 2 * dimension * g * strength + dimension * h * strength ** 2;
  });
}

/**
 * Time at which white merged attention has made a fraction of its drop; NaN where that is not ahead of the start.
 * @param {Regression} problem
 * @param {number} amplitude w₀
 * @param {number} [fraction]
 */
export function whiteDropTime(problem, amplitude, fraction = 0.5) {
  const { dimension, g, h } = whiteMode(moments(problem));
  const logOdds = (/** @type {number} */ share) => Math.log(share / (1 - share));
  const reached = -Math.expm1(0.5 * Math.log1p(-fraction)); // 1 − √(1 − fraction), of the final strength g/h
  const first = ((amplitude ** 2 / Math.sqrt(dimension)) * h) / g;
  return first < reached ? (logOdds(reached) - logOdds(first)) / (2 * Math.sqrt(dimension) * g) : NaN;
}

/** @param {Moments} law */
function whiteMode({ cross, second, inputCovariance }) {
  return { dimension: cross.length, g: cross[0], h: second[0] * inputCovariance[0] };
}

/**
 * v(t) of dv/dt = g v² − h v⁵: the root of clock(v) = clock(first) + t on its side of the rest point.
 * @param {number} g
 * @param {number} h
 * @param {number} first
 * @returns {(time: number) => number}
 */
function alignedValue(g, h, first) {
  const rest = Math.cbrt(g / h);
  const origin = first / rest;
  if (h === 0 || origin === 1) return () => first;
  if (g === 0) return (time) => (first ** -4 + 4 * h * time) ** -0.25;
  const [clock, side] = origin < 1 ? [risingClock, 1] : [fallingClock, -1];
  const begin = clock(origin);
  return (time) => {
    const elapsed = begin + g * rest * time;
    /** @type {(x: number) => [number, number]} */
    const late = (x) => [side * (clock(x) - elapsed), 1 / Math.abs(x * (1 - x ** 3))];
    return rest * increasingRoot(late, Math.min(origin, 1), Math.max(origin, 1));
  };
}

/**
 * P with dP/dx = 1/(x² (1 − x³)) below x = 1.
 * @param {number} x
 */
function risingClock(x) {
  return -1 / x + (0.5 * Math.log1p(x + x * x) - Math.log1p(-x) - Math.sqrt(3) * clockAngle(x)) / 3;
}

/**
 * ∫ dx'/(x'² (x'³ − 1)) from x to infinity; far above 1 its series, for the logarithms cancel.
 * @param {number} x
 */
function fallingClock(x) {
  const u = 1 / x;
  if (u >= 0.5) return -u + (0.5 * Math.log1p(u + u * u) - Math.log1p(-u) + Math.sqrt(3) * clockAngle(u)) / 3;
  let total = 0;
  for (let power = 61; power >= 4; power -= 3) total += u ** power / power;
  return total;
}

/** @param {number} x */
function clockAngle(x) {
  return Math.atan((Math.sqrt(3) * x) / (2 + x));
}
