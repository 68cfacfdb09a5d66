/** Errors against the context length, and the best one over pools and noises. */
import { geomspace, linspace } from "../../theory/numerics.js";
import { bestAlpha, criticalKappa, errors } from "../../theory/proportional.js";
import { pythonic } from "../commands.js";
import { shown } from "../numbers.js";
import { ERROR } from "./double_descent.js";

const LENGTHS = geomspace(0.1, 1e4, 181);
const POOLS = linspace(0.1, 2.1, 41);
const NOISES = geomspace(0.01, 1, 31);
const FINE = 1e-7; // tolerance below which the map is drawn too

/** @type {Map<string, number[][]>} */ const maps = new Map();

/** The best length over noises and pools; the last few are kept. @param {number} tau @param {"icl" | "idg"} target */
function mapOf(tau, target) {
  const key = `${tau} ${target}`;
  const known = maps.get(key);
  if (known) return known;
  const made = Array.from(NOISES, (noise) => Array.from(POOLS, (kappa) => bestAlpha(kappa, tau, noise, 0, target)));
  if (maps.size > 8) maps.delete([...maps.keys()][0]);
  maps.set(key, made);
  return made;
}

export const contextLengthView = {
  heavy: true,
  /** @param {Record<string, any>} state @param {number} tolerance */
  picture(state, tolerance) {
    const target = /** @type {"icl" | "idg"} */ (state.target);
    const at = (/** @type {number} */ alpha) =>
      errors({ alpha, kappa: state.kappa, tau: state.tau, noise: state.rho });
    const found = Array.from(LENGTHS, at);
    const best = bestAlpha(state.kappa, state.tau, state.rho, 0, target);
    const critical = criticalKappa(state.tau, state.rho);
    const [least, endless] = [at(best || LENGTHS[0])[target], at(Infinity)[target]];
    const never =
      state.rho === 0
        ? "Without label noise they never hurt new tasks in the end."
        : `They hurt new tasks in the end below κ = ${shown(critical)}.`;
    const where = target === "icl" ? "new tasks" : "tasks of the pool";
    const seen = found.flatMap(({ icl, idg }) => [icl, idg]).filter((value) => value > 0 && Number.isFinite(value));
    const charts = [
      {
        title: `Errors against the context length at κ = ${shown(state.kappa)}, τ = ${shown(state.tau)}.`,
        x: { name: "examples of a context α = N/D", log: true, low: 0.1, high: 1e4 },
        y: { name: ERROR, log: true, low: 0.7 * Math.min(...seen), high: Math.min(300, 1.4 * Math.max(...seen)) },
        curves: [
          {
            key: "icl",
            name: "new tasks (ICL)",
            x: LENGTHS,
            y: found.map((one) => one.icl),
            tone: "blue",
            width: 3,
            label: true,
          },
          {
            key: "idg",
            name: "tasks of the pool",
            x: LENGTHS,
            y: found.map((one) => one.idg),
            tone: "vermilion",
            width: 3,
            label: true,
          },
        ],
        uprights: best > 0.1 && best < 1e4 ? [{ x: best, name: `best α = ${shown(best)}` }] : [],
      },
    ];
    if (tolerance < FINE || maps.has(`${state.tau} ${target}`))
      charts.push(/** @type {any} */ (picturedMap(state, target)));
    return {
      charts,
      answer:
        best === Infinity
          ? `Longer contexts are always better for ${where} here: the error falls to ${shown(endless)}. ${never}`
          : best === 0
            ? `No context is worth its examples for ${where} here: shorter is better all the way. ${never}`
            : `Longer contexts hurt ${where} here: the best length is α = ${shown(best)}, with an error of ${shown(least)} against ${shown(endless)} in contexts of infinite length. ${never}`,
      numbers: { best, border: critical, least },
    };
  },
  /** @param {Record<string, any>} state */
  python: (state) => `import numpy as np
import iclab
from iclab.theory.generalization import best_alpha, critical_kappa, errors
kappa, tau, noise = ${pythonic(state.kappa)}, ${pythonic(state.tau)}, ${pythonic(state.rho)}
found = errors(iclab.Ratios(np.geomspace(0.1, 1e4, 181), kappa, tau, noise))
icl, idg = found.icl, found.idg
best = best_alpha(kappa, tau, noise, target="${state.target}")
critical = critical_kappa(tau, np.geomspace(0.01, 1, 31))
border = critical_kappa(tau, noise)
print(best, border)`,
};

/** @param {Record<string, any>} state @param {"icl" | "idg"} target */
function picturedMap(state, target) {
  const values = mapOf(state.tau, target);
  const border = Array.from(NOISES, (noise) => criticalKappa(state.tau, noise));
  return {
    title: `Best context length over tasks and noise at τ = ${shown(state.tau)}; grey: longer is better.`,
    x: { name: "tasks of the pool κ = K/D", low: 0.1, high: 2.1 },
    y: { name: "label noise ρ", log: true, low: 0.01, high: 1 },
    colors: {
      xs: Array.from(POOLS),
      ys: Array.from(NOISES),
      values,
      low: 1,
      high: 1000,
      words: "Shade: best α from 1 (yellow) to 1000 (dark blue); grey: longer is better.",
    },
    curves:
      target === "icl"
        ? [
            {
              xKey: "critical",
              name: "κ_c",
              x: border,
              y: Array.from(NOISES),
              tone: "ink",
              width: 2,
              path: true,
              label: true,
            },
          ]
        : [],
    dots:
      state.kappa >= 0.1 && state.kappa <= 2.1 && state.rho >= 0.01
        ? [{ name: "this state", x: [state.kappa], y: [state.rho], tone: "vermilion" }]
        : [],
  };
}
