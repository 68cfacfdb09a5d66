/** Numbers for people, and small tools for lists of them. */

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * A number in so many digits, with a power of ten where it is very small or large.
 * @param {number} value
 * @param {number} [digits]
 */
export function shown(value, digits = 3) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-3 && size < 1e5)) return String(Number(value.toPrecision(digits))).replace("-", "−");
  const power = Math.floor(Math.log10(size));
  const front = Number((value / 10 ** power).toPrecision(digits));
  const raised = String(Math.abs(power)).replace(/\d/g, (digit) => RAISED[Number(digit)]);
  const factor = front === 1 ? "" : `${String(front).replace("-", "−")}·`;
  return `${factor}10${power < 0 ? "⁻" : ""}${raised}`;
}

/**
 * A number as it is typed: as many digits as it takes, twelve at most unless fewer are asked for.
 * @param {number} value
 * @param {number} [digits]
 */
export function typed(value, digits = 12) {
  const rounded = Number(value.toPrecision(digits));
  return rounded !== 0 && Math.abs(rounded) < 1e-3 ? rounded.toExponential() : String(rounded);
}

/**
 * True for numbers that differ by rounding alone.
 * @param {number} one
 * @param {number} other
 */
export const close = (one, other) => one === other || Math.abs(one - other) <= 1e-9 * Math.max(Math.abs(one), 1e-12);

/**
 * The middle of a list; of an even number the mean of the two in the middle.
 * @param {number[]} values
 */
export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/**
 * The height of a polyline over a place, by straight lines between its points, and beyond its ends the ends.
 * @param {ArrayLike<number>} xs rising
 * @param {ArrayLike<number>} ys
 * @param {number} x
 */
export function heightAt(xs, ys, x) {
  let high = 1;
  while (high < xs.length - 1 && xs[high] < x) high++;
  const share = Math.min(1, Math.max(0, (x - xs[high - 1]) / (xs[high] - xs[high - 1])));
  return ys[high - 1] + share * (ys[high] - ys[high - 1]);
}
