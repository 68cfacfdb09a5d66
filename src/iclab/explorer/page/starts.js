/** Random starts of theory: the normal numbers that NumPy draws for a seed, so that a seed means the same here. */

/** @type {Map<number, Float64Array>} */ const drawn = new Map();

/** Standard normal numbers of a seed. @param {number} seed */
function normals(seed) {
  const known = drawn.get(seed);
  if (known) return known;
  const bytes = Uint8Array.from(atob(DATA.normals[seed]), (letter) => letter.charCodeAt(0));
  const numbers = new Float64Array(bytes.buffer);
  drawn.set(seed, numbers);
  return numbers;
}

/**
 * Heads of rank one whose values have standard deviation `scale`, keys and queries scale/√(D + 1).
 * @param {number} seed
 * @param {number} heads
 * @param {number} dimension
 * @param {number} scale
 */
export function randomSeparate(seed, heads, dimension, scale) {
  const numbers = normals(seed);
  const spread = scale / Math.sqrt(dimension + 1);
  const rows = (/** @type {number} */ from) =>
    Array.from({ length: heads }, (_, head) =>
      Array.from({ length: dimension }, (_, d) => spread * numbers[from + head * dimension + d]),
    );
  const value = Array.from({ length: heads }, (_, head) => scale * numbers[head]);
  return { value, key: rows(heads), query: rows(heads + heads * dimension) };
}

/**
 * Merged heads with independent normal entries of standard deviation `scale`.
 * @param {number} seed
 * @param {number} heads
 * @param {number} dimension
 * @param {number} scale
 */
export function randomMerged(seed, heads, dimension, scale) {
  const numbers = normals(seed);
  const size = dimension ** 2;
  const value = Array.from({ length: heads }, (_, head) => scale * numbers[head]);
  const keyQuery = value.map((_, head) =>
    Array.from({ length: size }, (_, e) => scale * numbers[heads + head * size + e]),
  );
  return { value, keyQuery };
}
