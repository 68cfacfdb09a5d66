/** Every function of theory against what the library answered when the page was built. */
import {
  plateaus,
  alignedValues,
  alignedLoss,
  halfDropShift,
  whiteMergedLoss,
  whiteDropTime,
} from "../theory/closed_forms.js";
import {
  ridgeError,
  taskThreshold,
  dmmseErrors,
  nearestTaskErrors,
  effectiveLogTasks,
} from "../theory/estimators.js";
import { fixedPoint, reachable, growth, stability, mergedStability, rotations } from "../theory/fixed_points.js";
import { mergedFlow, separateFlow, growingAmplitude, reducedMergedFlow } from "../theory/flows.js";
import {
  labelVariances,
  timeConstants,
  limits,
  modeLaw,
  timeToFraction,
  growthRates,
  leadingOrder,
  leadingOrderLoss,
  exactFlow,
  exactLoss,
  exactProductLoss,
  exactFixedPoint,
  exactLeastLoss,
} from "../theory/modes.js";
import {
  sum,
  mean,
  linspace,
  geomspace,
  exprel,
  largestFirst,
  firstBelow,
  halfDropTime,
} from "../theory/numerics.js";
import { errorOf, required, remark, refusal, bestSplit, regime, generalFormat } from "../theory/planning.js";
import { moments, momentsFrom, signalAndCurvature, modes, loss } from "../theory/population.js";
import {
  errors,
  diversityGap,
  interpolationPeak,
  criticalKappa,
  bestAlpha,
  bestRidge,
} from "../theory/proportional.js";
import {
  wishartMoments,
  effectiveRidge,
  flatRidge,
  unspent,
  errorsFrom,
  divergesAtInfiniteAlpha,
  withLimits,
} from "../theory/resolvent.js";
import { structuredErrors } from "../theory/structured.js";

/** Functions by name. @type {Record<string, (...given: any[]) => any>} */
const CHECKED = {
  alignedLoss,
  alignedValues,
  bestAlpha,
  bestRidge,
  bestSplit,
  criticalKappa,
  divergesAtInfiniteAlpha,
  diversityGap,
  dmmseErrors,
  effectiveLogTasks,
  effectiveRidge,
  errorOf,
  errors,
  errorsFrom,
  exactFixedPoint,
  exactFlow,
  exactLeastLoss,
  exactLoss,
  exactProductLoss,
  exprel,
  firstBelow,
  fixedPoint,
  flatRidge,
  generalFormat,
  geomspace,
  growingAmplitude,
  growth,
  growthRates,
  halfDropShift,
  halfDropTime,
  interpolationPeak,
  labelVariances,
  largestFirst,
  leadingOrder,
  leadingOrderLoss,
  limits,
  linspace,
  loss,
  mean,
  mergedFlow,
  mergedStability,
  modeLaw,
  modes,
  moments,
  momentsFrom,
  nearestTaskErrors,
  plateaus,
  reachable,
  reducedMergedFlow,
  refusal,
  regime,
  remark,
  required,
  ridgeError,
  rotations,
  separateFlow,
  signalAndCurvature,
  stability,
  structuredErrors,
  sum,
  taskThreshold,
  timeConstants,
  timeToFraction,
  unspent,
  whiteDropTime,
  whiteMergedLoss,
  wishartMoments,
  withLimits,
};

/** @typedef {{function: string, arguments: any[], value: any, tolerance: number}} Point */
/** @typedef {{calls: number, worst: number, wrong: string[]}} Outcome */

/**
 * The outcome of calling each function at its points: names of those that answer otherwise, and the largest
 * difference, relative to what may differ.
 * @param {Point[]} points
 * @returns {Outcome}
 */
export function check(points) {
  let worst = 0;
  const wrong = new Set();
  for (const { function: name, arguments: given, value, tolerance } of points) {
    let gap = Infinity;
    try {
      gap = gapOf(CHECKED[name](...given.map(/** @type {(one: any) => any} */ (revived))), value, tolerance);
    } catch {
      wrong.add(name);
    }
    if (!(gap <= 1)) wrong.add(name);
    worst = Math.max(worst, gap * tolerance);
  }
  return { calls: points.length, worst, wrong: [...wrong] };
}

/** Infinities and NaN from their texts. @param {any} value @returns {any} */
function revived(value) {
  if (value === "nan") return NaN;
  if (value === "inf" || value === "-inf") return value === "inf" ? Infinity : -Infinity;
  if (Array.isArray(value)) return value.map(revived);
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, revived(one)]));
  return value;
}

/**
 * The largest difference of an answer from its value, in units of the tolerance.
 * @param {any} answer
 * @param {any} value
 * @param {number} tolerance
 * @param {number} [height] of the list that a number stands in
 * @returns {number}
 */
function gapOf(answer, value, tolerance, height) {
  const wanted = revived(value);
  if (Array.isArray(wanted)) {
    const list = Array.from(answer ?? []);
    const numbers = wanted.filter((one) => typeof one === "number" && Number.isFinite(one)).map(Math.abs);
    if (list.length !== wanted.length) return Infinity;
    return Math.max(0, ...wanted.map((one, i) => gapOf(list[i], one, tolerance, Math.max(...numbers, 0))));
  }
  if (wanted && typeof wanted === "object")
    return Math.max(0, ...Object.keys(wanted).map((key) => gapOf(answer?.[key], wanted[key], tolerance)));
  if (Object.is(answer, wanted) || answer === wanted) return 0;
  if (typeof wanted !== "number" || !Number.isFinite(wanted) || !Number.isFinite(answer)) return Infinity;
  return Math.abs(answer - wanted) / (tolerance * (height ?? Math.abs(wanted)));
}
