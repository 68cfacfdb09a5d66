/**
 * Errors in the proportional limit for inputs and tasks whose covariances share their eigenvectors. Mirrors
 * iclab.theory.pretraining.structured: each input direction i sees its own ridge, n_ij = x + ξ/(s_i s_j), and the
 * pool has the equivalent G_i = 1/(φ_i s c + n_i) with 1/φ_i = 1 + mean(s c G_i)/κ.
 */
import { increasingRoot, mean } from "./numerics.js";
import { LONG, MANY, STRONG, errorsFrom, flatRidge, unspent, withLimits } from "./resolvent.js";

/** @typedef {import("./resolvent.js").Ratios} Ratios */
/** @typedef {import("./resolvent.js").Errors} Errors */
/**
 * Input eigenvalues s, variances s c of tasks in whitened inputs; `rows` are the distinct s, `row` that of each s.
 * @typedef {{inputs: number[], pool: number[], rows: number[], row: number[], weight: number[]}} Spectra
 */
/** @typedef {{ridge: number[], n: number[], phi: number, green: number[]}} Row equivalent for one input eigenvalue */

/**
 * ICL, IDG and training error for structured tasks, and for structured inputs in the same basis. Eigenvalues are
 * relative: 1 is the variance of white tasks, and of white inputs.
 * @param {Ratios} ratios
 * @param {number[]} taskEigenvalues
 * @param {number[]} [inputEigenvalues] positive
 * @param {number} [ridge]
 * @returns {Errors}
 */
export function structuredErrors(ratios, taskEigenvalues, inputEigenvalues, ridge = 0) {
  const spectra = spectraOf(taskEigenvalues, inputEigenvalues ?? taskEigenvalues.map(() => 1));
  const [kappa, tau, penalty] = [Math.min(ratios.kappa, MANY), Math.min(ratios.tau, MANY), Math.min(ridge, STRONG)];
  const x = (mean(spectra.pool) + ratios.noise) / Math.min(ratios.alpha, LONG);
  const xi = structuredRidge(spectra, x, kappa, tau, penalty);
  const share = Math.max(penalty / Math.max(xi, 1e-300), (tau - 1) / tau);
  const averages = structuredAverages(spectra, equivalent(spectra, x, xi, kappa), x, kappa);
  const support = mean(spectra.pool.map((c) => (c > 0 ? 1 : 0)));
  return withLimits(errorsFrom(averages, share, tau, ratios.noise, x), xi, ratios, ridge, support);
}

/**
 * @param {number[]} tasks
 * @param {number[]} inputs
 * @returns {Spectra}
 */
function spectraOf(tasks, inputs) {
  const rows = [...new Set(inputs)].sort((a, b) => a - b);
  const row = inputs.map((s) => rows.indexOf(s));
  const weight = rows.map((_, i) => row.filter((own) => own === i).length / inputs.length);
  return { inputs, pool: inputs.map((s, j) => s * tasks[j]), rows, row, weight };
}

/**
 * ξ, the effective ridge; 0 without ridge from τ = 1 on.
 * @param {Spectra} spectra
 * @param {number} x
 * @param {number} kappa
 * @param {number} tau
 * @param {number} ridge
 */
function structuredRidge(spectra, x, kappa, tau, ridge) {
  if (ridge === 0 && tau >= 1) return 0;
  const { inputs, pool, rows } = spectra;
  /** @type {(xi: number) => [number, number]} */
  const equation = (xi) => {
    const at = equivalent(spectra, x, xi, kappa);
    const spread = structuredAverages(spectra, at, x, kappa).ridgeSpread;
    const lost = overRows(spectra, at.map(({ ridge: own, green }) => meanOf(pool, (_, j) => own[j] * green[j])));
    const df = overRows(spectra, at.map(({ phi, green }) => meanOf(pool, (c, j) => (phi * c + x) * green[j])));
    return [unspent(df, lost, 1, tau) - ridge / xi, ridge / xi + spread / tau];
  };
  const middle = mean(inputs) * meanOf(inputs, (s, j) => s * (pool[j] + x));
  return increasingRoot(equation, flatRidge(x * rows[0] ** 2, tau, ridge), flatRidge(middle, tau, ridge));
}

/**
 * The deterministic equivalent of the pool at an effective ridge, for each distinct input eigenvalue.
 * @param {Spectra} spectra
 * @param {number} x
 * @param {number} xi
 * @param {number} kappa
 * @returns {Row[]}
 */
function equivalent({ inputs, pool, rows }, x, xi, kappa) {
  return rows.map((own) => {
    const ridge = inputs.map((s) => xi / own / s);
    const n = ridge.map((part) => x + part);
    /** @type {(phi: number) => [number, number]} */
    const equation = (phi) => {
      let kept = 0;
      let lost = 0;
      let bend = 0;
      for (let j = 0; j < pool.length; j++) {
        const green = 1 / (phi * pool[j] + n[j]);
        kept += pool[j] * green;
        lost += n[j] * green;
        bend += pool[j] * n[j] * green * green;
      }
      const size = pool.length;
      return [phi - lost / size + ((phi * kept) / size) * ((1 - kappa) / kappa), phi * (1 + bend / size / kappa)];
    };
    const phi = increasingRoot(equation, 1 / (1 + meanOf(pool, (c, j) => c / n[j]) / kappa), 1);
    return { ridge, n, phi, green: pool.map((c, j) => 1 / (phi * c + n[j])) };
  });
}

/**
 * The traces in the errors: over directions j for spreads, on the diagonal for the rest.
 * @param {Spectra} spectra
 * @param {Row[]} at
 * @param {number} x
 * @param {number} kappa
 */
function structuredAverages(spectra, at, x, kappa) {
  const { pool, row } = spectra;
  const each = at.map(({ ridge, n, phi, green }) => {
    const psi = phi / (1 + meanOf(pool, (c, j) => c * n[j] * green[j] ** 2) / kappa);
    const byNoise = (psi * meanOf(pool, (c, j) => c * green[j] ** 2)) / kappa;
    const byNew = (psi * meanOf(pool, (c, j) => c * c * green[j] ** 2)) / kappa;
    const spread = pool.map((c, j) => green[j] ** 2 * (psi * c + x * (1 + byNoise * c)));
    return { psi, byNoise, byNew, spread, ridge };
  });
  const diagonal = pool.map((c, i) => {
    const [{ phi, n, green }, own] = [at[row[i]], each[row[i]]];
    return { c, kept: phi * c * green[i], lost: n[i] * green[i], ...own };
  });
  return {
    lostPool: mean(diagonal.map(({ c, lost, psi }) => lost ** 2 * psi * c)),
    lostNew: mean(diagonal.map(({ c, lost, byNew }) => lost ** 2 * (c + byNew * c))),
    noisy: mean(diagonal.map(({ c, kept, lost, byNoise }) => kept ** 2 + lost ** 2 * byNoise * c)),
    ridgeSpread: overRows(spectra, each.map(({ ridge, spread }) => meanOf(spread, (v, j) => ridge[j] * v))),
    noiseSpread: overRows(spectra, each.map(({ spread }) => mean(spread))),
    newSpread: overRows(spectra, each.map(({ spread }) => meanOf(spread, (v, j) => pool[j] * v))),
  };
}

/**
 * Mean over input directions of numbers given for each distinct input eigenvalue.
 * @param {Spectra} spectra
 * @param {number[]} values
 */
function overRows({ weight }, values) {
  return values.reduce((total, value, i) => total + weight[i] * value, 0);
}

/**
 * Mean of a function of the entries of a list and their places.
 * @param {number[]} values
 * @param {(value: number, place: number) => number} of
 */
function meanOf(values, of) {
  let total = 0;
  for (let j = 0; j < values.length; j++) total += of(values[j], j);
  return total / values.length;
}
