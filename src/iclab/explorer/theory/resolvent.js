/**
 * The resolvent of a Wishart matrix and the effective ridge of pretraining. Mirrors resolvent and response of
 * iclab.theory.pretraining: every error is made of averages over the spectrum of the pool, sums of positive terms.
 */
import { increasingRoot } from "./numerics.js";

/** Numbers that replace infinity: α; κ and τ; ridge. VANISHED bounds errors that tend to zero at the largest α. */
export const LONG = 1e100;
export const MANY = 1e250;
export const STRONG = 1e150;
export const VANISHED = 1e-45;

/** @typedef {{alpha: number, kappa: number, tau: number, noise: number}} Ratios N/D, K/D, n/D² and ρ */
/** @typedef {{icl: number, idg: number, train: number, effectiveRidge: number}} Errors on new tasks, pool, data */
/**
 * Averages over the eigenvalues r of the pool at a shift ν: of 1/(r + ν), of kept = r/(r + ν), of lost = ν/(r + ν).
 * @typedef {{inverse: number, inverseSquare: number, kept: number, keptSquare: number, lost: number,
 *   lostSquare: number, mixed: number}} WishartMoments
 */
/**
 * Traces in the errors.
 * @typedef {{lostPool: number, lostNew: number, noisy: number, ridgeSpread: number, noiseSpread: number,
 *   newSpread: number}} Averages
 */

/**
 * Averages over the law of Marchenko and Pastur, the spectrum of a pool of K = κD tasks; κ = ∞ is R = I.
 * @param {number} shift ν
 * @param {number} kappa
 * @returns {WishartMoments}
 */
export function wishartMoments(shift, kappa) {
  const pool = Math.min(kappa, MANY);
  const [w, root] = inverseMoment(shift, pool);
  const c = 1 / pool;
  const [kept, lost] = [1 / (w + c), shift / w];
  const ratio = 0.5 * (1 + (shift + 1 + c) / root); // E 1/(r + ν)² / M²
  return {
    inverse: 1 / w,
    inverseSquare: ratio / w / w,
    kept,
    keptSquare: kept * kept * ratio * (w * kept + c * lost),
    lost,
    lostSquare: lost * lost * ratio,
    mixed: shift * kept * kept * ratio,
  };
}

/**
 * ξ, the root of 1 − df/τ = λ/ξ with df = E (r + x)/(r + ν); without ridge its limit, 0 for τ >= 1. Arguments are
 * bounded by the caller.
 * @param {number} x context noise
 * @param {number} kappa
 * @param {number} tau
 * @param {number} ridge
 */
export function effectiveRidge(x, kappa, tau, ridge) {
  const start = flatRidge(inverseMoment(x, kappa, Math.min(tau, 1))[0], tau, ridge);
  if (ridge === 0) return start;
  /** @type {(xi: number) => [number, number]} */
  const equation = (xi) => {
    const [share, spread] = slack(xi, x, kappa, tau);
    return [share - ridge / xi, ridge / xi + spread];
  };
  return increasingRoot(equation, ridge, ridge + (1 + x) / tau, start);
}

/**
 * ξ when every eigenvalue of the features is `level`: the positive root of a quadratic.
 * @param {number} level
 * @param {number} tau
 * @param {number} ridge
 */
export function flatRidge(level, tau, ridge) {
  const middle = level * ((tau - 1) / tau) - ridge;
  const root = Math.hypot(middle, 2 * Math.sqrt(ridge) * Math.sqrt(level));
  const large = 0.5 * (Math.abs(middle) + root);
  return middle > 0 ? ridge * (level / Math.max(large, 1e-200)) : large;
}

/**
 * 1 − df/τ, accurate where df is near `rank` when the rest, rank − df, is.
 * @param {number} df
 * @param {number} rest
 * @param {number} rank
 * @param {number} tau
 */
export function unspent(df, rest, rank, tau) {
  return (df * ((tau - rank) / tau) + rest) / rank;
}

/**
 * ICL, IDG and training error from the traces; `share` is λ/ξ = 1 − df/τ, x the context noise.
 * @param {Averages} averages
 * @param {number} share
 * @param {number} tau
 * @param {number} noise
 * @param {number} x
 */
export function errorsFrom(averages, share, tau, noise, x) {
  const own = noise + averages.lostPool + x * averages.noisy;
  const unused = share + averages.ridgeSpread / tau; // 1 − df₂/τ
  const idg = own / unused;
  const response = averages.newSpread + x * averages.noiseSpread;
  const icl = noise + averages.lostNew + x * averages.noisy + (idg / tau) * response;
  return { icl, idg, train: share * (own / Math.max(unused, 1e-200)) * share };
}

/**
 * True where the ICL and the IDG error are infinite: at α = ∞ with label noise and without ridge. The pool spans the
 * fraction min(κ, support) of all directions.
 * @param {Ratios} ratios
 * @param {number} ridge
 * @param {number} [support] fraction of the directions in which tasks have a component
 * @returns {[boolean, boolean]}
 */
export function divergesAtInfiniteAlpha({ alpha, kappa, tau, noise }, ridge, support = 1) {
  const noisy = alpha === Infinity && Number.isFinite(tau) && ridge === 0 && noise > 0;
  const peak = tau === Math.min(kappa, support);
  return [noisy && (kappa <= Math.min(tau, support) || peak), noisy && peak];
}

/**
 * Errors that are exact where an argument is infinite.
 * @param {{icl: number, idg: number, train: number}} found
 * @param {number} xi effective ridge
 * @param {Ratios} ratios
 * @param {number} ridge
 * @param {number} [support]
 * @returns {Errors}
 */
export function withLimits(found, xi, ratios, ridge, support = 1) {
  let { icl, idg, train } = found;
  let effective = xi;
  if (ratios.alpha === Infinity) {
    const [noIcl, noIdg] = divergesAtInfiniteAlpha(ratios, ridge, support);
    if (noIcl) icl = Infinity;
    if (noIdg) idg = Infinity;
    const vanishing = (/** @type {number} */ part) => (ridge === 0 && part < VANISHED ? 0 : part);
    [icl, idg, train, effective] = [icl, idg, train, effective].map(vanishing);
  }
  return { icl, idg, train, effectiveRidge: ridge === Infinity ? Infinity : effective };
}

/**
 * 1 − df/τ and its derivative in log ξ; near the largest df, 1 or the rank κ, by its distance from it.
 * @param {number} xi
 * @param {number} x
 * @param {number} kappa
 * @param {number} tau
 * @returns {[number, number]}
 */
function slack(xi, x, kappa, tau) {
  const shift = x + xi;
  const [w, root] = inverseMoment(shift, kappa);
  const c = 1 / kappa;
  const [kept, noise, lost] = [1 / (w + c), x / w, xi / w];
  const idle = kappa * (w * kept); // κ − E r/(r + ν)
  const low = kappa < 1 && idle + noise < kappa * lost;
  const slope = xi * (kept * kept + noise / w) * (0.5 * (1 + (shift + 1 + c) / root));
  return [unspent(kept + noise, low ? idle - noise : lost, low ? kappa : 1, tau), slope / tau];
}

/**
 * W = 1/M at pool size κ/τ, and the root in it: W² − aW = τν/κ with a = ν + (κ − τ)/κ, by its stable branch.
 * @param {number} shift ν
 * @param {number} kappa
 * @param {number} [tau]
 * @returns {[number, number]}
 */
function inverseMoment(shift, kappa, tau = 1) {
  const a = shift + (kappa - tau) / kappa;
  const product = (tau / kappa) * shift;
  const root = Math.hypot(a, 2 * Math.sqrt(product));
  const large = 0.5 * (Math.abs(a) + root);
  return [a >= 0 ? large : product / large, root];
}
