/** One chart in plain SVG, drawn at the width of its box so that type keeps its size on every screen. */
import { d3 } from "./vendor/d3.js";
import { make } from "./elements.js";
import { apart, frameOf, PHONE, scaleOf, tickWords, ticksOf } from "./layout.js";
import { drawColors, drawCurve, drawDots, drawLink } from "./marks.js";
import { heightAt, shown } from "./numbers.js";

/**
 * What a view shows: all that a chart draws.
 * @typedef {{title: string, x: import("./layout.js").AxisOf, y: import("./layout.js").AxisOf,
 *   curves: import("./marks.js").Curve[], dots?: import("./marks.js").Dots[], links?: import("./marks.js").Link[],
 *   levels?: {y: number, name: string}[], uprights?: {x: number, name: string}[],
 *   notes?: {x: number, y: number, text: string, tone?: string}[], colors?: import("./marks.js").Colors,
 *   handle?: {x: number, y: number, keys: [string, string], name: string}, square?: boolean}} Picture
 */

let charts = 0;

export class Chart {
  /**
   * @param {HTMLElement} box
   * @param {(words: string) => void} say what stands under the reading line
   * @param {(moved: Record<string, number>) => void} move what a dragged point asks for
   */
  constructor(box, say, move = () => {}) {
    this.box = box;
    this.say = say;
    this.move = move;
    this.number = charts++;
    this.cursor = NaN;
    this.width = 0;
    this.dragging = false;
    this.X = this.Y = scaleOf({ name: "", low: 0, high: 1 }, 0, 1);
    /** @type {import("./layout.js").Frame | null} */ this.frame = null;
    /** @type {any} */ this.hair = null;
    /** @type {((x: number, y: number) => void) | null} */ this.drag = null;
    this.svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("tabindex", "0");
    this.legend = document.createElement("p");
    this.legend.className = "legend";
    box.append(this.svg, this.legend);
    /** @type {Picture | null} */ this.picture = null;
    this.listen();
    new ResizeObserver(() => this.picture && this.width !== this.measured() && this.draw(this.picture)).observe(box);
  }

  measured() {
    return Math.max(280, Math.floor(this.box.clientWidth));
  }

  /** @param {Picture} picture */
  draw(picture) {
    this.picture = picture;
    this.width = this.measured();
    const levels = picture.levels ?? [];
    const named = picture.curves.filter((curve) => curve.label && curve.name);
    const names = [...levels, ...named].map((one) => one.name ?? "");
    const frame = frameOf(this.width, names, picture.square);
    this.frame = frame;
    this.X = scaleOf(picture.x, frame.left, frame.right);
    this.Y = scaleOf(picture.y, frame.bottom, frame.top);
    const svg = d3.select(this.svg);
    svg.selectAll("*").remove();
    svg.attr("viewBox", `0 0 ${frame.width} ${frame.height}`).attr("width", frame.width).attr("height", frame.height);
    svg.attr("role", picture.handle ? "group" : "img");
    svg.attr("aria-label", `${picture.title} Arrow keys read the curves.`);
    svg.append("rect").attr("class", "paper").attr("width", frame.width).attr("height", frame.height);
    this.drawAxes(svg, picture);
    const clip = `frame-${this.number}`;
    const window = svg
      .append("clipPath")
      .attr("id", clip)
      .append("rect")
      .attr("x", frame.left)
      .attr("y", frame.top - 2);
    window.attr("width", frame.right - frame.left).attr("height", frame.bottom - frame.top + 4);
    const inside = svg.append("g").attr("clip-path", `url(#${clip})`);
    if (picture.colors) drawColors(inside, picture.colors, frame);
    for (const level of levels.filter(({ y }) => Number.isFinite(this.Y(y))))
      this.drawRule(inside, frame.left, this.Y(level.y), frame.right, this.Y(level.y));
    for (const one of picture.uprights ?? [])
      this.drawRule(inside, this.X(one.x), frame.top, this.X(one.x), frame.bottom);
    for (const link of picture.links ?? []) drawLink(inside, link, this.X, this.Y);
    for (const curve of picture.curves) drawCurve(inside, curve, this.X, this.Y);
    for (const dots of picture.dots ?? []) drawDots(inside, dots, this.X, this.Y);
    this.drawNames(svg, picture, named);
    this.hair = svg.append("g").attr("class", "hair");
    this.drawHandle(svg, picture);
    if (Number.isFinite(this.cursor)) this.read(this.cursor, false);
  }

  /** @param {any} svg @param {Picture} picture */
  drawAxes(svg, picture) {
    const { left, right, top, bottom, height } = /** @type {import("./layout.js").Frame} */ (this.frame);
    const across = ticksOf(picture.x, right - left, 78);
    const up = ticksOf(picture.y, bottom - top, 46);
    const grid = svg.append("g").attr("class", "grid");
    for (const tick of up)
      grid.append("line").attr("x1", left).attr("x2", right).attr("y1", this.Y(tick)).attr("y2", this.Y(tick));
    const below = d3.axisBottom(this.X).tickValues(across).tickFormat(tickWords).tickSizeOuter(0).tickPadding(7);
    const beside = d3.axisLeft(this.Y).tickValues(up).tickFormat(tickWords).tickSizeOuter(0).tickPadding(7);
    const axes = [
      svg.append("g").attr("transform", `translate(0,${bottom})`).call(below),
      svg.append("g").attr("transform", `translate(${left},0)`).call(beside),
    ];
    for (const axis of axes)
      axis.attr("class", "axis").attr("font-size", null).attr("font-family", null).attr("fill", null);
    axes[1].select(".domain").remove();
    svg
      .append("text")
      .attr("class", "name")
      .attr("x", (left + right) / 2)
      .attr("y", height - 6)
      .text(picture.x.name);
    const turned = `translate(15 ${(top + bottom) / 2}) rotate(-90)`;
    svg.append("text").attr("class", "name").attr("transform", turned).text(picture.y.name);
  }

  /** @param {any} group @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
  drawRule(group, x1, y1, x2, y2) {
    group.append("line").attr("class", "level").attr("x1", x1).attr("y1", y1).attr("x2", x2).attr("y2", y2);
  }

  /** Names at the right ends, moved apart; on a phone levels are named on their lines and curves below. */
  /** @param {any} svg @param {Picture} picture @param {import("./marks.js").Curve[]} named */
  drawNames(svg, picture, named) {
    const { left, right, top, bottom, width } = /** @type {import("./layout.js").Frame} */ (this.frame);
    const levels = (picture.levels ?? []).filter(
      (level) => level.name && this.Y(level.y) >= top - 1 && this.Y(level.y) <= bottom + 1,
    );
    const phone = width < PHONE;
    const labels = levels.map((level) => ({ y: this.Y(level.y), text: level.name, tone: "soft" }));
    for (const curve of phone ? [] : named) {
      const last = lastInside(curve, this.X, this.Y, right);
      if (last >= 0)
        labels.push({
          y: Math.max(top, Math.min(bottom, this.Y(curve.y[last]))),
          text: curve.name ?? "",
          tone: curve.tone,
        });
    }
    if (!phone)
      for (const one of apart(labels, top + 4, bottom))
        svg
          .append("text")
          .attr("class", `label ${one.tone}`)
          .attr("x", right + 8)
          .attr("y", one.y + 4.5)
          .text(one.text);
    else drawOnLines(svg, labels, right);
    for (const one of picture.uprights ?? []) {
      const near = this.X(one.x) > right - 8 * one.name.length;
      const text = svg
        .append("text")
        .attr("class", "note")
        .attr("x", this.X(one.x) + (near ? -5 : 5))
        .attr("y", top + 12);
      text.attr("text-anchor", near ? "end" : "start").text(one.name);
    }
    for (const note of picture.notes ?? []) {
      const text = svg
        .append("text")
        .attr("class", `note ${note.tone ?? ""}`)
        .attr("x", this.X(note.x) + 8);
      text.attr("y", this.Y(note.y) - 8).text(note.text);
      if (this.X(note.x) > left + 0.75 * (right - left))
        text.attr("x", this.X(note.x) - 8).attr("text-anchor", "end");
    }
    const keys = (phone ? named : []).map(({ name, tone, dash }) =>
      make("span", { className: `key ${tone}${dash ? " dashed" : ""}` }, name ?? ""),
    );
    this.legend.replaceChildren(...keys, ...(picture.colors ? [make("span", {}, picture.colors.words)] : []));
  }

  /** @param {any} svg @param {Picture} picture */
  drawHandle(svg, picture) {
    const handle = picture.handle;
    if (!handle) return;
    const grip = svg
      .append("circle")
      .attr("class", "handle vermilion")
      .attr("cx", this.X(handle.x))
      .attr("cy", this.Y(handle.y));
    grip
      .attr("r", 11)
      .attr("tabindex", 0)
      .attr("role", "button")
      .attr("aria-label", `${handle.name}; arrow keys move it`);
    const node = grip.node();
    const to = (/** @type {number} */ x, /** @type {number} */ y) => {
      const held = (/** @type {number} */ v, /** @type {import("./layout.js").AxisOf} */ a) =>
        Number(Math.min(a.high, Math.max(a.low, v)).toPrecision(3));
      this.move({ [handle.keys[0]]: held(x, picture.x), [handle.keys[1]]: held(y, picture.y) });
    };
    node.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => {
      this.dragging = true;
      e.preventDefault();
    });
    node.addEventListener("keydown", (/** @type {KeyboardEvent} */ e) => {
      const step = 0.02 * (picture.x.high - picture.x.low);
      const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key] ?? [
        0, 0,
      ];
      if (dx || dy) {
        e.preventDefault();
        e.stopPropagation();
        to(handle.x + dx * step, handle.y + dy * step);
        /** @type {SVGElement | null} */ (this.svg.querySelector("circle.handle"))?.focus();
      }
    });
    this.drag = to;
  }

  listen() {
    const place = (/** @type {PointerEvent} */ e) => {
      const box = this.svg.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    this.svg.addEventListener("pointermove", (e) => {
      const [x, y] = place(e);
      if (this.dragging && this.drag) this.drag(this.X.invert(x), this.Y.invert(y));
      else this.read(x);
    });
    addEventListener("pointerup", () => {
      this.dragging = false;
    });
    this.svg.addEventListener("pointerleave", () => this.read(NaN));
    this.svg.addEventListener("keydown", (e) => {
      const way = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[e.key];
      if (!way || !this.frame) return;
      e.preventDefault();
      const { left, right } = this.frame;
      const from = Number.isFinite(this.cursor) ? this.cursor : way > 0 ? left - (right - left) / 60 : right;
      this.read(Math.min(right, Math.max(left, from + (way * (right - left)) / 60)));
    });
  }

  /** Reads the curves over a place, in pixels. @param {number} place @param {boolean} [aloud] */
  read(place, aloud = true) {
    if (!this.frame || !this.picture || !this.hair) return;
    const { left, right, top, bottom } = this.frame;
    this.hair.selectAll("*").remove();
    this.cursor = place >= left - 1 && place <= right + 1 ? place : NaN;
    if (Number.isNaN(this.cursor)) return;
    const x = this.X.invert(place);
    const words = [];
    this.drawRule(this.hair, place, top, place, bottom);
    for (const curve of this.picture.curves) {
      if (!curve.label || !curve.name || curve.path) continue;
      const y = heightAt(curve.x, curve.y, x);
      if (Number.isFinite(this.Y(y)))
        this.hair
          .append("circle")
          .attr("class", `dot ${curve.tone}`)
          .attr("cx", place)
          .attr("cy", this.Y(y))
          .attr("r", 4.5);
      words.push(`${curve.name} ${shown(y, 4)}`);
    }
    if (aloud && words.length) this.say(`${this.picture.x.name.split(" (")[0]} ${shown(x)}: ${words.join("; ")}`);
  }
}

/** The last point of a curve that is drawn. @param {import("./marks.js").Curve} curve @param {any} X @param {any} Y @param {number} right */
function lastInside(curve, X, Y, right) {
  for (let i = curve.x.length - 1; i >= 0; i--)
    if (Number.isFinite(Y(curve.y[i])) && X(curve.x[i]) <= right + 1) return i;
  return -1;
}

/** Names on their lines, but those that another name would touch. @param {any} svg @param {import("./layout.js").Label[]} labels @param {number} right */
function drawOnLines(svg, labels, right) {
  /** @type {number[]} */ const taken = [];
  for (const one of labels) {
    if (taken.some((y) => Math.abs(y - one.y) < 16)) continue;
    taken.push(one.y);
    svg
      .append("text")
      .attr("class", "note")
      .attr("x", right - 2)
      .attr("y", one.y - 5)
      .attr("text-anchor", "end")
      .text(one.text);
  }
}
