/** The editor of a spectrum: bars to drag or to move by keys, a field to type or paste into, a power law. */
import { button, make } from "./elements.js";
import { shown, typed } from "./numbers.js";
import { placeOf, valueAt } from "./places.js";
import { LARGEST, spectrumOf } from "./state.js";

const HEIGHT = 96; // pixels of the highest bar
const WIDE = 30;

/**
 * @param {import("./state.js").Control} control
 * @param {import("./controls.js").Hand} hand
 */
export function spectrumEditor(control, hand) {
  const bars = make("div", { className: "bars" });
  const field = /** @type {HTMLInputElement} */ (
    make("input", { type: "text", "aria-label": `${control.label}, list of numbers` })
  );
  field.dataset.key = control.key;
  const put = (/** @type {number[]} */ values, dragged = false, moved = -1) => {
    hand.put(
      [...values].sort((one, other) => other - one),
      dragged,
    );
    field.value = hand
      .get()
      .map((/** @type {number} */ one) => typed(one))
      .join(", ");
    show(moved >= 0 ? hand.get().indexOf(values[moved]) : -1);
  };
  const show = (focused = -1) => {
    const values = /** @type {number[]} */ (hand.get());
    bars.replaceChildren(...values.map((_, i) => bar(control, values, i, put)));
    if (focused >= 0) /** @type {HTMLElement} */ (bars.children[focused]).focus();
  };
  field.addEventListener("change", () => {
    const { value, problem } = spectrumOf(control, field.value);
    field.setAttribute("aria-invalid", String(value === undefined));
    hand.complain(problem ?? "");
    if (value !== undefined) put(value);
  });
  const law = /** @type {HTMLInputElement} */ (
    make("input", {
      type: "range",
      min: "0",
      max: "3",
      step: "0.05",
      value: "1",
      "aria-label": "exponent of a power law",
    })
  );
  law.addEventListener("input", () => {
    const values = /** @type {number[]} */ (hand.get());
    const exponent = Number(law.value);
    law.setAttribute("aria-valuetext", `λ falls as k to the minus ${exponent}`);
    put(
      values.map((_, k) => within(control, Number((values[0] * (k + 1) ** -exponent).toPrecision(3)))),
      true,
    );
  });
  const current = () => /** @type {number[]} */ (hand.get());
  const fewer = button(
    "− mode",
    () => current().length > 1 && put(current().slice(0, -1)),
    "take the smallest eigenvalue away",
  );
  const more = button(
    "+ mode",
    () =>
      current().length < LARGEST &&
      put([...current(), within(control, Number((0.7 * (current().at(-1) ?? 1)).toPrecision(3)))]),
    "add a smaller eigenvalue",
  );
  const level = button("all equal", () =>
    put(current().map(() => Number((current().reduce((a, b) => a + b) / current().length).toPrecision(4)))),
  );
  field.value = current()
    .map((one) => typed(one))
    .join(", ");
  show();
  return make(
    "fieldset",
    {},
    make("legend", {}, control.label),
    make("p", { className: "help" }, control.help),
    bars,
    field,
    make("div", { className: "buttons" }, fewer, more, level),
    make("label", { className: "law" }, "power law k⁻ᵖ", law),
  );
}

/** @param {import("./state.js").Control} control @param {number} value */
const within = ({ low, high }, value) => Math.min(high, Math.max(low, value));

/**
 * One bar, a slider that stands upright.
 * @param {import("./state.js").Control} control
 * @param {number[]} values
 * @param {number} i
 * @param {(values: number[], dragged?: boolean, moved?: number) => void} put
 */
function bar(control, values, i, put) {
  const fill = make("span", { className: "fill" });
  fill.style.height = `${8 + ((HEIGHT - 8) * placeOf(control, values[i])) / 1000}px`;
  const made = make(
    "div",
    {
      className: "bar",
      tabIndex: 0,
      role: "slider",
      "aria-orientation": "vertical",
      "aria-valuemin": control.low,
      "aria-valuemax": control.high,
      "aria-valuenow": values[i],
      "aria-valuetext": shown(values[i]),
      "aria-label": `eigenvalue ${i + 1}`,
    },
    fill,
  );
  made.style.width = `${WIDE}px`;
  const change = (/** @type {number} */ value) => put(values.with(i, within(control, value)), true, i);
  made.addEventListener("keydown", (e) => {
    const way = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 5, PageDown: -5 }[e.key];
    if (!way) return;
    e.preventDefault();
    change(Number((values[i] * 1.05 ** way).toPrecision(3)));
  });
  made.addEventListener("pointerdown", (e) => {
    e.preventDefault();
    made.focus();
    const row = /** @type {HTMLElement} */ (made.parentElement);
    const drag = (/** @type {PointerEvent} */ at) => {
      const share = 1 - (at.clientY - row.getBoundingClientRect().top) / HEIGHT;
      change(valueAt(control, 1000 * Math.min(1, Math.max(0, share))));
    };
    const end = () => {
      removeEventListener("pointermove", drag);
      removeEventListener("pointerup", end);
    };
    addEventListener("pointermove", drag);
    addEventListener("pointerup", end);
    drag(e);
  });
  return made;
}
