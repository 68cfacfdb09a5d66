/** Elements of the page, made with their properties. */

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * An element; what its kind does not know as a property becomes an attribute.
 * @param {string} tag
 * @param {Record<string, any>} [given]
 * @param {...(Node | string)} children
 */
export function make(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (key in made) /** @type {any} */ (made)[key] = value;
    else made.setAttribute(key, String(value));
  }
  made.append(...children);
  return made;
}

/**
 * A button that does something.
 * @param {string} words
 * @param {() => void} act
 * @param {string} [title]
 */
export const button = (words, act, title = "") => make("button", { type: "button", onclick: act, title }, words);
