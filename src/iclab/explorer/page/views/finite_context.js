/** Strengths at which modes settle, against the context length: noise switches some of them off. */
import { exactFixedPoint, limits } from "../../theory/modes.js";
import { geomspace } from "../../theory/numerics.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { TONES } from "./mode_staging.js";

const COUNTS = [...new Set(Array.from(geomspace(1, 1000, 120), Math.round))];

export const finiteContextView = {
  heavy: true,
  /** @param {Record<string, any>} state */
  picture(state) {
    const tasks = (/** @type {number} */ contextLength) => ({
      eigenvalues: state.s,
      contextLength,
      noise: state.rho,
    });
    const exact = COUNTS.map((length) => exactFixedPoint(tasks(length)));
    const leading = COUNTS.map((length) => limits(tasks(length)));
    const offAt = state.s.map(
      (/** @type {number} */ _, /** @type {number} */ k) => COUNTS.findLast((_length, i) => exact[i][k] === 0) ?? 0,
    );
    const last = state.s.length - 1;
    const on = COUNTS.map((_, i) => exact[i].filter((strength) => strength > 0).length);
    const curves = state.s.flatMap((/** @type {number} */ value, /** @type {number} */ k) => [
      {
        key: `exact.${k}`,
        name: `s = ${shown(value)}`,
        x: COUNTS,
        y: exact.map((row) => row[k]),
        tone: TONES[k],
        width: 3,
        label: true,
      },
      {
        key: `leading.${k}`,
        name: "",
        x: COUNTS,
        y: leading.map((row) => row[k]),
        tone: TONES[k],
        width: 2,
        dash: "6 4",
      },
    ]);
    return {
      charts: [
        {
          title: `Strength of each mode at the end against the context length, noise ${shown(state.rho)}.`,
          x: { name: "context length N", log: true, low: 1, high: 1000 },
          y: { name: "strength p q of a mode", low: 0, high: 1.06 * Math.max(...exact.flat(), ...leading.flat()) },
          curves,
          uprights: offAt[last] > 1 && offAt[last] < 1000 ? [{ x: offAt[last], name: "all on beyond" }] : [],
        },
      ],
      answer:
        offAt[last] > 0
          ? `At N = 1 noise leaves ${on[0]} of ${last + 1} modes on, at N = 10 ${on[COUNTS.indexOf(10)]}; the last one ${offAt[last] >= 1000 ? "stays off up to N = 1000" : `is off up to N = ${offAt[last]}`}. The leading order (dashed) has all on.`
          : `${last ? `All ${last + 1} modes are` : "The one mode is"} on at every length; the leading order (dashed) says ${shown(leading[0][last])} for the last one at N = 1, exactly it is ${shown(exact[0][last])}.`,
      numbers: { off: offAt },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
from iclab.theory import modes
lengths = np.unique(np.round(np.geomspace(1, 1000, 120)).astype(int))
tasks = [modes.DiagonalTasks(${pythonic(state.s)}, int(length), noise=${pythonic(state.rho)}) for length in lengths]
exact = np.array([modes.exact_fixed_point(one) for one in tasks]).T
quiet = [modes.DiagonalTasks(${pythonic(state.s)}, int(length)) for length in lengths]
leading = np.array([modes.limits(one) for one in quiet]).T
print(exact[:, 0], leading[:, 0])`,
};
