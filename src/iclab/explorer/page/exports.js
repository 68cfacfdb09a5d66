/** What leaves the page: the figure as SVG and PNG, its numbers as CSV. */

const SVG = "http://www.w3.org/2000/svg";
const [INCHES, DOTS] = [7, 300]; // width on paper, and dots of an inch
const KEPT = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-size",
  "font-family",
  "font-weight",
  "stroke-linejoin",
  "text-anchor",
  "paint-order",
  "image-rendering",
];

/** The figure as a file of its own, in the colors that it is seen in. @param {SVGSVGElement} svg */
export function svgFile(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const [own, its] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  own.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of KEPT)
      if (style.getPropertyValue(name)) its[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "data-key"]) its[i].removeAttribute(name);
  });
  for (const one of copy.querySelectorAll(".hair, .handle")) one.remove();
  copy.setAttribute("width", `${INCHES}in`);
  copy.setAttribute("height", `${(INCHES * svg.clientHeight) / svg.clientWidth}in`);
  copy.setAttribute("xmlns", SVG);
  return new XMLSerializer().serializeToString(copy);
}

/** The figure in dots. @param {SVGSVGElement} svg @returns {Promise<Blob>} */
export async function pngFile(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgFile(svg))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = INCHES * DOTS;
  canvas.height = Math.round((canvas.width * svg.clientHeight) / svg.clientWidth);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob((blob) => done(/** @type {Blob} */ (blob)), "image/png"));
}

/** The numbers of all curves and dots, a row each. @param {import("./chart.js").Picture[]} pictures */
export function csvFile(pictures) {
  const rows = ["figure,curve,x,y"];
  pictures.forEach(({ curves, dots = [] }, number) => {
    for (const one of [...curves, ...dots]) {
      const name = quoted(one.name || one.key || "");
      for (let i = 0; i < one.x.length; i++) rows.push(`${number + 1},${name},${one.x[i]},${one.y[i]}`);
    }
  });
  return `${rows.join("\n")}\n`;
}

/** A text as a cell; one that a table would take for a formula begins with a quote. @param {string} text */
const quoted = (text) => `"${text.replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`;

/** Offers a file. @param {string} name @param {Blob} blob */
export function offer(name, blob) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
