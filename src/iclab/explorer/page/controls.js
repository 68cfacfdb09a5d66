/** Controls: a slider and a field for each number, words to choose, and the spectrum with an editor of its own. */
import { make } from "./elements.js";
import { shown, typed } from "./numbers.js";
import { placeOf, valueAt } from "./places.js";
import { spectrumEditor } from "./spectrum.js";
import { valueOf } from "./state.js";

const SLIDER = 1000; // places of a slider
const FIELD = 5; // digits of a field

/**
 * What controls do when they are moved: `put` a value, and `complain` where an entry stands for none.
 * @typedef {{get: () => any, put: (value: any, dragged: boolean) => void, complain: (words: string) => void}} Hand
 */

/**
 * The row of a control.
 * @param {import("./state.js").Control} control
 * @param {Hand} hand
 */
export function row(control, hand) {
  if (control.spectrum) return spectrumEditor(control, hand);
  return control.choices.length || control.open ? choice(control, hand) : slider(control, hand);
}

/** @param {import("./state.js").Control} control @param {Hand} hand */
function choice(control, hand) {
  const id = `c-${control.key}`;
  const options = control.choices.map((word) => make("option", { value: word, selected: hand.get() === word }, word));
  const select = /** @type {HTMLSelectElement} */ (make("select", { id }, ...options));
  select.addEventListener("change", () => hand.put(select.value, false));
  return make(
    "div",
    { className: "control words" },
    make("label", { htmlFor: id, title: control.help }, control.label),
    select,
    help(control),
  );
}

/** @param {import("./state.js").Control} control @param {Hand} hand */
function slider(control, hand) {
  const id = `c-${control.key}`;
  const step = control.whole && !control.log ? SLIDER / (control.high - control.low) : 1;
  const range = /** @type {HTMLInputElement} */ (
    make("input", { type: "range", id, min: "0", max: String(SLIDER), step: String(step) })
  );
  const field = /** @type {HTMLInputElement} */ (
    make("input", { type: "text", inputMode: "decimal", "aria-label": `${control.label}, number` })
  );
  field.dataset.key = control.key;
  const tell = () => {
    range.value = String(placeOf(control, hand.get()));
    range.setAttribute("aria-valuetext", shown(hand.get()));
  };
  range.addEventListener("input", () => {
    hand.put(valueAt(control, Number(range.value)), true);
    field.value = typed(hand.get(), FIELD);
    range.setAttribute("aria-valuetext", shown(hand.get()));
  });
  field.addEventListener("change", () => {
    const { value, problem } = valueOf(control, field.value);
    field.setAttribute("aria-invalid", String(value === undefined));
    hand.complain(problem ?? "");
    if (value !== undefined) hand.put(value, false);
    tell();
  });
  field.value = typed(hand.get(), FIELD);
  tell();
  return make(
    "div",
    { className: "control" },
    make("label", { htmlFor: id, title: control.help }, control.label),
    range,
    field,
    help(control),
  );
}

/** @param {import("./state.js").Control} control */
const help = (control) => make("span", { className: "help" }, control.help);
