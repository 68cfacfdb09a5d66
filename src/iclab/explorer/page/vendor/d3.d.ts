/** The parts of d3 that the page uses. */
interface Scale {
  (value: number): number;
  invert(place: number): number;
  ticks(count?: number): number[];
  domain(ends: number[]): Scale;
  range(ends: number[]): Scale;
}
interface Axis {
  (group: any): void;
  tickValues(values: number[]): Axis;
  tickFormat(words: (value: number) => string): Axis;
  tickSizeOuter(size: number): Axis;
  tickPadding(size: number): Axis;
}
interface Path {
  (points: ArrayLike<number>): string | null;
  x(of: (index: number) => number): Path;
  y(of: (index: number) => number): Path;
  y0(of: (index: number) => number): Path;
  y1(of: (index: number) => number): Path;
  defined(of: (index: number) => boolean): Path;
  digits(count: number): Path;
}
export declare const d3: {
  scaleLinear(): Scale;
  scaleLog(): Scale;
  line(): Path;
  area(): Path;
  axisBottom(scale: Scale): Axis;
  axisLeft(scale: Scale): Axis;
  select(node: Element): any;
};
