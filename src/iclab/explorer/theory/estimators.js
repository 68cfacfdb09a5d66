/**
 * Bayes estimators, references for linear attention: ridge regression, and the posterior mean over exp(sD) tasks.
 * Mirrors iclab.theory.estimators.bayes.
 */
import { increasingRoot } from "./numerics.js";
import { LONG, wishartMoments } from "./resolvent.js";

/**
 * Error of ridge regression at ridge ρ, the Bayes estimator for w ~ N(0, I), target noise included.
 * @param {number} alpha
 * @param {number} noise
 */
export function ridgeError(alpha, noise) {
  return noise > 0 ? noise + contextSpectrum(alpha, noise).lost : Math.max(1 - alpha, 0);
}

/**
 * s_c, the information of a context about its task in nats for each dimension; with more than exp(s_c D) tasks the
 * pool is as good as all tasks.
 * @param {number} alpha
 * @param {number} noise
 */
export function taskThreshold(alpha, noise) {
  return noise === 0 || alpha === Infinity ? Infinity : information(alpha, noise);
}

/**
 * Errors of the dMMSE estimator with exp(sD) tasks w ~ N(0, I), D → ∞, on new tasks and on those of the pool.
 * @param {number} alpha
 * @param {number} noise
 * @param {number} logTasks s
 */
export function dmmseErrors(alpha, noise, logTasks) {
  const ridge = ridgeError(alpha, noise);
  if (logTasks >= taskThreshold(alpha, noise)) return { icl: ridge, idg: ridge };
  if (logTasks === 0) return { icl: noise + 2, idg: noise };
  const edge = posteriorEdge(alpha, noise, logTasks);
  const fit = contextSpectrum(alpha, edge);
  const condensed = 1 - noise / edge; // Σ p², the weight that does not spread over several tasks
  return { icl: noise + fit.lostSquare + (noise / edge) * fit.mixed + condensed * fit.lost, idg: noise };
}

/**
 * Errors of the one pool task of best fit to the context, with exp(sD) tasks w ~ N(0, I).
 * @param {number} alpha
 * @param {number} noise
 * @param {number} logTasks s
 */
export function nearestTaskErrors(alpha, noise, logTasks) {
  let icl = noise + 2;
  if (logTasks > 0) {
    const edge = posteriorEdge(alpha, noise, logTasks);
    const fit = contextSpectrum(alpha, edge);
    icl = noise + fit.lostSquare + (noise / edge) * fit.mixed + fit.lost;
  }
  return { icl, idg: logTasks >= taskThreshold(alpha, noise) ? icl : noise };
}

/**
 * s of the limit D → ∞ that describes K tasks in D dimensions: (ln K − ½ ln(4π ln K))/D, at least 0.
 * @param {number} tasks
 * @param {number} dimension
 */
export function effectiveLogTasks(tasks, dimension) {
  const log = Math.log(tasks);
  if (log === Infinity) return Infinity;
  const shift = 0.5 * Math.log(4 * Math.PI * Math.max(log, 1 / (4 * Math.PI)));
  return Math.max((log - shift) / dimension, 0);
}

/** Replaces noise 0. */
const SILENT = 1e-120;

/**
 * The spectrum of XᵀX, α times a Wishart matrix of pool size α, at the shift ρ/α.
 * @param {number} alpha
 * @param {number} noise
 */
function contextSpectrum(alpha, noise) {
  const length = Math.min(alpha, LONG);
  return wishartMoments(Math.max(noise, SILENT) / length, length);
}

/**
 * I(w; y | X)/D in nats.
 * @param {number} alpha
 * @param {number} noise
 */
function information(alpha, noise) {
  const [fit, length] = [contextSpectrum(alpha, noise), Math.min(alpha, LONG)];
  const logLost = fit.kept < 0.5 ? Math.log1p(-fit.kept) : Math.log(fit.lost);
  return 0.5 * (length * Math.log1p(fit.inverse / length) - logLost - fit.kept);
}

/**
 * KL divergence, for each dimension, of the posterior that assumes noise r from the prior.
 * @param {number} alpha
 * @param {number} noise
 * @param {number} r
 */
function divergence(alpha, noise, r) {
  const fit = contextSpectrum(alpha, r);
  return 0.5 * (fit.keptSquare + (noise / r) * fit.mixed - fit.kept) + information(alpha, r);
}

/**
 * r at which the posterior under noise r has divergence s from the prior: the edge of exp(sD) tasks.
 * @param {number} alpha
 * @param {number} noise
 * @param {number} logTasks s > 0
 */
function posteriorEdge(alpha, noise, logTasks) {
  const reach = Math.min(logTasks, divergence(alpha, noise, SILENT));
  /** @type {(r: number) => [number, number]} */
  const equation = (r) => {
    const own = divergence(alpha, noise, r);
    const falls = (own - divergence(alpha, noise, r * (1 + 1e-5))) / 1e-5;
    return [reach - own, Math.max(falls, 1e-6 * reach)]; // level at small r, up to rounding
  };
  const far = 10 * (1 + noise) * (1 + Math.min(alpha, LONG)) * (1 + 1 / reach);
  return increasingRoot(equation, SILENT, far);
}
