/** The plane of the two weights of a mode: the flow, where it rests, and the path of a point that is dragged. */
import { limits, modeLaw, timeConstants } from "../../theory/modes.js";
import { geomspace } from "../../theory/numerics.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";

const EDGE = 2; // of the plane
const TRACED = geomspace(1e-3, 1e3, 240); // times of a path, in units of the mode's own
const TIMES = [0, ...TRACED];

export const phasePortraitView = {
  /** @param {Record<string, any>} state */
  picture(state) {
    const limit = limits({ eigenvalues: [state.s], contextLength: state.N })[0];
    const tau = timeConstants([state.s])[0];
    const path = TIMES.map((time) => modeLaw([state.p, state.q], limit, tau, tau * time));
    const [p, q] = path[path.length - 1];
    const saddle = Math.hypot(p, q) < 0.05;
    const half = TIMES[path.findIndex(([a, b]) => a * b >= limit / 2)] * tau;
    return {
      charts: [
        {
          title: `Weights p and q of a mode: the flow, its rest p q = ${shown(limit)}, and the path of the point.`,
          x: { name: "value weight p", low: -EDGE, high: EDGE },
          y: { name: "key-query weight q", low: -EDGE, high: EDGE },
          curves: [
            ...rests(limit),
            { name: "", x: [-EDGE, EDGE], y: [EDGE, -EDGE], tone: "soft", width: 1.5, dash: "4 5", path: true },
            {
              key: "q",
              xKey: "p",
              name: "path",
              x: path.map(([a]) => a),
              y: path.map(([, b]) => b),
              tone: "vermilion",
              width: 3,
              path: true,
            },
          ],
          links: arrows(limit),
          dots: [{ name: "saddle", x: [0], y: [0], tone: "ink" }],
          notes: [
            { x: 0, y: 0, text: "saddle" },
            { x: Math.sqrt(limit), y: Math.sqrt(limit), text: "rest: p q = a∞", tone: "green" },
          ],
          handle: {
            x: state.p,
            y: state.q,
            keys: /** @type {[string, string]} */ (["p", "q"]),
            name: `start at p = ${shown(state.p)}, q = ${shown(state.q)}`,
          },
          square: true,
        },
      ],
      answer: saddle
        ? `From p = ${shown(state.p)}, q = ${shown(state.q)} the flow ends at the saddle, where nothing is learned: the start lies on the line p = −q.`
        : `From p = ${shown(state.p)}, q = ${shown(state.q)} the flow ends at p = ${shown(p)}, q = ${shown(q)} with p q = ${shown(p * q, 4)}${half > 0 ? `, and passes half of that at t = ${shown(half)} τ` : ""}. It conserves p² − q² = ${shown(state.p ** 2 - state.q ** 2)}.`,
      numbers: { limit, end: [p, q] },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
from iclab.theory import modes
tasks = modes.DiagonalTasks([${pythonic(state.s)}], ${state.N})
limit, tau = modes.limits(tasks)[0], modes.time_constants(tasks.eigenvalues)[0]
time = tau * np.r_[0, np.geomspace(1e-3, 1e3, 240)]
p, q = modes.mode_law((${pythonic(state.p)}, ${pythonic(state.q)}), limit, tau, time)
print(limit, p[-1], q[-1])`,
};

/** Both branches of the curve on which the flow rests. @param {number} limit */
function rests(limit) {
  const places = Array.from(geomspace(limit / EDGE, EDGE, 60));
  return [1, -1].map((side) => ({
    name: "",
    x: places.map((place) => side * place),
    y: places.map((place) => (side * limit) / place),
    tone: "green",
    width: 4,
    path: true,
  }));
}

/** Directions of the flow on a grid; longer where it is faster. @param {number} limit */
function arrows(limit) {
  const grid = Array.from({ length: 11 }, (_, i) => -EDGE + (EDGE * (2 * i + 1)) / 11);
  return grid.flatMap((p) =>
    grid.map((q) => {
      const pace = 1 - (p * q) / limit;
      const [across, up] = [q * pace, p * pace];
      const speed = Math.hypot(across, up);
      const length = (0.24 * speed) / (speed + 0.4);
      return {
        x1: p,
        y1: q,
        x2: p + (length * across) / (speed || 1),
        y2: q + (length * up) / (speed || 1),
        tone: "soft",
        head: true,
        width: 1.2,
      };
    }),
  );
}
