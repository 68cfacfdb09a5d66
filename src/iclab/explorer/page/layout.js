/** The layout of a chart: its frame, its ticks, and labels that do not cover each other. */
import { d3 } from "./vendor/d3.js";
import { shown } from "./numbers.js";

const GLYPH = 7.5; // pixels of a letter of 14 px, on average
const LINE = 17; // pixels from one label to the next
export const PHONE = 560; // pixels below which curves are named under the chart

/** @typedef {{name: string, low: number, high: number, log?: boolean, whole?: boolean}} AxisOf */
/** @typedef {{width: number, height: number, left: number, right: number, top: number, bottom: number}} Frame */
/** @typedef {{y: number, text: string, tone: string}} Label */

/**
 * The frame of a chart in a box so wide, with a gutter for its longest label.
 * @param {number} width
 * @param {string[]} names of curves and levels
 * @param {boolean} square
 * @returns {Frame}
 */
export function frameOf(width, names, square = false) {
  const phone = width < PHONE;
  const longest = Math.max(0, ...names.map((name) => name.length));
  const gutter = phone || longest === 0 ? 22 : Math.min(0.34 * width, 18 + GLYPH * longest);
  const left = 66;
  const inside = width - left - gutter;
  const height = square
    ? Math.min(inside, 560) + 62
    : phone
      ? 330
      : Math.round(Math.min(470, Math.max(300, 0.5 * width)));
  return { width, height, left, right: width - gutter, top: 12, bottom: height - 50 };
}

/**
 * The scale of an axis from one pixel to another.
 * @param {AxisOf} axis
 * @param {number} from
 * @param {number} to
 */
export function scaleOf(axis, from, to) {
  return (axis.log ? d3.scaleLog() : d3.scaleLinear()).domain([axis.low, axis.high]).range([from, to]);
}

/**
 * Numbers to write at an axis: round ones, as many as fit.
 * @param {AxisOf} axis
 * @param {number} length pixels of the axis
 * @param {number} each pixels of a number
 */
export function ticksOf({ low, high, log, whole }, length, each) {
  const count = Math.max(2, Math.floor(length / each));
  if (!log)
    return d3
      .scaleLinear()
      .domain([low, high])
      .ticks(Math.min(count, 8))
      .filter((tick) => tick >= low && tick <= high && (!whole || tick % 1 === 0));
  const decades = Math.log10(high / low);
  const every = Math.max(1, Math.ceil(decades / count));
  const parts =
    decades < 0.7 ? [1, 1.5, 2, 3, 4, 5, 7] : decades < 1.5 ? [1, 2, 3, 5] : decades < 3 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    if (power % every !== 0) continue;
    found.push(...parts.map((part) => Number((part * 10 ** power).toPrecision(2))));
  }
  const within = found.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  const sparse = within.length > count * 1.6 ? within.filter((tick) => /^1/.test(tick.toExponential())) : within;
  return sparse.length >= 2 ? sparse : within;
}

/**
 * Labels moved apart so that each has a line of its own, between two heights.
 * @param {Label[]} labels
 * @param {number} top
 * @param {number} bottom
 */
export function apart(labels, top, bottom) {
  const sorted = [...labels].sort((one, other) => one.y - other.y);
  const most = Math.max(1, Math.floor((bottom - top) / LINE) + 1);
  const kept = sorted.slice(0, most);
  for (let i = 1; i < kept.length; i++) kept[i].y = Math.max(kept[i].y, kept[i - 1].y + LINE);
  let floor = bottom;
  for (let i = kept.length - 1; i >= 0; i--) {
    kept[i].y = Math.min(kept[i].y, floor);
    floor = kept[i].y - LINE;
  }
  return kept;
}

/** @param {number} value */
export const tickWords = (value) => shown(value, 4);
