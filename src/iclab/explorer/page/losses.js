/** Loss curves of one's own: their log, and the conventions by which they become those of theory, as in iclab compare. */

const CLOCKS = ["step", "steps", "global_step", "iteration", "iter", "epoch", "epochs", "time", "t"];
const NAMES = ["loss", "train_loss", "training_loss", "mse", "train_mse", "mean_squared_error"];
const RECORDED = 4000; // records that are drawn

/** @typedef {{clock: number[], loss: number[], name: string}} Log */
/** @typedef {{rate: number, loss: "mean" | "half" | "sum", normalization: "1/N" | "none" | "1/(N+1)", drawn: number}} Conventions */

/**
 * The clock and the loss in a text: CSV, JSON lines, a JSON list, or the state of a trainer.
 * @param {string} text
 * @returns {{log?: Log, problem?: string}}
 */
export function logOf(text) {
  const { rows, problem } = /^\s*[{[]/.test(text) ? jsonRows(text) : { rows: sheetRows(text), problem: undefined };
  if (problem) return { problem };
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const clock = column(names, CLOCKS);
  const loss = column(names, NAMES);
  if (!clock || !loss)
    return {
      problem: `A log must have one clock and one loss, by a usual name such as step and loss; there are ${names.slice(0, 8).join(", ").slice(0, 120) || "none"}. Rename the columns.`,
    };
  const kept = rows
    .filter((row) => there(row[clock]) && there(row[loss]))
    .map((row) => [Number(row[clock]), Number(row[loss])]);
  const odd = kept.find((pair) => pair.some(Number.isNaN));
  if (odd || kept.length < 3)
    return {
      problem: `A log must have 3 records or more, each a number; got ${odd ? "something else" : kept.length}. Remove what is no record.`,
    };
  const rising = lastRun(
    kept.filter(([time, value]) => Number.isFinite(value) && Number.isFinite(time) && time >= 0),
  );
  if (rising.length < 3)
    return { problem: "A log must have a clock that increases; that of this one does not. Keep one run in it." };
  const every = Math.ceil(rising.length / RECORDED);
  const drawn = rising.filter((_, i) => i % every === 0 || i === rising.length - 1);
  return { log: { clock: drawn.map(([time]) => time), loss: drawn.map(([, value]) => value), name: clock } };
}

/**
 * The log in the time and the loss of theory: η = 2 f lr with f the scale of the loss. Weights of k factors that are
 * not divided by N take their time by g^(2/k) with g the gain of the summary.
 * @param {Log} log
 * @param {Conventions} conventions
 * @param {number} length N
 * @param {number} factors 2 of merged, 3 of separate attention
 */
export function converted(log, { rate, loss, normalization, drawn }, length, factors) {
  const scale = { mean: 1, half: 0.5, sum: drawn }[loss];
  const gain = { "1/N": 1, none: length, "1/(N+1)": length / (length + 1) }[normalization];
  const pace = 2 * scale * rate * gain ** (2 / factors);
  return { x: log.clock.map((step) => pace * step), y: log.loss.map((value) => value / scale) };
}

/** The records that count: where the clock falls training was taken up again. @param {number[][]} records */
function lastRun(records) {
  const kept = [];
  let before = Infinity;
  for (const record of [...records].reverse()) {
    if (record[0] < before) kept.push(record);
    before = Math.min(before, record[0]);
  }
  return kept.reverse();
}

/** @param {string} text @returns {Record<string, any>[]} */
function sheetRows(text) {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .filter((line) => line.trim());
  const sign = [";", "\t", ","].find((one) => lines[0]?.includes(one)) ?? ",";
  const cells = (/** @type {string} */ line) => line.split(sign).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
  const names = cells(lines[0] ?? "");
  return lines.slice(1).map((line) => Object.fromEntries(cells(line).map((cell, i) => [names[i] ?? "", cell])));
}

/** @param {string} text @returns {{rows: Record<string, any>[], problem?: string}} */
function jsonRows(text) {
  try {
    const whole = JSON.parse(text);
    const rows = Array.isArray(whole) ? whole : (whole.log_history ?? [whole]);
    if (rows.every((/** @type {any} */ row) => row && typeof row === "object")) return { rows };
  } catch {
    const lines = text.split(/\r?\n/).filter((line) => line.trim());
    try {
      return { rows: lines.map((line) => JSON.parse(line)) };
    } catch {
      /* said below */
    }
  }
  return {
    rows: [],
    problem:
      "A log must be CSV, JSON lines, a JSON list of records, or the state of a trainer; this file is none. Remove what is half-written.",
  };
}

/** The column of a usual name; of several losses that which is called so. @param {string[]} names @param {string[]} usual */
function column(names, usual) {
  const found = names.filter((name) => usual.includes(plainName(name)));
  return found.length === 1 ? found[0] : found.find((name) => name === usual[0] && usual === NAMES);
}

/** A name without the group that trackers put before it. @param {string} name */
function plainName(name) {
  const [last, ...groups] = name.trim().toLowerCase().split("/").reverse();
  if (groups.length && !["train", "trainer", "training"].includes(groups.reverse().join("/"))) return "";
  return last.replace(/^_+/, "").replaceAll("-", "_");
}

/** @param {any} value */
const there = (value) => value !== undefined && value !== null && value !== "";
