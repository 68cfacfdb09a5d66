"""Pages of the explorer in a browser: what tests ask of them."""

import shutil
from typing import Any

import pytest

from tests.browser import Browser

DRIVEN = all(map(shutil.which, ("chromedriver", "chromium")))
NEEDS_BROWSER = pytest.mark.skipif(not DRIVEN, reason="needs chromium and chromedriver, of the system")

SET = "return window.explorer.set(arguments[0], arguments[1]);"
DROP = """const [name, text] = arguments;
return window.explorer.app.take(new File([text], name)).then(() =>
  [document.getElementById('problem').textContent, document.getElementById('answer').textContent]);"""
TEXT = """const words = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), parent = walker.currentNode.parentElement;
  if (!text || parent.closest('script, style, noscript, .unseen, .skip, math, [hidden], .colors')) continue;
  if (!parent.getClientRects().length || getComputedStyle(parent).visibility === 'hidden') continue;
  words.push([text.slice(0, 40), parseFloat(getComputedStyle(parent).fontSize)]);
}
return words;"""
CONTRAST = """const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
  return .2126 * r + .7152 * g + .0722 * b; };
const parse = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
const ground = one => { for (let at = one; at; at = at.parentElement) { const c = getComputedStyle(at).backgroundColor;
  if (!/, 0\\)$/.test(c) && c !== 'transparent') return parse(c); } return parse(getComputedStyle(document.body).backgroundColor); };
const found = [];
for (const one of document.querySelectorAll('body *')) {
  if (!one.getClientRects().length || one.closest('.faint, [hidden], noscript, .unseen, .skip, defs')) continue;
  const own = [...one.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
  const style = getComputedStyle(one);
  if (own) found.push([one.textContent.slice(0, 30), ratio(parse(one.closest('svg') ? style.fill : style.color), ground(one))]);
  else if (one.matches('path.curve, line.curve')) found.push(['curve ' + one.getAttribute('class'), ratio(parse(style.stroke), ground(one))]);
}
return found;"""  # noqa: E501
BEYOND = """const wide = document.documentElement.clientWidth;
const boxes = [...document.querySelectorAll('body *')]
  .filter(one => one.getClientRects().length && !one.closest('svg, .skip, .unseen, nav, pre, .formula, math'));
return [document.documentElement.scrollWidth - wide,
        boxes.filter(one => one.getBoundingClientRect().right > wide + 1).map(one => one.outerHTML.slice(0, 99))];"""
OVERLAPS = """const hits = [];
for (const svg of document.querySelectorAll('.chart:not([hidden]) svg')) {
  const texts = [...svg.querySelectorAll('text')].filter(one => one.textContent.trim() && !one.matches('.note'));
  const boxes = texts.map(one => one.getBoundingClientRect());
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), up = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 2 && up > 4) hits.push(texts[i].textContent + ' / ' + texts[i + 1 + j].textContent); }));
  const frame = svg.getBoundingClientRect();
  boxes.forEach((a, i) => { if (a.right > frame.right + 1 || a.left < frame.left - 1) hits.push('beyond: ' + texts[i].textContent); });
}
return hits;"""  # noqa: E501


def said(browser: Browser, name: str) -> str:
    """The text of an element of the page."""
    return browser.ask("return document.getElementById(arguments[0]).textContent", name)


def shown(browser: Browser, view: str, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """The page at a state, once it is drawn."""
    return browser.ask(SET, view, state or {})
