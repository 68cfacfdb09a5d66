/** Errors against the ridge, with the best one for new tasks and for tasks of the pool. */
import { geomspace } from "../../theory/numerics.js";
import { bestRidge, errors } from "../../theory/proportional.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { ERROR } from "./double_descent.js";

const RIDGES = geomspace(1e-6, 1e2, 161);

export const ridgeView = {
  heavy: true,
  /** @param {Record<string, any>} state */
  picture(state) {
    const ratios = { alpha: state.alpha, kappa: state.kappa, tau: state.tau, noise: state.rho };
    const found = Array.from(RIDGES, (ridge) => errors(ratios, ridge));
    const [none, best, bestPool] = [errors(ratios, 0), bestRidge(ratios, "icl"), bestRidge(ratios, "idg")];
    const least = errors(ratios, best).icl;
    const seen = found.flatMap(({ icl, idg }) => [icl, idg]).filter((value) => value > 0);
    const inside = (/** @type {number} */ ridge) => ridge > RIDGES[0] && ridge < RIDGES[RIDGES.length - 1];
    const times = none.icl / least;
    const price = !Number.isFinite(none.icl)
      ? "infinite"
      : times < 1.005
        ? "no larger"
        : `${shown(none.icl)}, ${shown(times)} times as much`;
    const marks = [
      { x: best, name: "best for new tasks" },
      { x: bestPool, name: "best for the pool" },
    ].filter(({ x }) => inside(x));
    const apart =
      marks.length === 2 && Math.abs(Math.log10(best / bestPool)) < 1.2
        ? [
            { x: marks[0].x, name: "best" },
            { x: marks[1].x, name: "" },
          ]
        : marks;
    return {
      charts: [
        {
          title: `Errors against the ridge at α = ${shown(state.alpha)}, κ = ${shown(state.kappa)}, τ = ${shown(state.tau)}.`,
          x: { name: "ridge λ of the readout", log: true, low: 1e-6, high: 1e2 },
          y: {
            name: ERROR,
            log: true,
            low: Math.max(1e-4, 0.7 * Math.min(...seen)),
            high: Math.min(300, 1.4 * Math.max(...seen)),
          },
          curves: [
            {
              key: "icl",
              name: "new tasks (ICL)",
              x: RIDGES,
              y: found.map((one) => one.icl),
              tone: "blue",
              width: 3,
              label: true,
            },
            {
              key: "idg",
              name: "tasks of the pool",
              x: RIDGES,
              y: found.map((one) => one.idg),
              tone: "vermilion",
              width: 3,
              label: true,
            },
          ],
          levels: [{ y: 1 + state.rho, name: "predict nothing" }],
          uprights: apart,
        },
      ],
      answer: `The best ridge for new tasks is λ = ${shown(best)}, with an error of ${shown(least)}; without ridge it is ${price}. For tasks of the pool the best is λ = ${shown(bestPool)}.`,
      numbers: { best, best_pool: bestPool, least },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
import iclab
from iclab.theory.generalization import best_ridge, errors
ratios = iclab.Ratios(${pythonic(state.alpha)}, ${pythonic(state.kappa)}, ${pythonic(state.tau)}, ${pythonic(state.rho)})
found = errors(ratios, ridge=np.geomspace(1e-6, 1e2, 161))
icl, idg = found.icl, found.idg
best, best_pool = best_ridge(ratios), best_ridge(ratios, target="idg")
print(best, best_pool)`,
};
