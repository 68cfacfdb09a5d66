/** Errors of pretraining against the number of its sequences, with their peak. */
import { geomspace, linspace, sum } from "../../theory/numerics.js";
import { errors } from "../../theory/proportional.js";
import { structuredErrors } from "../../theory/structured.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";

export const ERROR = "error (label²)";
const DIRECTIONS = 16; // of a task spectrum that falls
const SIZES = [...geomspace(0.1, 10, 100), ...linspace(0.8, 1.25, 91)].sort((one, other) => one - other);
const KINDS = /** @type {const} */ ([
  ["icl", "new tasks (ICL)", "blue"],
  ["idg", "tasks of the pool", "vermilion"],
  ["train", "its own data", "green"],
]);

/** Eigenvalues k^-p of mean one. @param {number} power */
function fallen(power) {
  const raw = Array.from({ length: DIRECTIONS }, (_, k) => (k + 1) ** -power);
  return raw.map((value) => (DIRECTIONS * value) / sum(raw));
}

export const doubleDescentView = {
  heavy: true,
  /** @param {Record<string, any>} state */
  picture(state) {
    const tasks = fallen(state.power);
    const found = SIZES.map((tau) => {
      const ratios = { alpha: state.alpha, kappa: state.kappa, tau, noise: state.rho };
      return state.power > 0 ? structuredErrors(ratios, tasks, undefined, state.ridge) : errors(ratios, state.ridge);
    });
    const [first, last] = [found[0], found[found.length - 1]];
    const top = found.reduce((best, one, i) => (one.icl > found[best].icl ? i : best), 0);
    const peak = found[top].icl;
    const peaked =
      top > 0 && top < SIZES.length - 1 && peak > 1.02 * Math.max(...found.slice(0, 5).map((one) => one.icl));
    const seen = found.flatMap(({ icl, idg }) => [icl, idg]).filter((value) => value > 0);
    return {
      charts: [
        {
          title: `Errors against pretraining sequences at α = ${shown(state.alpha)}, κ = ${shown(state.kappa)}.`,
          x: { name: "pretraining sequences τ = n/D²", log: true, low: 0.1, high: 10 },
          y: {
            name: ERROR,
            log: true,
            low: 0.6 * Math.max(1e-4, Math.min(...seen)),
            high: Math.min(300, 1.5 * Math.max(...seen, 1 + state.rho)),
          },
          curves: KINDS.map(([key, name, tone]) => ({
            key,
            name,
            x: SIZES,
            y: found.map((one) => one[key]),
            tone,
            width: 3,
            label: true,
          })),
          levels: [{ y: 1 + state.rho, name: "predict nothing" }],
          uprights: [{ x: 1, name: "τ = 1" }],
        },
      ],
      answer: peaked
        ? `The error on new tasks peaks at τ = ${shown(SIZES[top])} at ${shown(peak)}, ${shown(peak / last.icl)} times what it is at τ = 10 (${shown(last.icl)}). On tasks of the pool it ends at ${shown(last.idg)}.`
        : `No peak: the error on new tasks goes from ${shown(first.icl)} at τ = 0.1 to ${shown(last.icl)} at τ = 10, on tasks of the pool to ${shown(last.idg)}.`,
      numbers: { peak, at: SIZES[top], end: last.icl },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
import iclab
from iclab.theory.generalization import ${state.power > 0 ? "structured_errors" : "errors"}
tau = np.sort(np.r_[np.geomspace(0.1, 10, 100), np.linspace(0.8, 1.25, 91)])
ratios = iclab.Ratios(${pythonic(state.alpha)}, ${pythonic(state.kappa)}, tau, ${pythonic(state.rho)})
${
  state.power > 0
    ? `tasks = np.arange(1.0, ${DIRECTIONS + 1}) ** -${pythonic(state.power)}
found = structured_errors(ratios, task_eigenvalues=${DIRECTIONS} * tasks / tasks.sum(), ridge=${pythonic(state.ridge)})`
    : `found = errors(ratios, ridge=${pythonic(state.ridge)})`
}
icl, idg, train = found.icl, found.idg, found.train
print(icl.max(), tau[icl.argmax()], icl[-1])`,
};
