/** Roots, sums and grids: general tools that know nothing of learning. Mirrors iclab.numerics. */

/** Range of sizes in which theory is exact; 0 and infinity are exact limits. */
export const LEAST = 1e-40;
export const MOST = 1e40;

/**
 * The root in [lower, upper], 0 < lower, of an increasing function: Newton in log x, by bisection where a step would
 * leave the bracket. With a guess `start` the ends are not evaluated.
 * @param {(x: number) => [number, number]} equation value, and slope in log x
 * @param {number} lower
 * @param {number} upper
 * @param {number} [start]
 * @returns {number}
 */
export function increasingRoot(equation, lower, upper, start) {
  const sharp = 2 ** -49; // 8 units of rounding
  const short = 2 ** -13; // a step whose fourth power is less than one
  let [low, high, before] = [lower, upper, Infinity];
  let point = start ?? Math.sqrt(lower) * Math.sqrt(upper);
  if (start === undefined && equation(lower)[0] === 0) return lower;
  if (start === undefined && equation(upper)[0] === 0) return upper;
  for (let count = 0; count < 300; count++) {
    const [value, slope] = equation(point);
    const step = -value / slope;
    const size = Math.abs(step);
    let next = point * Math.exp(step);
    if (size <= sharp || (before <= short && size <= before ** 2)) return Math.min(Math.max(next, lower), upper);
    if (value <= 0) low = Math.max(low, point);
    if (value >= 0) high = Math.min(high, point);
    if (!(next > low && next < high && (count < 12 || count % 3 > 0))) {
      if (high <= low * (1 + sharp)) return low;
      next = Math.sqrt(low) * Math.sqrt(high);
    }
    [point, before] = [next, size];
  }
  throw new RangeError("no root to working precision within 300 steps; the function is not increasing");
}

/**
 * Sum of numbers, from first to last.
 * @param {ArrayLike<number>} values
 */
export function sum(values) {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
}

/**
 * Mean of numbers.
 * @param {ArrayLike<number>} values
 */
export function mean(values) {
  return sum(values) / values.length;
}

/**
 * Evenly spaced numbers, both ends among them.
 * @param {number} first
 * @param {number} last
 * @param {number} count
 */
export function linspace(first, last, count) {
  const step = (last - first) / (count - 1);
  return Float64Array.from({ length: count }, (_, i) => (i === count - 1 ? last : i * step + first));
}

/**
 * Numbers spaced by equal ratios, both ends among them.
 * @param {number} first
 * @param {number} last
 * @param {number} count
 */
export function geomspace(first, last, count) {
  const exponents = linspace(Math.log10(first), Math.log10(last), count);
  return exponents.map((power, i) => (i === 0 ? first : i === count - 1 ? last : 10 ** power));
}

/**
 * (exp(x) − 1)/x, 1 at x = 0.
 * @param {number} x
 */
export function exprel(x) {
  return x === 0 ? 1 : Math.expm1(x) / x;
}

/**
 * Places of some numbers from the largest on, equal ones in their order.
 * @param {ArrayLike<number>} values
 */
export function largestFirst(values) {
  return Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a]);
}

/**
 * First time at which a curve passes below a height, linear between records; NaN if it never does.
 * @param {ArrayLike<number>} time
 * @param {ArrayLike<number>} loss
 * @param {number} height
 */
export function firstBelow(time, loss, height) {
  for (let i = 0; i < loss.length; i++) {
    if (!(loss[i] < height)) continue;
    if (i === 0) return time[0];
    const part = (loss[i - 1] - height) / (loss[i - 1] - loss[i]);
    return time[i - 1] + part * (time[i] - time[i - 1]);
  }
  return NaN;
}

/**
 * Time at which a curve has fallen half-way from its first to its last loss.
 * @param {ArrayLike<number>} time
 * @param {ArrayLike<number>} loss
 */
export function halfDropTime(time, loss) {
  return firstBelow(time, loss, 0.5 * (loss[0] + loss[loss.length - 1]));
}
