/** Stored runs over theory: those of the very case, or in grey the nearest one, with the verdicts of the product. */
import { make } from "./elements.js";
import { close, shown } from "./numbers.js";
import { placeOf } from "./places.js";

/**
 * A stored case: `state` says what of the controls it fixes.
 * @typedef {{state: Record<string, any>, words: string,
 *   lines: {key: string, seed: number, x: number[], y: number[]}[],
 *   dots: {key: string, x: number[], y: number[], error?: number[]}[]}} Case
 */
/** @typedef {{verdicts: Verdict[], seeds: number[], cases: Case[]}} Result */
/** @typedef {{found: Case, result: Result, differing: Control[], distance: number}} Best */
/** @typedef {{outcome: string, word: string, meaning: string, measure: string, number: string, bound: string, noticed: string}} Verdict */
/** @typedef {import("./state.js").Control} Control */

const BAND = 8; // runs from which on they are shown as a band

/** True where values of a control agree. @param {any} one @param {any} other @returns {boolean} */
function agree(one, other) {
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((value, i) => close(value, other[i]));
  return typeof one === "number" ? close(one, other) : one === other;
}

/**
 * The stored case of a state, else the nearest one, and the controls in which that differs.
 * @param {Result[]} results
 * @param {Record<string, any>} state
 * @param {Control[]} controls
 * @returns {Best | null}
 */
export function nearest(results, state, controls) {
  /** @type {Best | null} */ let best = null;
  for (const [result, found] of results.flatMap((one) =>
    one.cases.map((each) => /** @type {const} */ ([one, each])),
  )) {
    const differing = controls.filter(({ key }) => key in found.state && !agree(found.state[key], state[key]));
    const distance = differing.reduce(
      (total, control) => total + 0.1 + apartBy(control, found.state[control.key], state[control.key]),
      0,
    );
    if (!best || distance < best.distance) best = { found, result, differing, distance };
  }
  return best;
}

/** Distance of two values in lengths of their slider. @param {Control} control @param {any} one @param {any} other @returns {number} */
function apartBy(control, one, other) {
  if (!Array.isArray(one))
    return typeof one === "number" ? Math.abs(placeOf(control, one) - placeOf(control, other)) / 1000 : 1;
  const both = Math.min(one.length, other.length);
  return one
    .slice(0, both)
    .reduce((total, value, i) => total + apartBy(control, value, other[i]), Math.abs(one.length - other.length));
}

/**
 * Curves and dots of a stored case for the picture of a state.
 * @param {import("./chart.js").Picture} picture
 * @param {Case} found
 * @param {boolean} same true where it is of this very state
 * @param {number} seed that of the state
 */
export function marks(picture, found, same, seed) {
  const toneOf = (/** @type {string} */ key) =>
    picture.curves.find((curve) => curve.key === key)?.tone ?? "vermilion";
  const keys = new Set(picture.curves.map((curve) => curve.key));
  const lines = found.lines.filter(({ key }) => keys.has(key));
  const byKey = new Map(lines.map(({ key }) => [key, lines.filter((line) => line.key === key)]));
  const curves = [...byKey].flatMap(([key, own]) => {
    const tone = same ? (byKey.size > 1 ? toneOf(key) : "vermilion") : "soft";
    return linesOf(own, tone, same, byKey.size === 1 ? seed : -1, picture.square ?? false);
  });
  const dots = found.dots.map(({ key, x, y, error }) => {
    const across = x.length ? x : y.map(() => picture.x.low + 0.04 * (picture.x.high - picture.x.low));
    return { name: "runs", x: across, y, error, tone: same ? toneOf(key) : "soft", faint: !same };
  });
  return { curves, dots };
}

/**
 * Runs of one curve: few as lines, many as a band, that of the seed of the state on its own.
 * @param {Case["lines"]} own
 * @param {string} tone
 * @param {boolean} same
 * @param {number} seed
 * @param {boolean} path
 * @returns {import("./marks.js").Curve[]}
 */
function linesOf(own, tone, same, seed, path) {
  const mine = same && !path ? own.filter((line) => line.seed === seed) : [];
  const others = own.filter((line) => !mine.includes(line));
  const single = mine.map(({ x, y }) => ({
    name: `run of seed ${seed}`,
    x,
    y,
    tone,
    width: 2,
    dash: "7 4",
    label: true,
  }));
  if (own.length >= BAND && same && !path) return [band(own, tone), ...single];
  const thin = others.map(({ x, y }) => ({
    x,
    y,
    tone,
    width: 1.2,
    faint: true,
    path,
    dash: same ? undefined : "2 4",
  }));
  return [...thin, ...single];
}

/** The middle of many runs, in a band from a tenth to nine tenths. @param {Case["lines"]} lines @param {string} tone */
function band(lines, tone) {
  const at = (/** @type {number} */ share) =>
    lines[0].x.map((_, i) => {
      const sorted = lines.map(({ y }) => y[i]).sort((one, other) => one - other);
      return sorted[Math.min(sorted.length - 1, Math.round(share * (sorted.length - 1)))];
    });
  return {
    name: `${lines.length} runs, median`,
    x: lines[0].x,
    y: at(0.5),
    low: at(0.1),
    high: at(0.9),
    tone,
    width: 1.5,
    faint: true,
    label: false,
  };
}

/**
 * What is said of stored runs: the verdicts of the very case, or which case is the nearest.
 * @param {Best | null} best
 * @param {Record<string, any>} state
 */
export function said(best, state) {
  if (!best) return [];
  const { found, result, differing } = best;
  const many = `${result.seeds.length} stored run${result.seeds.length === 1 ? "" : "s"} ${found.words}`;
  if (differing.length) {
    const apart = differing
      .map(({ key, label }) => `${label}: ${listed(found.state[key])} where here ${listed(state[key])}`)
      .join("; ");
    return [make("p", {}, `No run of this very case is stored. In grey the nearest one, ${many}; ${apart}.`)];
  }
  const rows = result.verdicts.map((one) =>
    make(
      "li",
      { className: one.outcome.replaceAll(" ", "-") },
      make("b", {}, one.word),
      ` ${one.meaning} `,
      make(
        "span",
        { className: "soft" },
        `${one.measure}: ${one.number} (95 %), asked ${one.bound}${one.noticed ? `; would notice ${one.noticed}` : ""}`,
      ),
    ),
  );
  const list = make("ul", {}, ...rows);
  const holding = result.verdicts.filter(({ outcome }) => outcome === "holds").length;
  const summary = make("summary", {}, `${many}: ${holding} of ${result.verdicts.length} claims hold`);
  return [make("details", {}, summary, list)];
}

/** @param {any} value @returns {string} */
const listed = (value) =>
  Array.isArray(value)
    ? value.map((one) => shown(one)).join(" ")
    : typeof value === "number"
      ? shown(value)
      : String(value);
