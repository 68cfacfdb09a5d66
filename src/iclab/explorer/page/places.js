/** Places of a slider, 0 to 1000, and the numbers that they stand for. */

const PLACES = 1000;

/** @param {import("./state.js").Control} control @param {number} value */
export function placeOf({ log, low, high }, value) {
  return PLACES * (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
}

/** The number at a place of a slider, in three digits, the ends exactly. @param {import("./state.js").Control} control @param {number} place */
export function valueAt({ log, low, high, whole }, place) {
  if (place <= 0 || place >= PLACES) return place <= 0 ? low : high;
  const share = place / PLACES;
  const value = log ? low * (high / low) ** share : low + share * (high - low);
  if (whole) return Math.round(value);
  const rounded = log
    ? Number(value.toPrecision(3))
    : Number(((Math.round((value / (high - low)) * 200) / 200) * (high - low)).toPrecision(4));
  return Math.min(high, Math.max(low, rounded));
}
