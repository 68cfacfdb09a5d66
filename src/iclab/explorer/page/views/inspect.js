/** A document of `iclab inspect`: one measure of one matrix in its null band, singular values, and what was found. */
import { inspectedOf } from "../documents.js";
import { shown } from "../numbers.js";
import { TONES } from "./mode_staging.js";

/** @type {import("../documents.js").Inspected | null} */ let inspected = null;

/**
 * Shows another document from now on; the sentence that says why it cannot, or "".
 * @param {any} content
 * @returns {string}
 */
export function inspect(content) {
  const { inspected: read, problem } = inspectedOf(content);
  if (read) inspected = read;
  return problem ?? "";
}

/** Names that the controls of the view offer: matrices, and measures. */
export const offered = () => ({
  matrix: (inspected?.matrices ?? []).map(({ name }) => name),
  measure: inspected?.measures ?? [],
});

export const inspectView = {
  /** @param {Record<string, any>} state */
  picture(state) {
    const matrix = inspected?.matrices.find(({ name }) => name === state.matrix) ?? inspected?.matrices[0];
    const measure =
      state.measure in (matrix?.measures ?? {}) ? state.measure : Object.keys(matrix?.measures ?? {})[0];
    const measured = matrix?.measures[measure];
    if (!inspected || !matrix || !measured) return empty();
    const values = measured.values.map((value) => value ?? NaN);
    const [middle, spread] = [measured.null ?? NaN, measured.spread ?? NaN];
    const out = values.findIndex((value) => Math.abs(value - middle) > 2 * spread);
    const seen = [...values, middle - 2 * spread, middle + 2 * spread].filter(Number.isFinite);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    const margin = 0.08 * (high - low) || 0.1 * Math.abs(high) || 1;
    const steps = {
      name: "training step",
      low: Math.min(...measured.steps),
      high: Math.max(...measured.steps, Math.min(...measured.steps) + 1),
    };
    const band = Number.isFinite(middle) && Number.isFinite(spread);
    const flat = (/** @type {number} */ height) => measured.steps.map(() => height);
    const curves = [
      ...(band
        ? [
            {
              name: "null level ± 2 s.d.",
              x: measured.steps,
              y: flat(middle),
              low: flat(middle - 2 * spread),
              high: flat(middle + 2 * spread),
              tone: "soft",
              width: 1.5,
              dash: "2 4",
              label: true,
            },
          ]
        : []),
      { key: "measure", name: measure, x: measured.steps, y: values, tone: "blue", width: 3, label: true },
    ];
    const charts = [
      {
        title: `${measure} of ${matrix.name} along training.`,
        x: steps,
        y: { name: measure, low: low - margin, high: high + margin },
        curves,
      },
    ];
    if (matrix.singular.length) charts.push(trajectories(matrix, steps));
    const where = !band
      ? "It has no null level."
      : out < 0
        ? "It never leaves the null band of random matrices of its shape."
        : `It is out of the null band of random matrices first at step ${shown(measured.steps[out], 6)}.`;
    return {
      charts,
      answer: `${measure} of ${matrix.name} goes from ${shown(values[0])} to ${shown(values[values.length - 1])}. ${where}`,
      numbers: { first: values[0], last: values[values.length - 1] },
      findings: inspected.findings.length
        ? inspected.findings
        : ["Nothing was found wrong in the series, and no change was called."],
    };
  },
  command: () => "iclab inspect FOLDER",
  /** @param {Record<string, any>} state */
  python: (state) => `import iclab
spectra = iclab.observe("FOLDER")
rows = [row for row in spectra.rows() if row.measure == ${JSON.stringify(state.measure ?? "")}]
print(spectra)`,
};

/** @param {import("../documents.js").Matrix} matrix @param {{name: string, low: number, high: number}} steps */
function trajectories(matrix, steps) {
  const count = Math.max(...matrix.singular.map((row) => row.length));
  const values = Array.from({ length: count }, (_, k) => matrix.singular.map((row) => row[k] ?? NaN));
  const seen = values.flat().filter((value) => value > 0);
  const curves = values.map((y, k) => ({
    key: `singular.${k}`,
    name: `σ${k + 1}`,
    x: matrix.steps,
    y,
    tone: TONES[k % 6],
    width: 2.5,
    label: true,
  }));
  return {
    title: `Leading singular values of ${matrix.name}.`,
    x: steps,
    y: { name: "singular value", low: 0, high: 1.08 * Math.max(...seen, 1e-12) },
    curves,
  };
}

/** What is shown before a document is there. */
function empty() {
  return {
    charts: [
      {
        title: "No document yet.",
        x: { name: "training step", low: 0, high: 1 },
        y: { name: "measure", low: 0, high: 1 },
        curves: [],
      },
    ],
    answer:
      "No document is open. Open results.json of iclab inspect, or drop it on the page; it stays in this browser.",
    numbers: {},
  };
}
