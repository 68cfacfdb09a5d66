/**
 * Training dynamics of the two-factor linear transformer, mode by mode: leading order in 1/N, and exact at any N.
 * Mirrors iclab.theory.modes. Curves are given mode by mode; times are in units of τ.
 */
import { integrate } from "./integration.js";
import { largestFirst, sum } from "./numerics.js";

/**
 * Contexts with diagonal tasks: s, N, ρ and the second moments m of the tasks, all 1 if left out.
 * @typedef {{eigenvalues: number[], contextLength: number, noise?: number, taskSecondMoments?: number[]}} Tasks
 * @typedef {[number, number]} Pair
 */
/**
 * p, q and their product, mode by mode, and the loss, along time.
 * @typedef {Float64Array[]} Curves
 * @typedef {{value: Curves, keyQuery: Curves, strength: Curves, loss: Float64Array}} ModeCurves
 */

/**
 * r = m s + ρ, variance of each output's labels.
 * @param {Tasks} tasks
 */
export function labelVariances({ eigenvalues, noise = 0, taskSecondMoments }) {
  return eigenvalues.map((s, d) => (taskSecondMoments ? taskSecondMoments[d] : 1) * s + noise);
}

/**
 * τ_α = 1/s_α², in which a mode grows by the factor e from a small start; infinite for s_α = 0.
 * @param {number[]} eigenvalues
 */
export function timeConstants(eigenvalues) {
  return eigenvalues.map((s) => 1 / s ** 2);
}

/**
 * Leading order: strengths a∞ = N/((N+1) s + tr Λ) at which the modes settle, whatever the noise.
 * @param {Tasks} tasks
 */
export function limits({ eigenvalues, contextLength }) {
  const trace = sum(eigenvalues);
  return eigenvalues.map((s) => contextLength / ((contextLength + 1) * s + trace));
}

/**
 * (p, q) at a time of one decoupled mode from any start, by sums of positive terms: p + q grows and p − q shrinks by
 * one factor. Starts on p = −q end at the saddle, all others at p q = a∞.
 * @param {Pair} start
 * @param {number} limit a∞
 * @param {number} timeConstant
 * @param {number} time
 * @returns {Pair}
 */
export function modeLaw([p, q], limit, timeConstant, time) {
  const [total, difference] = [Math.abs(p + q), Math.abs(p - q)];
  const balance = total * difference;
  const root = Math.hypot(2 * limit, balance);
  const phase = ((timeConstant === Infinity ? 0 : time / timeConstant) * root) / limit;
  const [faded, left] = [Math.exp(-phase / 2), Math.sqrt(-Math.expm1(-phase))];
  const upper = Math.sqrt(2 * limit + root);
  const lower = balance / upper;
  const grown = Math.hypot(upper, lower * faded, difference * left);
  const shrunk = Math.hypot(upper * faded, lower, total * left);
  const ahead = Math.abs(p) >= Math.abs(q);
  const [large, small] = ahead ? [p, q] : [q, p];
  const sign = large < 0 || Object.is(large, -0) ? -1 : 1;
  const both = 2 * limit * (1 + (2 * limit) / (root + balance)); // 2 a∞ + S − |p² − q²|
  const gain = (both * left ** 2 * (total + difference * (lower / upper))) / 2;
  const [growth, saddle] = [grown / shrunk, total === 0];
  const larger = (sign * ((saddle ? 0 : total * growth) + difference / growth)) / 2;
  // half a difference of these two, which would cancel: here it is a sum if p q >= 0
  const lesser = saddle ? -larger : (sign * gain + 2 * root * faded ** 2 * small) / (grown * shrunk);
  return ahead ? [larger, lesser] : [lesser, larger];
}

/**
 * Time at which p q first reaches a fraction of its limit; 0 if it starts there, infinite if it never does.
 * @param {number} fraction
 * @param {Pair} start
 * @param {number} limit a∞
 * @param {number} timeConstant
 */
export function timeToFraction(fraction, [p, q], limit, timeConstant) {
  const [total, difference, target] = [Math.abs(p + q), Math.abs(p - q), fraction * limit];
  if (p * q >= target) return 0;
  const balance = total * difference;
  const [root, targetRoot] = [Math.hypot(2 * limit, balance), Math.hypot(2 * target, balance)];
  const targetSquare = 2 * target + targetRoot; // (p + q)² at the end
  const rest = 1 - fraction;
  const targetLeft = 2 * limit * rest + (4 * limit ** 2 * rest * (1 + fraction)) / (root + targetRoot);
  const gone = Math.hypot(total, balance / Math.sqrt(2 * limit + root)); // its square would underflow at tiny starts
  if (gone === 0) return Infinity;
  const ahead = (8 * root * (target - p * q) * (targetSquare / (targetSquare + difference ** 2))) / targetLeft;
  const odds = ahead / gone / gone;
  const elapsed = odds < 1 ? Math.log1p(odds) : Math.log(ahead) - 2 * Math.log(gone) + Math.log1p(1 / odds);
  return (elapsed * timeConstant * limit) / root;
}

/**
 * The two growth rates of small departures from (p, q), smaller first: ∓1/τ at the saddle (0, 0).
 * @param {Pair} start
 * @param {number} limit a∞
 * @param {number} timeConstant
 * @returns {Pair}
 */
export function growthRates([p, q], limit, timeConstant) {
  const kept = (p * q) / limit;
  const steepness = (p ** 2 + q ** 2) / (2 * limit) + Math.hypot(((p - q) * (p + q)) / (2 * limit), 1 - 2 * kept);
  return [-steepness / timeConstant, ((1 - kept) * (1 - 3 * kept)) / steepness / timeConstant];
}

/**
 * Mode curves at leading order, each by its modeLaw, from the same p and q in every mode.
 * @param {Tasks} tasks
 * @param {Pair} start
 * @param {ArrayLike<number>} time
 * @returns {ModeCurves}
 */
export function leadingOrder(tasks, start, time) {
  const [ends, constants] = [limits(tasks), timeConstants(tasks.eigenvalues)];
  const paths = ends.map((limit, d) => Array.from(time, (t) => modeLaw(start, limit, constants[d], t)));
  return modeCurves(paths, (p, q) => leadingOrderLoss(tasks, p.map((v, d) => v * q[d])));
}

/**
 * The mean squared error Σ s (s a²/a∞ − 2 s a + 1) of modes of strength a, at leading order.
 * @param {Tasks} tasks
 * @param {number[]} strength
 */
export function leadingOrderLoss(tasks, strength) {
  const ends = limits(tasks);
  return sum(tasks.eigenvalues.map((s, d) => s * ((s * strength[d] ** 2) / ends[d] - 2 * s * strength[d] + 1)));
}

/**
 * Mode curves of the exact flow at finite N, from the same p and q in every mode.
 * @param {Tasks} tasks
 * @param {Pair} start
 * @param {ArrayLike<number>} time
 * @param {number} [tolerance]
 * @returns {ModeCurves}
 */
export function exactFlow(tasks, [p, q], time, tolerance = 1e-10) {
  const { eigenvalues: s, contextLength: length, taskSecondMoments } = tasks;
  const [r, count] = [labelVariances(tasks), s.length];
  const moment = taskSecondMoments ?? s.map(() => 1);
  const velocity = (/** @type {Float64Array} */ state, /** @type {Float64Array} */ out) => {
    let pSum = 0;
    let qSum = 0;
    for (let d = 0; d < count; d++) {
      pSum += r[d] * state[d] ** 2;
      qSum += (s[d] * state[count + d]) ** 2;
    }
    for (let d = 0; d < count; d++) {
      const value = state[d];
      const keyQuery = state[count + d];
      const residual = moment[d] * s[d] ** 2 * (1 - (1 + 1 / length) * value * keyQuery * s[d]);
      out[d] = keyQuery * residual - (r[d] * value * qSum) / length;
      out[count + d] = value * residual - (keyQuery * s[d] ** 2 * pSum) / length;
    }
  };
  const start = [...s.map(() => p), ...s.map(() => q)];
  const floor = start.map(() => 1e-3 * (Math.max(Math.abs(p), Math.abs(q)) || 1));
  const states = integrate(velocity, start, time, { tolerance, floor });
  const paths = s.map((_, d) => states.map((state) => /** @type {Pair} */ ([state[d], state[count + d]])));
  return modeCurves(paths, (value, keyQuery) => exactLoss(tasks, value, keyQuery));
}

/**
 * Exact mean squared error of diagonal weights p, q, summed over outputs.
 * @param {Tasks} tasks
 * @param {number[]} p
 * @param {number[]} q
 */
export function exactLoss(tasks, p, q) {
  const { eigenvalues: s, contextLength } = tasks;
  const r = labelVariances(tasks);
  const coupling = sum(p.map((v, d) => r[d] * v ** 2)) * sum(q.map((v, d) => (s[d] * v) ** 2));
  return separableLoss(tasks, p.map((v, d) => v * q[d])) + coupling / contextLength;
}

/**
 * Least exact loss of modes of given strengths, over all ways to split them into p and q.
 * @param {Tasks} tasks
 * @param {number[]} strength
 */
export function exactProductLoss(tasks, strength) {
  const r = labelVariances(tasks);
  const shared = sum(strength.map((a, d) => Math.sqrt(r[d]) * tasks.eigenvalues[d] * Math.abs(a)));
  return separableLoss(tasks, strength) + shared ** 2 / tasks.contextLength;
}

/**
 * Strengths p q at the minimum of the exact loss; 0 for modes whose signal is smaller than the noise they add.
 * @param {Tasks} tasks
 */
export function exactFixedPoint(tasks) {
  const { eigenvalues: s, contextLength: length, taskSecondMoments } = tasks;
  const r = labelVariances(tasks);
  const signal = s.map((v, d) => (taskSecondMoments ? taskSecondMoments[d] : 1) * v);
  const ratio = signal.map((v, d) => (v > 0 ? v / Math.sqrt(r[d]) : 0));
  /** @type {number[]} */
  const kept = [];
  let [roots, shares] = [0, 0];
  for (const d of largestFirst(ratio).filter((place) => signal[place] > 0)) {
    roots += Math.sqrt(r[d]);
    shares += r[d] / signal[d];
    if (length * ratio[d] > (length * roots) / (length + 1 + shares)) kept.push(d);
  }
  const inverse = signal.map((v, d) => Math.sqrt(r[d]) / v);
  const all = length + 1 + sum(kept.map((d) => Math.sqrt(r[d]) * inverse[d]));
  return s.map((v, d) => {
    if (!kept.includes(d)) return 0;
    const own = length + 1 + sum(kept.map((other) => (inverse[other] - inverse[d]) * Math.sqrt(r[other])));
    return (length / ((length + 1) * v)) * (own / all);
  });
}

/**
 * Exact mean squared error at the end of training.
 * @param {Tasks} tasks
 */
export function exactLeastLoss(tasks) {
  return exactProductLoss(tasks, exactFixedPoint(tasks));
}

/**
 * Σ m (s − 2 a s² + (1 + 1/N) a² s³) + D ρ, the part of the loss that is a sum over modes.
 * @param {Tasks} tasks
 * @param {number[]} strength
 */
function separableLoss({ eigenvalues, contextLength, noise = 0, taskSecondMoments }, strength) {
  const parts = eigenvalues.map((s, d) => {
    const a = strength[d];
    const own = s - 2 * a * s ** 2 + (1 + 1 / contextLength) * a ** 2 * s ** 3;
    return (taskSecondMoments ? taskSecondMoments[d] : 1) * own;
  });
  return sum(parts) + eigenvalues.length * noise;
}

/**
 * Curves from paths of (p, q) mode by mode.
 * @param {Pair[][]} paths
 * @param {(p: number[], q: number[]) => number} lossOf
 * @returns {ModeCurves}
 */
function modeCurves(paths, lossOf) {
  const part = (/** @type {(pair: Pair) => number} */ of) => paths.map((path) => Float64Array.from(path, of));
  const at = (/** @type {number} */ t, /** @type {0 | 1} */ which) => paths.map((path) => path[t][which]);
  return {
    value: part(([p]) => p),
    keyQuery: part(([, q]) => q),
    strength: part(([p, q]) => p * q),
    loss: Float64Array.from(paths[0], (_, t) => lossOf(at(t, 0), at(t, 1))),
  };
}
