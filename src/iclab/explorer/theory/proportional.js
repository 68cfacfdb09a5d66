/**
 * Errors of pretrained linear attention in the proportional limit: D → ∞, N = αD, K = κD, n = τD². Mirrors
 * iclab.theory.pretraining.proportional.
 */
import { LEAST, MOST, geomspace, increasingRoot } from "./numerics.js";
import { LONG, MANY, STRONG, VANISHED, divergesAtInfiniteAlpha } from "./resolvent.js";
import { effectiveRidge, errorsFrom, wishartMoments, withLimits } from "./resolvent.js";
import { least } from "./searches.js";

/** @typedef {import("./resolvent.js").Ratios} Ratios */
/** @typedef {import("./resolvent.js").Errors} Errors */

/**
 * ICL, IDG and training error of ridge regression on the readout, for white inputs and tasks.
 * @param {Ratios} ratios
 * @param {number} [ridge]
 * @returns {Errors}
 */
export function errors(ratios, ridge = 0) {
  const at = pretrained(ratios, ridge);
  return withLimits(errorsFrom(at.averages, at.share, at.tau, ratios.noise, at.x), at.xi, ratios, ridge);
}

/**
 * ICL − IDG, the excess error on a new task after pretraining on K tasks only; accurate also where it is far below
 * both.
 * @param {Ratios} ratios
 * @param {number} [ridge]
 */
export function diversityGap(ratios, ridge = 0) {
  if (ratios.kappa === Infinity) return 0;
  if (divergesAtInfiniteAlpha(ratios, ridge)[0]) return Infinity;
  const { x, xi, kappa, tau, share, spectrum: m, averages } = pretrained(ratios, ridge);
  const few = 1 + m.kept / m.inverse; // 1 + φ with φ = 1 − E[r/(r + ν)]/κ
  const { idg } = errorsFrom(averages, share, tau, ratios.noise, x);
  const noise = x * m.inverse * (m.inverseSquare / m.inverse) * m.kept * few;
  const spread = (m.mixed / (x + xi)) * (m.kept - m.lost) + noise;
  const gap = (m.lostSquare * m.kept * few + (idg / tau) * spread) / kappa;
  return ratios.alpha === Infinity && ridge === 0 && Math.abs(gap) < VANISHED ? 0 : gap;
}

/**
 * Height of the ridgeless peak at τ = 1: the limit of |τ − 1| times the error, from both sides.
 * @param {number} alpha
 * @param {number} kappa
 * @param {number} noise
 */
export function interpolationPeak(alpha, kappa, noise) {
  const { x, spectrum, averages } = pretrained({ alpha, kappa, tau: Infinity, noise }, 0);
  const idg = noise + averages.lostPool + x * averages.noisy;
  const icl = idg * (1 + x) * spectrum.inverse;
  if (alpha < Infinity) return { icl, idg };
  const infinite = divergesAtInfiniteAlpha({ alpha, kappa, tau: 2, noise }, 0)[0];
  return { icl: infinite ? Infinity : icl < VANISHED ? 0 : icl, idg: idg < VANISHED ? 0 : idg };
}

/**
 * κ_c, the pool size below which the ridgeless ICL error is larger at α = ∞ than at some finite α: min(τ, 1) (1 + z)
 * with (1 + |τ − 1|) z³ = ρ + 3ρz + (2ρ − 1) z².
 * @param {number} tau
 * @param {number} noise
 */
export function criticalKappa(tau, noise) {
  if (noise === 0) return Math.min(tau, 1);
  const cubic = 1 + Math.abs(Math.min(tau, MANY) - 1);
  /** @type {(z: number) => [number, number]} */
  const equation = (z) => {
    const [linear, constant] = [(3 * noise) / z, noise / z / z];
    return [cubic * z + 1 - 2 * noise - linear - constant, cubic * z + linear + 2 * constant];
  };
  const z = increasingRoot(equation, Math.min(1, Math.sqrt(noise / (cubic + 1))), Math.max(1, 6 * noise));
  return Math.min(tau, 1) * (1 + z);
}

/**
 * The context length α of least error; infinite where longer is always better, 0 where shorter is or where no length
 * saves more than 1e-9 of the error of contexts without examples.
 * @param {number} kappa
 * @param {number} tau
 * @param {number} noise
 * @param {number} [ridge]
 * @param {"icl" | "idg"} [target]
 */
export function bestAlpha(kappa, tau, noise, ridge = 0, target = "icl") {
  const peaked = tau === 1 && ridge === 0;
  const error = (/** @type {number} */ alpha) => {
    const found = peaked ? interpolationPeak(alpha, kappa, noise) : errors({ alpha, kappa, tau, noise }, ridge);
    return found[target];
  };
  const [idle, flat, longest] = [1 + 1e-9, 1 + 1e-15, 1e20];
  const best = least(error, geomspace(LEAST, longest, 241));
  const lowest = error(best);
  if (best >= longest || error(Infinity) <= flat * lowest) return Infinity;
  return error(LEAST) <= idle * lowest ? 0 : best;
}

/**
 * The ridge of least ICL or IDG error; 0 or infinite where the error decreases all the way.
 * @param {Ratios} ratios
 * @param {"icl" | "idg"} [target]
 */
export function bestRidge(ratios, target = "icl") {
  const error = (/** @type {number} */ ridge) => errors(ratios, ridge)[target];
  const strengths = geomspace(LEAST, MOST, 81);
  const flat = 1 + 1e-15; // errors closer than this are equal to rounding, and the limit is taken
  let best = least(error, strengths);
  const floor = flat * error(best);
  if (error(0) <= floor) return 0;
  if (best > LEAST && error(Math.max(best / 100, LEAST)) <= floor) {
    best = strengths[strengths.findIndex((ridge) => error(ridge) <= floor)];
  }
  return error(Infinity) <= floor ? Infinity : best;
}

/**
 * Pretraining with its effective ridge solved for; infinities are replaced by large numbers.
 * @param {Ratios} ratios
 * @param {number} ridge
 */
function pretrained(ratios, ridge) {
  const x = (1 + ratios.noise) / Math.min(ratios.alpha, LONG);
  const [kappa, tau, penalty] = [Math.min(ratios.kappa, MANY), Math.min(ratios.tau, MANY), Math.min(ridge, STRONG)];
  const xi = effectiveRidge(x, kappa, tau, penalty);
  const share = Math.max(penalty / Math.max(xi, 1e-300), (tau - 1) / tau);
  const spectrum = wishartMoments(x + xi, kappa);
  const spread = spectrum.mixed / (x + xi) + x * spectrum.inverse * (spectrum.inverseSquare / spectrum.inverse);
  const averages = {
    lostPool: (x + xi) * spectrum.mixed,
    lostNew: spectrum.lostSquare,
    noisy: spectrum.keptSquare,
    ridgeSpread: xi * spread,
    noiseSpread: spread,
    newSpread: spread,
  };
  return { x, xi, kappa, tau, share, spectrum, averages };
}
