/** Separate key and query: the loss of a start, from plateau to plateau. */
import { plateaus } from "../../theory/closed_forms.js";
import { separateFlow } from "../../theory/flows.js";
import { firstBelow, linspace } from "../../theory/numerics.js";
import { moments } from "../../theory/population.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { randomSeparate } from "../starts.js";

export const TIME = "training time t (units of τ)";
export const LOSS = "loss (label²)";
const RECORDS = 321;

/** The problem of a state. @param {Record<string, any>} state */
export const problemOf = (state) => ({ eigenvalues: state.lambda, contextLengths: [state.N], noise: state.rho });

/** The problem of a state in Python. @param {Record<string, any>} state */
export const problemLine = (state) =>
  `problem = iclab.Regression(eigenvalues=${pythonic(state.lambda)}, context_length=${state.N}, noise=${pythonic(state.rho)})`;

/** Levels with their names; with fewer heads than modes the later ones are never reached. @param {number[]} levels @param {number} heads */
export function namedLevels(levels, heads) {
  return levels
    .slice(0, heads + 1)
    .map((y, i) => ({ y, name: `${i === 0 ? "nothing" : i === 1 ? "1 mode" : `${i} modes`}: ${shown(y)}` }));
}

export const staircaseView = {
  heavy: true,
  /** @param {Record<string, any>} state @param {number} tolerance */
  picture(state, tolerance) {
    const law = moments(problemOf(state));
    const start = randomSeparate(state.seed, state.H, state.lambda.length, state.w);
    const time = linspace(0, state.T, RECORDS);
    const { loss } = separateFlow(law, start, time, tolerance);
    const levels = namedLevels(plateaus(law), state.H);
    const end = loss[RECORDS - 1];
    const heights = levels.map(({ y }) => y);
    const steps = heights.filter((y, i) => i > 0 && end < y + 0.1 * (heights[i - 1] - y)).length;
    const first = firstBelow(time, loss, (heights[0] + heights[1]) / 2);
    const wait = Number.isFinite(first)
      ? `the first is half done at t = ${shown(first)}`
      : "the first is not half done";
    return {
      charts: [
        {
          title: `Loss against training time, ${state.lambda.length} eigenvalues, N = ${state.N}.`,
          x: { name: TIME, low: 0, high: state.T },
          y: { name: LOSS, low: 0, high: 1.06 * law.nullLoss },
          curves: [{ key: "loss", name: "theory", x: time, y: loss, tone: "blue", width: 3, label: true }],
          levels,
        },
      ],
      answer: `From this start the loss has taken ${steps} of ${heights.length - 1} steps by t = ${shown(state.T)}; ${wait}. It stands at ${shown(end, 4)}; the last plateau is at ${shown(heights[heights.length - 1], 4)}.`,
      numbers: { levels: heights, first },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
import iclab
from iclab.attention import random_separate
from iclab.theory import dynamics, population
${problemLine(state)}
moments = population.moments(problem)
start = random_separate(problem.dimension, ${state.H}, scale=${pythonic(state.w)}, rng=np.random.default_rng(${state.seed}))
levels = dynamics.plateaus(moments)[: ${state.H} + 1]
loss = dynamics.separate_flow(moments, start, np.linspace(0, ${pythonic(state.T)}, ${RECORDS})).loss
print(levels, loss[-1])`,
};
