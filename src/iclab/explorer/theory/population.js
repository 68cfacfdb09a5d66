/**
 * The population loss of linear attention for diagonal covariances, and its moments. Mirrors iclab.theory.population.
 *
 * With summary h and query (x_q, y_q) the loss is L(Γ) = null − 2⟨Γ, B⟩ + ⟨Γ, C Γ Λ⟩; matrices are given by their
 * diagonals.
 */
import { largestFirst, mean, sum } from "./numerics.js";

/**
 * The law of one context: λ, N (several are mixed evenly), ρ, and ω, all 1 if left out.
 * @typedef {{eigenvalues: number[], contextLengths: number[], noise: number, taskEigenvalues?: number[]}} Regression
 */
/**
 * Diagonals of B, C and Λ, and the loss of the prediction 0.
 * @typedef {{cross: number[], second: number[], inputCovariance: number[], nullLoss: number}} Moments
 */
/**
 * Modes, largest contribution first: the direction of each, its signal g and curvature h, and what it removes of the
 * loss, g²/h.
 * @typedef {{direction: number[], signal: number[], curvature: number[], contribution: number[]}} Modes
 */

/**
 * Moments of a problem, whose summary is divided by the length of its context.
 * @param {Regression} problem
 * @returns {Moments}
 */
export function moments(problem) {
  return momentsFrom(problem, "length");
}

/**
 * Moments of a problem whose summary Σ y x is divided by the length n of its context, by its tokens n + 1, or by none.
 * With r = n/divisor, B = ⟨r⟩ λ²ω and C = ⟨r²⟩ λ²ω + ⟨r²/n⟩ (λ²ω + (Σ λω + ρ) λ).
 * @param {Regression} problem
 * @param {"length" | "tokens" | "none"} normalization
 * @returns {Moments}
 */
export function momentsFrom({ eigenvalues, contextLengths, noise, taskEigenvalues }, normalization) {
  const tasks = taskEigenvalues ?? eigenvalues.map(() => 1);
  const nullLoss = sum(eigenvalues.map((variance, d) => variance * tasks[d])) + noise;
  const signal = eigenvalues.map((variance, d) => variance * tasks[d] * variance);
  const gains = contextLengths.map((n) => ({ length: 1, tokens: n / (n + 1), none: n })[normalization]);
  const square = mean(gains.map((gain) => gain ** 2));
  const shortness = mean(gains.map((gain, i) => gain ** 2 / contextLengths[i]));
  const second = signal.map((part, d) => square * part + shortness * (part + nullLoss * eigenvalues[d]));
  return { cross: signal.map((part) => mean(gains) * part), second, inputCovariance: eigenvalues, nullLoss };
}

/**
 * Signal g = B and curvature h = C λ of each direction, in the order of the inputs.
 * @param {Moments} moments
 */
export function signalAndCurvature({ cross, second, inputCovariance }) {
  return { signal: cross, curvature: second.map((entry, d) => entry * inputCovariance[d]) };
}

/**
 * Modes of a law. A direction whose singular value of C^-1/2 B Λ^-1/2 is rounding contributes nothing.
 * @param {Moments} moments
 * @returns {Modes}
 */
export function modes(moments) {
  const rounding = 1e-11; // of the largest singular value
  const { signal, curvature } = signalAndCurvature(moments);
  const each = signal.map((g, d) => (curvature[d] > 0 ? (g * g) / curvature[d] : 0));
  const least = rounding * Math.sqrt(Math.max(...each));
  const contribution = each.map((part) => (Math.sqrt(part) > least ? part : 0));
  const direction = largestFirst(contribution);
  return {
    direction,
    signal: direction.map((d) => (contribution[d] > 0 ? signal[d] : 0)),
    curvature: direction.map((d) => curvature[d]),
    contribution: direction.map((d) => contribution[d]),
  };
}

/**
 * Mean squared error of the prediction hᵀ Γ x_q for a (D, D) Γ, row after row.
 * @param {Moments} moments
 * @param {ArrayLike<number>} gamma
 */
export function loss({ cross, second, inputCovariance, nullLoss }, gamma) {
  const size = cross.length;
  let total = nullLoss;
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      const entry = gamma[i * size + j];
      total += second[i] * entry * entry * inputCovariance[j] - (i === j ? 2 * entry * cross[i] : 0);
    }
  }
  return total;
}
