/**
 * Fixed points of linear attention, where gradient flow stalls, and the directions in which they are left. Mirrors
 * iclab.theory.dynamics.fixed_points and stability. Modes count from 0, largest contribution first.
 */
import { modes } from "./population.js";

/** @typedef {import("./population.js").Moments} Moments */
/**
 * Directions along which the loss curves down; a degenerate saddle has none and is left at the third order.
 * @typedef {{negative: number, degenerate: boolean}} Stability
 */

/**
 * Γ, row after row, of the fixed point that holds the modes `learned`, each at its best strength g/h.
 * @param {Moments} moments
 * @param {number[]} learned
 */
export function fixedPoint(moments, learned) {
  const { direction, signal, curvature } = modes(moments);
  const size = direction.length;
  const gamma = new Float64Array(size * size);
  for (const mode of learned) {
    if (signal[mode] > 0) gamma[direction[mode] * (size + 1)] = signal[mode] / curvature[mode];
  }
  return gamma;
}

/**
 * Sets of modes that separate attention can hold, smallest first: at most heads × rank modes that contribute.
 * @param {Moments} moments
 * @param {number} heads
 * @param {number} [rank]
 */
export function reachable(moments, heads, rank = 1) {
  const learnable = modes(moments).contribution.filter((part) => part > 0).length;
  /** @type {number[][]} */
  const sets = [[]];
  let largest = [/** @type {number[]} */ ([])];
  for (let size = 1; size <= Math.min(learnable, heads * rank); size++) {
    largest = largest.flatMap((held) => {
      const first = held.length ? held[held.length - 1] + 1 : 0;
      return Array.from({ length: learnable - first }, (_, i) => [...held, first + i]);
    });
    sets.push(...largest);
  }
  return sets;
}

/**
 * Signal g of each mode, the growth rate of a small head along it; a small start first learns the largest.
 * @param {Moments} moments
 */
export function growth(moments) {
  return modes(moments).signal;
}

/**
 * Stability of separate attention where it holds the modes `learned`, balanced and with a head unused: the loss
 * curves down from each learned mode towards each unlearned one of larger contribution, and from each spare key-query
 * pair of an active head towards each unlearned mode.
 * @param {Moments} moments
 * @param {number[]} learned
 * @param {number} [rank]
 * @returns {Stability}
 */
export function stability(moments, learned, rank = 1) {
  const { contribution } = modes(moments);
  const learnable = contribution.flatMap((part, mode) => (part > 0 ? [mode] : []));
  const unlearned = learnable.filter((mode) => !learned.includes(mode));
  const active = learned.filter((mode) => contribution[mode] > 0);
  const best = unlearned.length ? contribution[unlearned[0]] : 0;
  const outdone = active.map((lost) => {
    return unlearned.filter((gained) => exceeds(contribution[gained], contribution[lost], best)).length;
  });
  const spare = (rank - (active.length % rank)) % rank;
  const negative = outdone.reduce((total, count) => total + count, 0) + spare * unlearned.length;
  return { negative, degenerate: unlearned.length > 0 && negative === 0 };
}

/**
 * Stability of merged attention at zero, where each head has one direction of negative curvature, or at its minimum.
 * @param {Moments} moments
 * @param {number[]} learned none or all modes that contribute
 * @param {number} heads
 * @returns {Stability}
 */
export function mergedStability(moments, learned, heads) {
  const learnable = modes(moments).contribution.flatMap((part, mode) => (part > 0 ? [mode] : []));
  return { negative: learnable.every((mode) => learned.includes(mode)) ? 0 : heads, degenerate: false };
}

/**
 * Sets of modes that rotating heads reach from `learned`: one mode exchanged for one of larger contribution.
 * @param {Moments} moments
 * @param {number[]} learned
 */
export function rotations(moments, learned) {
  const { contribution } = modes(moments);
  const unlearned = contribution.flatMap((_, mode) => (learned.includes(mode) ? [] : [mode]));
  return learned.flatMap((lost) => {
    const gain = (/** @type {number} */ mode) => exceeds(contribution[mode], contribution[lost], contribution[mode]);
    const better = unlearned.filter(gain);
    return better.map((gained) => [...learned.filter((mode) => mode !== lost), gained].sort((a, b) => a - b));
  });
}

/**
 * True where a contribution exceeds another by more than the rounding of a singular value.
 * @param {number} one
 * @param {number} other
 * @param {number} largest of those that are compared with the other
 */
function exceeds(one, other, largest) {
  return one > other + 1e-12 * Math.max(largest, other);
}
