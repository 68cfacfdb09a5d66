/** Marks of a chart: curves with bands, dots with errors, arrows, links between points, a map in colors. */
import { d3 } from "./vendor/d3.js";

/**
 * A curve. `key` names its numbers for tests; one without a name is not read out; `low` and `high` are its band.
 * @typedef {{key?: string, xKey?: string, name?: string, x: ArrayLike<number>, y: ArrayLike<number>, tone: string, width?: number,
 *   dash?: string, faint?: boolean, label?: boolean, low?: ArrayLike<number>, high?: ArrayLike<number>,
 *   path?: boolean}} Curve
 */
/** @typedef {{key?: string, name: string, x: number[], y: number[], error?: number[], tone: string, faint?: boolean,
 *   full?: boolean}} Dots */
/** @typedef {{x1: number, y1: number, x2: number, y2: number, tone: string, head?: boolean, width?: number}} Link */
/** @typedef {{xs: number[], ys: number[], values: number[][], low: number, high: number, words: string}} Colors */

const FAR = 1e5; // pixels beyond which no browser draws
/** @param {number} place */
const inSight = (place) => Math.max(-FAR, Math.min(FAR, place));

/**
 * @param {any} group
 * @param {Curve} curve
 * @param {any} X
 * @param {any} Y
 */
export function drawCurve(group, curve, X, Y) {
  const { x, y, low, high, tone, faint } = curve;
  const places = Float64Array.from(x, (_, i) => i);
  const there = (/** @type {number} */ i) => Number.isFinite(X(x[i])) && Number.isFinite(Y(y[i]));
  const weak = faint ? " faint" : "";
  if (low && high) {
    const band = d3
      .area()
      .digits(2)
      .x((i) => X(x[i]))
      .y0((i) => inSight(Y(low[i])))
      .y1((i) => inSight(Y(high[i])))
      .defined(there);
    group.append("path").attr("class", `band ${tone}${weak}`).attr("d", band(places));
  }
  const line = d3
    .line()
    .digits(2)
    .x((i) => X(x[i]))
    .y((i) => inSight(Y(y[i])))
    .defined(there);
  const path = group.append("path").attr("class", `curve ${tone}${weak}`).attr("d", line(places));
  path.attr("stroke-width", curve.width ?? 2.5).attr("data-key", curve.key ?? null);
  if (curve.dash) path.attr("stroke-dasharray", curve.dash);
}

/**
 * @param {any} group
 * @param {Dots} dots
 * @param {any} X
 * @param {any} Y
 */
export function drawDots(group, { x, y, error, tone, faint, full, key }, X, Y) {
  const weak = faint ? " faint" : "";
  x.forEach((place, i) => {
    const across = X(place);
    const up = Y(y[i]);
    if (!Number.isFinite(across) || !Number.isFinite(up)) return;
    if (error?.[i]) {
      const ends = [y[i] - 2 * error[i], y[i] + 2 * error[i]].map((end) =>
        inSight(Number.isFinite(Y(end)) ? Y(end) : FAR),
      );
      const bar = group.append("line").attr("class", `curve ${tone}${weak}`).attr("stroke-width", 2);
      bar.attr("x1", across).attr("x2", across).attr("y1", ends[0]).attr("y2", ends[1]);
    }
    const dot = group
      .append("circle")
      .attr("class", `${full ? "point" : "dot"} ${tone}${weak}`)
      .attr("r", 5);
    dot
      .attr("cx", across)
      .attr("cy", up)
      .attr("data-key", key ?? null);
  });
}

/**
 * @param {any} group
 * @param {Link} link
 * @param {any} X
 * @param {any} Y
 */
export function drawLink(group, { x1, y1, x2, y2, tone, head, width }, X, Y) {
  const [a, b, c, d] = [X(x1), Y(y1), X(x2), Y(y2)];
  const line = group
    .append("line")
    .attr("class", `curve ${tone}`)
    .attr("stroke-width", width ?? 1.5);
  line.attr("x1", a).attr("y1", b).attr("x2", c).attr("y2", d);
  const length = Math.hypot(c - a, d - b);
  if (!head || !(length > 1)) return;
  const [along, up] = [(c - a) / length, (d - b) / length];
  const size = 6;
  const wing = (/** @type {number} */ side) =>
    `${c - size * (along + side * up * 0.6)} ${d - size * (up - side * along * 0.6)}`;
  group
    .append("path")
    .attr("class", `tip ${tone}`)
    .attr("d", `M${c} ${d}L${wing(1)}L${wing(-1)}Z`);
}

/**
 * A map of numbers on a logarithmic scale, from pale to dark; what is not finite has the color of the paper's fill.
 * @param {any} group
 * @param {Colors} colors
 * @param {import("./layout.js").Frame} frame
 */
export function drawColors(group, { values, low, high, words }, { left, right, top, bottom }) {
  const canvas = document.createElement("canvas");
  canvas.width = values[0].length;
  canvas.height = values.length;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const pixels = pen.createImageData(canvas.width, canvas.height);
  values.forEach((row, i) =>
    row.forEach((value, j) => {
      const share = Math.max(0, Math.min(1, Math.log(value / low) / Math.log(high / low)));
      const at = 4 * ((values.length - 1 - i) * row.length + j);
      pixels.data.set(Number.isFinite(value) ? [...shade(share), 255] : [128, 128, 128, 40], at);
    }),
  );
  pen.putImageData(pixels, 0, 0);
  const image = group.append("image").attr("href", canvas.toDataURL()).attr("preserveAspectRatio", "none");
  const [wide, tall] = [(right - left) / (canvas.width - 1), (bottom - top) / (canvas.height - 1)]; // of a cell
  image.attr("x", left - wide / 2).attr("y", top - tall / 2);
  image.attr("width", right - left + wide).attr("height", bottom - top + tall);
  image.attr("class", "colors").attr("role", "img").attr("aria-label", words);
}

/** Colors from yellow over green to dark blue, alike in both schemes, light to dark. */
const SHADES = [
  [240, 228, 66],
  [120, 190, 100],
  [0, 158, 115],
  [0, 114, 178],
  [20, 40, 110],
];
/** @param {number} share */
export function shade(share) {
  const place = share * (SHADES.length - 1);
  const low = Math.min(SHADES.length - 2, Math.floor(place));
  return SHADES[low].map((from, i) => Math.round(from + (place - low) * (SHADES[low + 1][i] - from)));
}
