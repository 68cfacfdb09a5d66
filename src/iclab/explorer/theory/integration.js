/**
 * Integration of smooth flows that linger near saddles. Mirrors iclab.theory.integration: the explicit pair of order
 * 8(5,3) of Dormand and Prince with the same control of steps, dense output and test for rest.
 */
import { TABLEAU } from "./tableau.js";

/** @typedef {(state: Float64Array, out: Float64Array) => void} Velocity writes the velocity at a state into `out` */

/**
 * States at the times of an increasing grid, of the flow that leaves `start` at time 0. `tolerance` bounds the error
 * of a step relative to each entry, or to its `floor` where it is smaller; a state at rest is kept for all later
 * times. Throws a RangeError where the flow escapes, and where it takes more than `patience` steps: Python goes on
 * with implicit ones.
 * @param {Velocity} velocity
 * @param {ArrayLike<number>} start
 * @param {ArrayLike<number>} time
 * @param {{tolerance?: number, floor?: ArrayLike<number>, patience?: number}} [options]
 * @returns {Float64Array[]}
 */
export function integrate(velocity, start, time, { tolerance = 1e-9, floor, patience = 20000 } = {}) {
  const solver = new DormandPrince(velocity, start, time[time.length - 1], tolerance, floor);
  /** @type {Float64Array[]} */
  const states = [];
  const reached = () => states.length < time.length && time[states.length] <= solver.time;
  while (reached()) states.push(solver.state.slice());
  for (let steps = 1; states.length < time.length; steps++) {
    if (steps > patience) throw new RangeError(`the flow takes more than ${patience} steps`);
    solver.step();
    if (reached()) solver.interpolate();
    while (reached()) states.push(solver.at(time[states.length]));
    if (steps % 50 === 0 && solver.atRest()) while (states.length < time.length) states.push(solver.state.slice());
  }
  return states;
}

class DormandPrince {
  /**
   * @param {Velocity} velocity
   * @param {ArrayLike<number>} start
   * @param {number} end
   * @param {number} tolerance
   * @param {ArrayLike<number>} [floor]
   */
  constructor(velocity, start, end, tolerance, floor) {
    const size = start.length;
    this.velocity = velocity;
    this.end = end;
    this.tolerance = tolerance;
    this.absolute = Float64Array.from(start, (_, i) => tolerance * Math.max(floor ? floor[i] : 1, 2 ** -1022));
    this.state = Float64Array.from(start);
    this.before = new Float64Array(size);
    this.trial = new Float64Array(size);
    this.slopes = Array.from({ length: 16 }, () => new Float64Array(size));
    this.dense = Array.from({ length: 7 }, () => new Float64Array(size));
    this.begin = 0; // of the last step
    this.time = 0; // at its end
    this.size = 0;
    velocity(this.state, this.slopes[0]);
    this.next = this.firstSize();
  }

  /** One step that keeps the tolerance. */
  step() {
    const { slopes, state, before } = this;
    const least = 10 * spacing(this.time);
    this.next = Math.max(this.next, least);
    if (this.time > 0) slopes[0].set(slopes[12]);
    for (let rejected = false; ; rejected = true) {
      if (!(this.next >= least)) throw new RangeError(`the steps of the flow vanish at time ${this.time}`);
      const reached = Math.min(this.time + this.next, this.end);
      this.size = reached - this.time;
      for (let stage = 1; stage < 12; stage++) {
        this.combine(TABLEAU.stages[stage], state);
        this.velocity(this.trial, slopes[stage]);
      }
      this.combine(TABLEAU.weights, state);
      this.velocity(this.trial, slopes[12]);
      const error = this.error();
      if (error < 1) {
        const factor = error === 0 ? 10 : Math.min(10, 0.9 * error ** (-1 / 8));
        this.next = this.size * (rejected ? Math.min(1, factor) : factor);
        before.set(state);
        state.set(this.trial);
        [this.begin, this.time] = [this.time, reached];
        return;
      }
      this.next = this.size * (error < Infinity ? Math.max(0.2, 0.9 * error ** (-1 / 8)) : 0.2);
    }
  }

  /**
   * The state from which a step goes, moved by a combination of slopes, as the trial.
   * @param {number[]} weights
   * @param {Float64Array} from
   */
  combine(weights, from) {
    const { trial, slopes, size } = this;
    trial.fill(0);
    for (let stage = 0; stage < weights.length; stage++) {
      const weight = weights[stage] * size;
      const slope = slopes[stage];
      if (weight !== 0) for (let i = 0; i < trial.length; i++) trial[i] += weight * slope[i];
    }
    for (let i = 0; i < trial.length; i++) trial[i] += from[i];
  }

  /** Estimated error of a step, in units of the tolerance. */
  error() {
    const { state, trial, slopes } = this;
    const { fifth: highs, third: lows } = TABLEAU;
    let [fifth, third] = [0, 0];
    for (let i = 0; i < state.length; i++) {
      let high = 0;
      let low = 0;
      for (let stage = 0; stage < 13; stage++) {
        const slope = slopes[stage][i];
        high += slope * highs[stage];
        low += slope * lows[stage];
      }
      const scale = this.absolute[i] + Math.max(Math.abs(state[i]), Math.abs(trial[i])) * this.tolerance;
      fifth += (high / scale) ** 2;
      third += (low / scale) ** 2;
    }
    if (fifth === 0 && third === 0) return 0;
    return (this.size * fifth) / Math.sqrt((fifth + 0.01 * third) * state.length);
  }

  /** Coefficients of the polynomial of order 7 through the last step. */
  interpolate() {
    const { before, state, slopes, dense, size } = this;
    for (let extra = 0; extra < 3; extra++) {
      this.combine(TABLEAU.extra[extra], before);
      this.velocity(this.trial, slopes[13 + extra]);
    }
    for (let i = 0; i < state.length; i++) {
      const change = state[i] - before[i];
      dense[0][i] = change;
      dense[1][i] = size * slopes[0][i] - change;
      dense[2][i] = 2 * change - size * (slopes[12][i] + slopes[0][i]);
    }
    TABLEAU.dense.forEach((weights, order) => {
      const coefficients = dense[3 + order].fill(0);
      weights.forEach((weight, stage) => {
        const slope = slopes[stage];
        if (weight !== 0) for (let i = 0; i < slope.length; i++) coefficients[i] += size * weight * slope[i];
      });
    });
  }

  /**
   * State at a time within the last step.
   * @param {number} time
   */
  at(time) {
    const part = (time - this.begin) / this.size;
    const state = new Float64Array(this.before.length);
    for (let order = 6; order >= 0; order--) {
      const coefficients = this.dense[order];
      const factor = order % 2 === 0 ? part : 1 - part;
      for (let i = 0; i < state.length; i++) state[i] = (state[i] + coefficients[i]) * factor;
    }
    for (let i = 0; i < state.length; i++) state[i] += this.before[i];
    return state;
  }

  /** True where every velocity is below what a change of the state by the tolerance makes of it. */
  atRest() {
    const { state, trial, slopes, tolerance, absolute } = this;
    const [now, moved] = [slopes[12], slopes[1]];
    for (let i = 0; i < state.length; i++) trial[i] = state[i] * (1 + tolerance);
    this.velocity(trial, moved);
    return state.every((v, i) => Math.abs(now[i]) <= Math.abs(moved[i] - now[i]) || Math.abs(v) <= absolute[i]);
  }

  /** Size of the first step, after Hairer. */
  firstSize() {
    const { state, slopes, trial, end, absolute, tolerance } = this;
    const [now, later] = [slopes[0], slopes[1]];
    const norm = (/** @type {(i: number) => number} */ of) => {
      let total = 0;
      for (let i = 0; i < state.length; i++) total += (of(i) / (absolute[i] + Math.abs(state[i]) * tolerance)) ** 2;
      return Math.sqrt(total / state.length);
    };
    const [height, speed] = [norm((i) => state[i]), norm((i) => now[i])];
    const probe = Math.min(height < 1e-5 || speed < 1e-5 ? 1e-6 : (0.01 * height) / speed, end);
    for (let i = 0; i < state.length; i++) trial[i] = state[i] + probe * now[i];
    this.velocity(trial, later);
    const bend = norm((i) => later[i] - now[i]) / probe;
    const level = speed <= 1e-15 && bend <= 1e-15;
    const size = level ? Math.max(1e-6, probe * 1e-3) : (0.01 / Math.max(speed, bend)) ** (1 / 8);
    return Math.min(100 * probe, size, end);
  }
}

/**
 * Distance of a time to the next larger number.
 * @param {number} time
 */
function spacing(time) {
  return time === 0 ? 2 ** -1074 : 2 ** (Math.floor(Math.log2(time)) - 52);
}
