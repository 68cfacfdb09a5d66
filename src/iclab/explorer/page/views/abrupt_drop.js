/** Merged key and query: one abrupt drop, from the scalars that a small start reduces to. */
import { plateaus } from "../../theory/closed_forms.js";
import { growingAmplitude, reducedMergedFlow } from "../../theory/flows.js";
import { firstBelow, linspace } from "../../theory/numerics.js";
import { moments } from "../../theory/population.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { randomMerged } from "../starts.js";
import { LOSS, problemLine, problemOf, TIME } from "./staircase.js";

const POINTS = 401;

export const abruptDropView = {
  /** @param {Record<string, any>} state @param {number} tolerance */
  picture(state, tolerance) {
    const law = moments(problemOf(state));
    const amplitude = growingAmplitude(law, randomMerged(state.seed, state.H, state.lambda.length, state.w));
    const time = linspace(0, state.T, POINTS);
    const { loss } = reducedMergedFlow(law, amplitude, time, tolerance);
    const levels = plateaus(law);
    const [high, low] = [levels[0], levels[levels.length - 1]];
    const [tenth, half, rest] = [0.1, 0.5, 0.9].map((share) => firstBelow(time, loss, high - share * (high - low)));
    const later = Math.LN10 / Math.hypot(...law.cross);
    const fall = Number.isFinite(rest) ? ` The fall from 90 % to 10 % of it takes ${shown(rest - tenth)}.` : "";
    return {
      charts: [
        {
          title: `Loss of merged attention against training time, N = ${state.N}.`,
          x: { name: TIME, low: 0, high: state.T },
          y: { name: LOSS, low: 0, high: 1.06 * law.nullLoss },
          curves: [{ key: "loss", name: "theory", x: time, y: loss, tone: "blue", width: 3, label: true }],
          levels: [
            { y: high, name: `nothing: ${shown(high)}` },
            { y: low, name: `all: ${shown(low)}` },
          ],
        },
      ],
      answer: Number.isFinite(half)
        ? `One drop, half done at t = ${shown(half, 4)}.${fall} A start ten times smaller waits ${shown(later)} longer and drops alike.`
        : `The loss has not dropped by t = ${shown(state.T)}, from a start of amplitude ${shown(amplitude)}: show a longer time.`,
      numbers: { levels: [high, low], amplitude, half },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
import iclab
from iclab.attention import random_merged
from iclab.theory import dynamics, population
${problemLine(state)}
moments = population.moments(problem)
start = random_merged(problem.dimension, ${state.H}, scale=${pythonic(state.w)}, rng=np.random.default_rng(${state.seed}))
amplitude = dynamics.growing_amplitude(moments, start)
loss = dynamics.reduced_merged_flow(moments, amplitude, np.linspace(0, ${pythonic(state.T)}, ${POINTS})).loss
levels = [moments.null_loss, population.best_loss(moments)]
print(levels, loss[-1])`,
};
