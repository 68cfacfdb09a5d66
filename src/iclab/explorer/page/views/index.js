/** All views by name. */
import { abruptDropView } from "./abrupt_drop.js";
import { contextLengthView } from "./context_length.js";
import { doubleDescentView } from "./double_descent.js";
import { inspectView } from "./inspect.js";
import { finiteContextView } from "./finite_context.js";
import { fixedPointsView } from "./fixed_points.js";
import { modeStagingView } from "./mode_staging.js";
import { phasePortraitView } from "./phase_portrait.js";
import { planView } from "./plan.js";
import { ridgeView } from "./ridge.js";
import { staircaseView } from "./staircase.js";
import { taskDiversityView } from "./task_diversity.js";

/**
 * What a view says of a state: charts, one sentence, and the numbers that are said.
 * @typedef {{charts: import("../chart.js").Picture[], answer: string, numbers: Record<string, any>, findings?: string[]}} Shown
 */
/**
 * A view: `heavy` ones are drawn by a worker.
 * @typedef {{heavy?: boolean, picture: (state: Record<string, any>, tolerance: number) => Shown,
 *   python: (state: Record<string, any>) => string, command?: (state: Record<string, any>) => string}} View
 */

/** @type {Record<string, View>} */
export const VIEWS = {
  staircase: staircaseView,
  "abrupt-drop": abruptDropView,
  "mode-staging": modeStagingView,
  "double-descent": doubleDescentView,
  "context-length": contextLengthView,
  "task-diversity": taskDiversityView,
  ridge: ridgeView,
  "fixed-points": fixedPointsView,
  "finite-context": finiteContextView,
  "phase-portrait": phasePortraitView,
  plan: planView,
  inspect: inspectView,
};
