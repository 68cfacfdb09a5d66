/** Documents of `iclab inspect`: what was measured of every matrix, step by step. What they say is text, never markup. */

/** @typedef {{steps: number[], values: (number | null)[], null: number | null, spread: number | null}} Measured */
/**
 * @typedef {{name: string, measures: Record<string, Measured>, steps: number[],
 *   singular: (number | null)[][]}} Matrix
 */
/** @typedef {{matrices: Matrix[], findings: string[], measures: string[], summary: string}} Inspected */

const SCHEMA = 1;

/**
 * The document in a text, or why there is none.
 * @param {any} content of the JSON
 * @returns {{inspected?: Inspected, problem?: string}}
 */
export function inspectedOf(content) {
  if (
    content?.schema !== SCHEMA ||
    !Array.isArray(content.table) ||
    !Array.isArray(content.fans) ||
    typeof content.runs !== "object"
  )
    return {
      problem: `A document must be results.json of iclab inspect, schema ${SCHEMA}; got ${content?.schema === undefined ? "something else" : `schema ${String(content.schema).slice(0, 20)}`}. Inspect again with this version.`,
    };
  /** @type {Map<string, Matrix>} */ const matrices = new Map();
  for (const row of content.table) {
    const name = nameOf(row);
    if (!matrices.has(name)) matrices.set(name, { name, measures: {}, steps: [], singular: [] });
    const measures = /** @type {Matrix} */ (matrices.get(name)).measures;
    const measured = (measures[String(row.measure)] ??= {
      steps: [],
      values: [],
      null: numberOf(row.null),
      spread: numberOf(row.spread),
    });
    measured.steps.push(Number(row.step));
    measured.values.push(numberOf(row.value));
  }
  for (const one of content.fans) {
    const matrix = matrices.get(nameOf(one));
    if (!matrix || !Array.isArray(one.singular_values)) continue;
    matrix.steps = Object.values(matrix.measures)[0]?.steps ?? [];
    matrix.singular = one.singular_values.map((/** @type {any[]} */ row) => row.map(numberOf));
  }
  const runs = Object.entries(content.runs);
  const findings = runs.flatMap(([run, { integrity = [], changes = [] }]) => [
    ...integrity.map(
      (/** @type {any} */ one) => `${runs.length > 1 ? `${run}: ` : ""}${one.severity}: ${one.message}`,
    ),
    ...changes.map(
      (/** @type {any} */ one) => `${nameOf({ ...one, run })}: ${one.measure} changes at step ${one.step}`,
    ),
  ]);
  const measures = [...new Set([...matrices.values()].flatMap((one) => Object.keys(one.measures)))];
  if (!matrices.size)
    return {
      problem: "The document must hold measurements; got none. Inspect a folder whose checkpoints have matrices.",
    };
  return {
    inspected: {
      matrices: [...matrices.values()],
      findings: findings.map(String),
      measures,
      summary: runs.map(([run, one]) => `${run}: ${one.checkpoints?.length ?? 0} checkpoints`).join("; "),
    },
  };
}

/** Name of a matrix: run, layer, head and tensor. @param {any} row */
function nameOf({ run, tower, layer, head, matrix }) {
  const parts = [
    run,
    tower,
    layer === null || layer === undefined ? "" : `layer ${layer}`,
    head === null || head === undefined ? "" : `head ${head}`,
    matrix,
  ];
  return parts.filter((part) => part !== undefined && part !== null && part !== "").join(" · ");
}

/** @param {any} value */
const numberOf = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
