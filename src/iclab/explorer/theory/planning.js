/**
 * Inverse questions about pretraining: the sizes that reach an error, the best split of a budget, the regime. Mirrors
 * iclab.planning.inverse and optimum; sizes are ratios to the dimension.
 */
import { LEAST, geomspace } from "./numerics.js";
import { bestRidge, criticalKappa, diversityGap, errors } from "./proportional.js";
import { intervals, withTurns } from "./searches.js";

/** @typedef {import("./resolvent.js").Ratios} Ratios */
/** @typedef {"alpha" | "kappa" | "tau"} Quantity */
/** @typedef {"icl" | "idg"} Target */
/** @typedef {number | "best"} Ridge "best" is the optimal one at every size */
/**
 * The intervals of sizes that reach an error, with 0 and infinity as limits, the least error at any size, the size
 * that has it, and a sentence on them.
 * @typedef {{intervals: [number, number][], floor: number, best: number, advice: string}} Required
 */

/**
 * ICL or IDG error at a ridge, or at the best ridge for that error.
 * @param {Ratios} ratios
 * @param {Ridge} ridge
 * @param {Target} target
 */
export function errorOf(ratios, ridge, target) {
  return errors(ratios, ridge === "best" ? bestRidge(ratios, target) : ridge)[target];
}

/**
 * The values of one ratio that reach an error, given the other two.
 * @param {Quantity} quantity
 * @param {number} error
 * @param {Ratios} ratios the other two, and the noise; that of `quantity` is not read
 * @param {Ridge} [ridge]
 * @param {Target} [target]
 * @returns {Required}
 */
export function required(quantity, error, ratios, ridge = 0, target = "icl") {
  const curve = (/** @type {number} */ size) => errorOf({ ...ratios, [quantity]: size }, ridge, target);
  const { sizes, heights } = withTurns(curve, planScan());
  const [floor, at] = lowest(sizes, heights);
  const best = finiteOrZero(at);
  const found = intervals(curve, sizes, heights, error);
  if (found.length) return { intervals: found, floor, best, advice: remark(quantity, found, floor, best) };
  const where = `${generalFormat(floor)}, at ${quantity} = ${generalFormat(best)}`;
  const no = `No ${quantity} reaches ${generalFormat(error, 6)}: the least ${target} error is ${where}.`;
  const offers = refusal(quantity, error, ratios, ridge, target, floor);
  return { intervals: [], floor, best, advice: `${no} ${offers}` };
}

/**
 * Sentence on the sizes that reach an error.
 * @param {Quantity} quantity
 * @param {[number, number][]} found
 * @param {number} floor
 * @param {number} best
 */
export function remark(quantity, found, floor, best) {
  const [low, high] = found[0];
  const floored = generalFormat(floor);
  if (found.length === 1 && low === 0 && high === Infinity) return `Any ${quantity} reaches it.`;
  if (found.length === 1 && low === Infinity) {
    return `It is reached only at ${quantity} = inf: the error there is ${floored}.`;
  }
  if (found.length === 1 && high === Infinity) return `Any ${quantity} from ${generalFormat(low)} on reaches it.`;
  const spans = found.map(([a, b]) => generalFormat(a) + (a < b ? ` to ${generalFormat(b)}` : "")).join(" or ");
  const at = `at ${quantity} = ${generalFormat(best)}`;
  return `${quantity} = ${spans}: outside the error is larger. It is least, ${floored}, ${at}.`;
}

/**
 * Changes that would lower the floor: each other ratio, or the ridge, at its best for the best quantity.
 * @param {Quantity} quantity
 * @param {number} level
 * @param {Ratios} ratios
 * @param {Ridge} ridge
 * @param {Target} target
 * @param {number} floor
 */
export function refusal(quantity, level, ratios, ridge, target, floor) {
  const quieter = level < ratios.noise ? `Label noise alone costs ${generalFormat(ratios.noise, 6)}` : "";
  const others = /** @type {Quantity[]} */ (["alpha", "kappa", "tau"]).filter((name) => name !== quantity);
  /** @type {[number, string][]} */
  const offers = others.map((name) => {
    const surface = (/** @type {number} */ one, /** @type {number} */ two) => {
      return errorOf({ ...ratios, [quantity]: one, [name]: two }, ridge, target);
    };
    const [height, size] = leastOfTwo(surface);
    return [height, `${name} = ${generalFormat(finiteOrZero(size))}`];
  });
  if (ridge !== "best") {
    const best = (/** @type {number} */ size) => errorOf({ ...ratios, [quantity]: size }, "best", target);
    const { sizes, heights } = withTurns(best, planScan());
    offers.push([lowest(sizes, heights)[0], "the best ridge"]);
  }
  const lower = offers.filter(([height]) => generalFormat(height) !== generalFormat(floor) && height < floor);
  if (!lower.length) return `${quieter || "No other ratio and no ridge lowers that"}: only less noise helps.`;
  const rising = lower.sort(([a, one], [b, two]) => a - b || (one < two ? -1 : 1));
  const enough = (/** @type {number} */ height) => (height <= level ? " (enough)" : "");
  const offered = rising.map(([height, change]) => `${generalFormat(height)}${enough(height)} with ${change}`);
  return `${quieter && `${quieter}, so less of it is needed. `}The least error would be ${offered.join(", ")}.`;
}

/**
 * Least of a surface over two ratios, and the second one there: the optimum of one along either in turn.
 * @param {(one: number, two: number) => number} surface
 * @returns {[number, number]}
 */
export function leastOfTwo(surface) {
  const coarse = [LEAST, ...geomspace(1e-6, 1e9, 61), Infinity];
  let [height, first, second] = [Infinity, 0, 0];
  for (const two of coarse) {
    for (const one of coarse) {
      const here = surface(one, two);
      if (here < height) [height, first, second] = [here, one, two];
    }
  }
  const scan = planScan();
  const along = (/** @type {(size: number) => number} */ curve) => {
    const { sizes, heights } = withTurns(curve, scan);
    return lowest(sizes, heights);
  };
  let before = Infinity;
  for (let round = 0; round < 20; round++) {
    first = along((one) => surface(one, second))[1];
    [height, second] = along((two) => surface(first, two));
    if (height >= before * (1 - 1e-9)) break;
    before = height;
  }
  return [height, second];
}

/**
 * The division of n·N labeled examples into n sequences of N that has the least error.
 * @param {number} tokens n·N
 * @param {number} dimension
 * @param {number} kappa
 * @param {number} noise
 * @param {Ridge} [ridge]
 * @param {Target} [target]
 */
export function bestSplit(tokens, dimension, kappa, noise, ridge = "best", target = "icl") {
  const ratios = (/** @type {number} */ length) => {
    return { alpha: length / dimension, kappa, tau: Math.floor(tokens / length) / dimension ** 2, noise };
  };
  const whole = (/** @type {number[]} */ lengths) => {
    const counts = [...new Set(lengths.map(roundedEven))].sort((a, b) => a - b);
    return lowest(counts, counts.map((count) => errorOf(ratios(count), ridge, target)))[1];
  };
  let length = whole([...geomspace(1, tokens, 300)]);
  for (const reach of [2, 1.05]) {
    const [low, high] = [Math.max(1, length / reach), Math.min(tokens, length * reach)];
    const counts = [...geomspace(tokens / high, tokens / low, 500)].map(roundedEven);
    length = whole([...geomspace(low, high, 500), ...counts.map((count) => Math.floor(tokens / count))]);
  }
  const chosen = ratios(length);
  const strength = ridge === "best" ? bestRidge(chosen, target) : ridge;
  return {
    contextLength: length,
    sequences: Math.floor(tokens / length),
    ratios: chosen,
    ridge: strength,
    error: errorOf(chosen, strength, target),
  };
}

/**
 * The regime of pretraining, memorization of its tasks or in-context learning, with its gap and κ_c.
 * @param {Ratios} ratios
 * @param {number} [ridge]
 */
export function regime(ratios, ridge = 0) {
  const critical = criticalKappa(ratios.tau, ratios.noise);
  return {
    memorizing: ratios.kappa < 1,
    gap: diversityGap(ratios, ridge),
    lastingGap: Math.max(0, 1 - ratios.kappa),
    criticalKappa: critical,
    longerContextsHurt: ratios.kappa < critical && ratios.noise > 0 && ratios.tau < Infinity,
  };
}

/**
 * A number with so many digits as Python's "g" writes it.
 * @param {number} value
 * @param {number} [digits]
 */
export function generalFormat(value, digits = 4) {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  const trimmed = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < digits) return trimmed(value.toFixed(digits - 1 - power));
  return `${trimmed(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** Sizes among which answers are looked for. */
function planScan() {
  const inner = [...geomspace(1e-6, 1e9, 361), 1].sort((a, b) => a - b);
  return [LEAST, ...inner.filter((size, i) => size !== inner[i - 1]), Infinity];
}

/**
 * The least of some heights, and the size that has it.
 * @param {number[]} sizes
 * @param {number[]} heights
 * @returns {[number, number]}
 */
function lowest(sizes, heights) {
  const height = Math.min(...heights);
  return [height, sizes[heights.indexOf(height)]];
}

/**
 * The size, with the limit 0 for the least size that stands for it.
 * @param {number} size
 */
function finiteOrZero(size) {
  return size <= LEAST ? 0 : size;
}

/**
 * The nearest whole number, the even one of two.
 * @param {number} value
 */
function roundedEven(value) {
  const down = Math.floor(value);
  const rest = value - down;
  return rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down;
}
