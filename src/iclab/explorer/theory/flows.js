/**
 * Population gradient flow of linear attention, merged and separate. Mirrors iclab.theory.dynamics.flows. With the
 * residual F = B − C Γ Λ a merged head moves by dv = ⟨U, F⟩, dU = v F, a separate one of rank one by dv = kᵀ F q,
 * dk = v F q, dq = v Fᵀ k. Times are in units of τ.
 */
import { integrate } from "./integration.js";
import { sum } from "./numerics.js";
import { loss, modes } from "./population.js";

/** @typedef {import("./population.js").Moments} Moments */
/** @typedef {{value: number[], keyQuery: number[][]}} MergedStart values, and (D, D) key-queries row after row */
/** @typedef {{value: number[], key: number[][], query: number[][]}} SeparateStart heads of rank one */
/** @typedef {{loss: Float64Array, states: Float64Array[]}} Flow its states hold parts one after another */

/**
 * Gradient flow of merged attention from a start.
 * @param {Moments} moments
 * @param {MergedStart} start
 * @param {ArrayLike<number>} time
 * @param {number} [tolerance]
 * @returns {Flow}
 */
export function mergedFlow(moments, start, time, tolerance = 1e-9) {
  const [heads, size] = [start.value.length, moments.cross.length];
  const entries = size * size;
  const residual = new Float64Array(entries);
  const gamma = (/** @type {Float64Array} */ state, /** @type {Float64Array} */ out) => {
    out.fill(0);
    for (let a = 0; a < heads; a++) {
      for (let e = 0; e < entries; e++) out[e] += state[a] * state[heads + a * entries + e];
    }
  };
  const velocity = (/** @type {Float64Array} */ state, /** @type {Float64Array} */ out) => {
    gamma(state, residual);
    toResidual(moments, residual);
    for (let a = 0; a < heads; a++) {
      let change = 0;
      for (let e = 0; e < entries; e++) {
        const place = heads + a * entries + e;
        change += state[place] * residual[e];
        out[place] = state[a] * residual[e];
      }
      out[a] = change;
    }
  };
  const sizes = start.value.map((v, a) => Math.max(...[v, ...start.keyQuery[a]].map(Math.abs)));
  const floor = [...sizes, ...sizes.flatMap((each) => Array(entries).fill(each))];
  const states = integrate(velocity, [...start.value, ...start.keyQuery.flat()], time, { tolerance, floor });
  return { loss: lossesAlong(moments, states, gamma), states };
}

/**
 * Gradient flow of separate attention, heads of rank one, from a start.
 * @param {Moments} moments
 * @param {SeparateStart} start
 * @param {ArrayLike<number>} time
 * @param {number} [tolerance]
 * @returns {Flow}
 */
export function separateFlow(moments, start, time, tolerance = 1e-9) {
  const [heads, size] = [start.value.length, moments.cross.length];
  const [keys, queries] = [heads, heads + heads * size]; // where they begin in a state
  const residual = new Float64Array(size * size);
  const gamma = (/** @type {Float64Array} */ state, /** @type {Float64Array} */ out) => {
    out.fill(0);
    for (let a = 0; a < heads; a++) {
      for (let i = 0; i < size; i++) {
        const strength = state[a] * state[keys + a * size + i];
        for (let j = 0; j < size; j++) out[i * size + j] += strength * state[queries + a * size + j];
      }
    }
  };
  const velocity = (/** @type {Float64Array} */ state, /** @type {Float64Array} */ out) => {
    gamma(state, residual);
    toResidual(moments, residual);
    for (let a = 0; a < heads; a++) {
      const key = keys + a * size;
      const query = queries + a * size;
      let change = 0;
      for (let i = 0; i < size; i++) {
        let forQuery = 0;
        let alongKey = 0;
        for (let j = 0; j < size; j++) {
          forQuery += residual[i * size + j] * state[query + j];
          alongKey += state[key + j] * residual[j * size + i];
        }
        change += state[key + i] * forQuery;
        out[key + i] = state[a] * forQuery;
        out[query + i] = state[a] * alongKey;
      }
      out[a] = change;
    }
  };
  const sizes = start.value.map((v, a) => Math.max(...[v, ...start.key[a], ...start.query[a]].map(Math.abs)));
  const spread = sizes.flatMap((each) => Array(size).fill(each));
  const state = [...start.value, ...start.key.flat(), ...start.query.flat()];
  const states = integrate(velocity, state, time, { tolerance, floor: [...sizes, ...spread, ...spread] });
  return { loss: lossesAlong(moments, states, gamma), states };
}

/**
 * Amplitude w₀ of the growing mode at a small merged start: |value + key-query · B/|B|| / 2.
 * @param {Moments} moments
 * @param {MergedStart} start
 */
export function growingAmplitude({ cross }, start) {
  const [size, length] = [cross.length, Math.hypot(...cross)];
  const along = (/** @type {number[]} */ map) => sum(cross.map((b, d) => (b / length) * map[d * size + d]));
  return Math.hypot(...start.value.map((v, a) => v + along(start.keyQuery[a]))) / 2;
}

/**
 * Merged attention from a small start as D + 1 scalars: dr = Σ b f, db = r f with f = g − h r b, r(0) = |b(0)| =
 * amplitude, b(0) along g; r first in a state, then b, largest contribution first.
 * @param {Moments} moments
 * @param {number} amplitude w₀
 * @param {ArrayLike<number>} time
 * @param {number} [tolerance]
 * @returns {Flow}
 */
export function reducedMergedFlow(moments, amplitude, time, tolerance = 1e-9) {
  const { signal, curvature } = modes(moments);
  const length = Math.hypot(...signal);
  const velocity = (/** @type {Float64Array} */ state, /** @type {Float64Array} */ out) => {
    let change = 0;
    for (let d = 0; d < signal.length; d++) {
      const force = signal[d] - curvature[d] * state[0] * state[d + 1];
      change += state[d + 1] * force;
      out[d + 1] = state[0] * force;
    }
    out[0] = change;
  };
  const start = [amplitude, ...signal.map((g) => (amplitude * g) / length)];
  const states = integrate(velocity, start, time, { tolerance, floor: start.map(() => amplitude) });
  const losses = Float64Array.from(states, (state) => {
    let total = moments.nullLoss;
    for (let d = 0; d < signal.length; d++) {
      const strength = state[0] * state[d + 1];
      total += (curvature[d] * strength - 2 * signal[d]) * strength;
    }
    return total;
  });
  return { loss: losses, states };
}

/**
 * Γ, row after row, is replaced by the residual B − C Γ Λ on it.
 * @param {Moments} moments
 * @param {Float64Array} gamma
 */
function toResidual({ cross, second, inputCovariance }, gamma) {
  const size = cross.length;
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) gamma[i * size + j] *= -second[i] * inputCovariance[j];
    gamma[i * size + i] += cross[i];
  }
}

/**
 * Loss of each state, by its Γ.
 * @param {Moments} moments
 * @param {Float64Array[]} states
 * @param {(state: Float64Array, out: Float64Array) => void} gamma
 */
function lossesAlong(moments, states, gamma) {
  const held = new Float64Array(moments.cross.length ** 2);
  return Float64Array.from(states, (state) => {
    gamma(state, held);
    return loss(moments, held);
  });
}
