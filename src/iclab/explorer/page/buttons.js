/** The buttons under the figure, and files that are opened or dropped. */
import { openCommand } from "./commands.js";
import { byId } from "./elements.js";
import { csvFile, offer, pngFile, svgFile } from "./exports.js";
import { address, usual } from "./state.js";

/** @typedef {import("./app.js").App} App */

const PINNED = 8; // curves of a chart, at most

/** Gives every button its act. @param {App} app */
export function bindButtons(app) {
  const file = /** @type {HTMLInputElement} */ (byId("file"));
  file.onchange = () => {
    app.take(file.files?.[0]);
    file.value = "";
  };
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", (e) => {
    e.preventDefault();
    app.take(e.dataTransfer?.files[0]);
  });
  const figures = () =>
    app.charts
      .filter(({ box }) => !box.hidden)
      .map(({ svg }, i) => ({ svg, name: i ? `${app.view}-${i + 1}` : app.view }));
  const acts = {
    pin: () => pin(app),
    reset: () => {
      app.pinned = [];
      app.choose(app.view, usual(app.known.controls));
    },
    link: () => copy(linkOf(app)),
    open: () => file.click(),
    svg: () =>
      figures().forEach(({ svg, name }) => offer(`${name}.svg`, new Blob([svgFile(svg)], { type: "image/svg+xml" }))),
    png: async () => {
      for (const { svg, name } of figures()) offer(`${name}.png`, await pngFile(svg));
    },
    csv: () => offer(`${app.view}.csv`, new Blob([csvFile(app.pictures())], { type: "text/csv" })),
    scheme: () => {
      const root = document.documentElement;
      root.dataset.scheme = getComputedStyle(root).getPropertyValue("--dark").trim() === "1" ? "light" : "dark";
    },
  };
  for (const [id, act] of Object.entries(acts)) byId(id).onclick = act;
}

/** Keeps grey copies of the curves of the state. @param {App} app */
function pin(app) {
  const plain = {
    key: undefined,
    tone: "soft",
    width: 2,
    dash: "1 5",
    label: false,
    low: undefined,
    high: undefined,
  };
  app.pinned = (app.seen?.charts ?? []).map(({ curves }) => {
    const kept = curves.filter(({ key }) => key).slice(0, PINNED);
    return kept.map((curve) => ({ ...curve, ...plain, name: curve.name && `pinned: ${curve.name}` }));
  });
  app.render(false);
}

/** The address of the state; in a frame, which has none that others could open, the command. @param {App} app */
function linkOf(app) {
  if (location.protocol === "about:") return openCommand(app.view, app.known.controls, app.state);
  return `${location.href.split("#")[0]}#${address(app.view, app.known.controls, app.state)}`;
}

/** @param {string} link */
async function copy(link) {
  try {
    await navigator.clipboard.writeText(link);
    byId("reading").textContent = "The link is copied.";
  } catch {
    byId("reading").textContent = link;
  }
}
