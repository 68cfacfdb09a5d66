/**
 * Minimizers and crossings of functions of a positive number. Mirrors iclab.numerics.minima and crossings.
 */
import { MOST, geomspace } from "./numerics.js";

/** @typedef {(x: number) => number} Curve */

/**
 * The minimizer of a function: a scan of the grid, then polished to 1e-14 over the relative depth of the dip. At an
 * end of the grid that end is returned; a dip narrower than the grid can be missed.
 * @param {Curve} curve
 * @param {ArrayLike<number>} grid
 */
export function least(curve, grid) {
  const heights = Array.from(grid, curve);
  const index = heights.indexOf(Math.min(...heights));
  const last = grid.length - 1;
  if (index <= 0 || index === last) return grid[Math.max(index, 0)];
  const [lower, upper] = [grid[index - 1], grid[index + 1]];
  const polished = goldenSection(curve, lower, upper, 1e-4);
  const sharp = sharpened(curve, polished, grid[0], grid[last]);
  if (curve(sharp) <= curve(polished) * (1 + 1e-15)) return sharp;
  return goldenSection(curve, Math.max(lower, polished * (1 - 2e-4)), Math.min(upper, polished * (1 + 2e-4)));
}

/**
 * The minimizer between two positive numbers of a function that falls and then rises, in log x to `tolerance`.
 * @param {Curve} curve
 * @param {number} lower
 * @param {number} upper
 * @param {number} [tolerance]
 */
export function goldenSection(curve, lower, upper, tolerance = 1e-9) {
  const golden = (Math.sqrt(5) - 1) / 2;
  let [low, high] = [Math.log(lower), Math.log(upper)];
  let [left, right] = [high - golden * (high - low), low + golden * (high - low)];
  let [atLeft, atRight] = [curve(Math.exp(left)), curve(Math.exp(right))];
  while (high - low > tolerance) {
    if (atLeft > atRight) {
      low = left;
      [left, atLeft] = [right, atRight];
      right = low + golden * (high - low);
      atRight = curve(Math.exp(right));
    } else {
      high = right;
      [right, atRight] = [left, atLeft];
      left = high - golden * (high - low);
      atLeft = curve(Math.exp(left));
    }
  }
  return Math.exp(0.5 * (low + high));
}

/**
 * The sizes of a scan and the curve there, with its dips and peaks polished. The scan may end at infinity.
 * @param {Curve} curve
 * @param {ArrayLike<number>} scan rising
 * @returns {{sizes: number[], heights: number[]}}
 */
export function withTurns(curve, scan) {
  const heights = Array.from(scan, curve);
  const found = Array.from(scan, (size, i) => [size, heights[i]]);
  for (let i = 2; i < scan.length - 2; i++) {
    for (const sign of [1, -1]) {
      const [before, here, after] = [heights[i - 1], heights[i], heights[i + 1]].map((height) => sign * height);
      if (!(here < before && here <= after && Number.isFinite(here))) continue;
      const turn = goldenSection((x) => sign * curve(x), scan[i - 1], scan[i + 1], 1e-6);
      found.push([turn, curve(turn)]);
    }
  }
  const rising = found.sort((a, b) => a[0] - b[0]).filter(([size], i, all) => i === 0 || size !== all[i - 1][0]);
  return { sizes: rising.map(([size]) => size), heights: rising.map(([, height]) => height) };
}

/**
 * Closed intervals on which the curve is at most the level, in rising order; from 0 if the first size is.
 * @param {Curve} curve
 * @param {number[]} sizes
 * @param {number[]} heights
 * @param {number} level
 * @returns {[number, number][]}
 */
export function intervals(curve, sizes, heights, level) {
  const reached = heights.map((height) => height <= level);
  const edges = reached[0] ? [0] : [];
  for (let i = 1; i < sizes.length; i++) {
    if (reached[i] !== reached[i - 1]) edges.push(crossing(curve, sizes[i - 1], sizes[i], level, reached[i - 1]));
  }
  if (reached[reached.length - 1]) edges.push(Infinity);
  return edges.flatMap((edge, i) => (i % 2 ? [] : [/** @type {[number, number]} */ ([edge, edges[i + 1]])]));
}

/**
 * The crossing of curve and level, on the side where the level is reached; eight scans, each of 64 parts.
 * @param {Curve} curve
 * @param {number} low
 * @param {number} high
 * @param {number} level
 * @param {boolean} rising
 */
function crossing(curve, low, high, level, rising) {
  if (high === Infinity && curve(MOST) <= level === rising) return rising ? MOST : Infinity;
  let [from, to] = [low, Math.min(high, MOST)];
  for (let round = 0; round < 8; round++) {
    const sizes = geomspace(from, to, 65);
    const beyond = sizes.findIndex((size, i) => i > 0 && curve(size) <= level !== rising);
    const first = beyond < 0 ? 1 : beyond;
    [from, to] = [sizes[first - 1], sizes[first]];
  }
  return rising ? from : to;
}

/**
 * Two Newton steps in log x towards zero slope; slope and curvature from differences of seven points.
 * @param {Curve} curve
 * @param {number} near
 * @param {number} lowest
 * @param {number} highest
 */
function sharpened(curve, near, lowest, highest) {
  const width = 0.02; // in log x
  const forSlope = [-1, 9, -45, 0, 45, -9, 1].map((part) => part / 60);
  const forCurvature = [2, -27, 270, -490, 270, -27, 2].map((part) => part / 180);
  const inside = (/** @type {number} */ x) => Math.min(Math.max(x, lowest), highest);
  let point = near;
  for (let round = 0; round < 2; round++) {
    let [slope, curvature] = [0, 0];
    for (let i = 0; i < 7; i++) {
      const height = curve(inside(point * Math.exp(width * (i - 3))));
      slope += forSlope[i] * height;
      curvature += forCurvature[i] * height;
    }
    const step = (-width * slope) / curvature;
    if (Math.abs(step) <= width) point *= Math.exp(step);
  }
  return inside(point);
}
