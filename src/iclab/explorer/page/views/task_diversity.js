/** Errors against the number of pretraining tasks: linear attention, and the Bayes estimator that knows the pool. */
import { dmmseErrors, effectiveLogTasks, ridgeError } from "../../theory/estimators.js";
import { geomspace } from "../../theory/numerics.js";
import { diversityGap, errors } from "../../theory/proportional.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { ERROR } from "./double_descent.js";

const POOL = geomspace(0.2, 100, 121);
const ENOUGH = 0.1; // a gap that is small

export const taskDiversityView = {
  heavy: true,
  /** @param {Record<string, any>} state */
  picture(state) {
    const tau = state.c * state.alpha;
    const at = (/** @type {number} */ kappa) => ({ alpha: state.alpha, kappa, tau, noise: state.rho });
    const found = Array.from(POOL, (kappa) => errors(at(kappa)));
    const bayes = Array.from(POOL, (kappa) =>
      dmmseErrors(state.alpha, state.rho, effectiveLogTasks(Math.max(1, kappa * state.D), state.D)),
    );
    const gaps = Array.from(POOL, (kappa) => diversityGap(at(kappa)));
    const small = gaps.findIndex((_, i) => gaps.slice(i).every((gap) => gap <= ENOUGH));
    const ridge = ridgeError(state.alpha, state.rho);
    const seen = [...found, ...bayes]
      .flatMap(({ icl, idg }) => [icl, idg])
      .filter((value) => value > 0 && Number.isFinite(value));
    const closed =
      small > 0
        ? `from κ = ${shown(POOL[small])} on (K = ${Math.round(POOL[small] * state.D)} tasks in D = ${state.D})`
        : small === 0
          ? "at every κ that is shown"
          : "at no κ that is shown";
    const line = (
      /** @type {string} */ key,
      /** @type {string} */ name,
      /** @type {any[]} */ of,
      /** @type {"icl" | "idg"} */ kind,
      /** @type {string} */ tone,
      /** @type {string} */ dash,
    ) => ({ key, name, x: POOL, y: of.map((one) => one[kind]), tone, width: dash ? 2.2 : 3, dash, label: true });
    return {
      charts: [
        {
          title: `Errors against the tasks of the pool at α = ${shown(state.alpha)}, τ = ${shown(tau)}.`,
          x: { name: "tasks of the pool κ = K/D", log: true, low: 0.2, high: 100 },
          y: {
            name: ERROR,
            log: true,
            low: Math.max(1e-4, 0.7 * Math.min(...seen)),
            high: Math.min(100, 1.4 * Math.max(...seen)),
          },
          curves: [
            line("icl", "new tasks (ICL)", found, "icl", "blue", ""),
            line("idg", "tasks of the pool", found, "idg", "vermilion", ""),
            line("new", "dMMSE, new tasks", bayes, "icl", "purple", "7 4"),
            line("pool", "dMMSE, the pool", bayes, "idg", "green", "7 4"),
          ],
          levels: [{ y: ridge, name: `ridge: ${shown(ridge)}` }],
          uprights: [{ x: 1, name: "κ = 1" }],
        },
      ],
      answer: `A new task is harder than a known one by at most ${ENOUGH} ${closed}. The Bayes estimator that knows the pool errs by ${shown(bayes[120].icl)} on new tasks at κ = 100, ridge regression by ${shown(ridge)}.`,
      numbers: { ridge, gap: gaps[60] },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
import iclab
from iclab.theory import estimators
from iclab.theory.generalization import diversity_gap, errors
kappa, alpha, noise, dimension = np.geomspace(0.2, 100, 121), ${pythonic(state.alpha)}, ${pythonic(state.rho)}, ${state.D}
ratios = iclab.Ratios(alpha, kappa, ${pythonic(state.c)} * alpha, noise)
icl, idg = errors(ratios).icl, errors(ratios).idg
s = estimators.effective_log_tasks(np.maximum(1, kappa * dimension), dimension)
new, pool = estimators.dmmse_errors(alpha, noise, s).icl, estimators.dmmse_errors(alpha, noise, s).idg * np.ones(121)
print(diversity_gap(ratios)[60], estimators.ridge_error(alpha, noise))`,
};
