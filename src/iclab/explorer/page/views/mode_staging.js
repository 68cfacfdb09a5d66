/** Modes of two factors along training: exact at a finite context length, and at leading order in 1/N. */
import { exactFlow, leadingOrder } from "../../theory/modes.js";
import { linspace } from "../../theory/numerics.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { TIME } from "./staircase.js";

export const TONES = ["blue", "vermilion", "green", "purple", "orange", "sky", "ink", "soft"];
const MOMENTS = 241;

export const modeStagingView = {
  heavy: true,
  /** @param {Record<string, any>} state @param {number} tolerance */
  picture(state, tolerance) {
    const tasks = { eigenvalues: state.s, contextLength: state.N };
    const start = /** @type {[number, number]} */ ([state.w, state.w]);
    const time = linspace(0, state.T, MOMENTS);
    const exact = exactFlow(tasks, start, time, tolerance).strength;
    const leading = leadingOrder(tasks, start, time).strength;
    const last = state.s.length - 1;
    const [end, said] = [exact[last][MOMENTS - 1], leading[last][MOMENTS - 1]];
    const curves = state.s.flatMap((/** @type {number} */ value, /** @type {number} */ k) => [
      { key: `exact.${k}`, name: `s = ${shown(value)}`, x: time, y: exact[k], tone: TONES[k], width: 3, label: true },
      { key: `leading.${k}`, name: "", x: time, y: leading[k], tone: TONES[k], width: 2, dash: "6 4" },
    ]);
    const off = said / end;
    const compared =
      off > 1.05
        ? `${shown(off)} times too much`
        : off < 0.95
          ? `${shown(1 / off)} times too little`
          : "the same within 5 %";
    return {
      charts: [
        {
          title: `Strength of each mode against training time at N = ${state.N}: exact solid, leading order dashed.`,
          x: { name: TIME, low: 0, high: state.T },
          y: {
            name: "strength p q of a mode",
            low: 0,
            high: 1.06 * Math.max(...exact.map((y) => Math.max(...y)), ...leading.map((y) => Math.max(...y))),
          },
          curves,
        },
      ],
      answer: `At N = ${state.N} and t = ${shown(state.T)} the mode of least eigenvalue has strength ${shown(end)} exactly (solid); the leading order in 1/N (dashed) says ${shown(said)}, ${compared}.`,
      numbers: { end, said },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
from iclab.theory import modes
tasks = modes.DiagonalTasks(${pythonic(state.s)}, ${state.N})
start, time = (${pythonic(state.w)}, ${pythonic(state.w)}), np.linspace(0, ${pythonic(state.T)}, ${MOMENTS})
exact = modes.exact_flow(tasks, start=start, time=time).strength.T
leading = modes.leading_order(tasks, start=start, time=time).strength.T
print(exact[:, -1], leading[:, -1])`,
};
