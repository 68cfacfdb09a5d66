/**
 * Errors of pretrained linear attention in the proportional limit: D → ∞, N = αD, K = κD, n = τD². Mirrors
 * iclab.theory.pretraining.proportional.
 */
import { LONG, MANY, STRONG, effectiveRidge, errorsFrom, wishartMoments, withLimits } from "./resolvent.js";

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
