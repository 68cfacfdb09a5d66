/** All views by name. */
import { staircaseView } from "./staircase.js";

/**
 * What a view says of a state: charts, one sentence, and the numbers that are said.
 * @typedef {{charts: import("../chart.js").Picture[], answer: string, numbers: Record<string, any>}} Shown
 */
/**
 * A view: `heavy` ones are drawn by a worker.
 * @typedef {{heavy?: boolean, picture: (state: Record<string, any>, tolerance: number) => Shown,
 *   python: (state: Record<string, any>) => string, command?: (state: Record<string, any>) => string}} View
 */

/** @type {Record<string, View>} */
export const VIEWS = {
  staircase: staircaseView,
};
