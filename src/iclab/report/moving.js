"use strict";
// Figures whose study has a view of the explorer open it in their place; in print, and without scripts, they stay.
const page = JSON.parse(document.getElementById("explorer").textContent);
for (const figure of document.querySelectorAll("figure[data-state]")) {
  const button = figure.querySelector("button");
  button.hidden = false;
  button.addEventListener("click", () => {
    const opened = figure.querySelector("iframe");
    figure.classList.toggle("moves", !opened);
    button.textContent = opened ? "Move this figure" : "Back to the figure as it was computed";
    if (opened) {
      opened.remove();
      return;
    }
    const frame = document.createElement("iframe");
    frame.name = `${figure.dataset.state}&embed=1`;
    frame.title = `Explorer of ${figure.dataset.view}`;
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.srcdoc = page;
    figure.append(frame);
  });
}
