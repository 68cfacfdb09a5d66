/** What tests ask of the page: a state, and the numbers that are drawn of it. */
import { csvFile, pngFile, svgFile } from "./exports.js";
import { usual } from "./state.js";

/** @typedef {import("./app.js").App} App */

/** Offers the page to tests, under the name `explorer`. @param {App} app */
export function probed(app) {
  const starts = (/** @type {string} */ view) => usual(DATA.views[view].controls);
  const explorer = {
    app,
    ready: performance.now(),
    usual: starts,
    probe: () => numbersOf(app),
    svg: () => svgFile(app.charts[0].svg),
    csv: () => csvFile(app.pictures()),
    png: () => pngFile(app.charts[0].svg),
    set: async (
      /** @type {string} */ view,
      /** @type {any} */ state,
      /** @type {number | undefined} */ tolerance,
    ) => {
      app.tolerance = tolerance;
      await app.choose(view, { ...starts(view), ...state });
      app.tolerance = undefined;
      return numbersOf(app);
    },
  };
  Object.assign(window, { explorer });
}

/** The numbers of all curves and dots that have a key, and those that are said. @param {App} app */
function numbersOf(app) {
  const marks = (app.seen?.charts ?? []).flatMap(({ curves, dots = [] }) => [...curves, ...dots]);
  const curves = marks.map((/** @type {any} */ one) => [one.key ?? one.xKey, one]).filter(([key]) => key);
  const plain = (/** @type {any} */ value) =>
    typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  const numbers = Object.entries(app.seen?.numbers ?? {}).map(([key, value]) => [
    key,
    Array.isArray(value) ? value.flat().map(plain) : plain(value),
  ]);
  return {
    curves: Object.fromEntries(
      curves.map(([key, { x, y, xKey }]) => [key, { x: Array.from(x), y: Array.from(y), xKey }]),
    ),
    numbers: Object.fromEntries(numbers),
    answer: app.seen?.answer,
  };
}
