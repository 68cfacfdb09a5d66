"""The page docs/speed.md: what was promised, what was measured, and what has become slower since the page before."""

import json
import os
import platform
import re
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from measure import copy_rate, product_rate

PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
SLOWER = 1.3

HEAD = """# Speed

Written by `make benchmarks`; seconds are CPU seconds, user and system, of one core, the least of some runs.
A ratio above 1 misses its promise. Where the processor is the same, what takes over {slower} times as long as on the
page before is said to be slower. Reasons for what is missed, and what was tried, are in `benchmarks/README.md`.

| | |
|---|---|
| date | {date} |
| processor | {processor} |
| versions | Python {python}, {versions} |
| work of others, processes a core | {load:.1f} |
| product of matrices, 768 × 768, float64 | {product:.1f} Gflop/s |
| copy, read and written | {copy:.1f} GB/s |

| what | promised | measured | ratio | share of the machine's limit | before |
|---|---|---|---|---|---|
"""


def processor() -> str:
    """The name of the processor."""
    try:
        return re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), flags=re.MULTILINE)[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def before() -> dict[str, float]:
    """Measured values of the page before, by what they are; none of another processor."""
    text = PAGE.read_text() if PAGE.exists() else ""
    if f"| processor | {processor()} |" not in text:
        return {}
    rows = re.findall(r"^\| (.+?) \| [≤≥] .+? \| ([\d.e+-]+) .*? \| [\d.]+ \|", text, flags=re.MULTILINE)
    return {what: float(value) for what, value in rows}


def write(notes: Path, load: float) -> None:
    """Write the page from the notes of benchmarks; `load` was that of the machine before they began."""
    known, lines = before(), []
    for note in map(json.loads, notes.read_text().splitlines()):
        value, limit, least = note["value"], note["limit"], note["least"]
        ratio = limit / value if least else value / limit
        earlier = known.get(note["what"], value)
        change = earlier / value if least else value / earlier
        told = f"{earlier:.3g}: {change:.1f} × slower" if change > SLOWER else f"{earlier:.3g}"
        lines.append(
            f"| {note['what']} | {'≥' if least else '≤'} {limit:g} {note['unit']} | {value:.3g} {note['unit']} "
            f"| {ratio:.2f} | {note['share'] or '–'} | {told if note['what'] in known else '–'} |"
        )
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "jax"))
    head = HEAD.format(
        slower=SLOWER, date=datetime.now(UTC).date(), processor=processor(), python=platform.python_version(),
        versions=versions, load=load / (os.cpu_count() or 1), product=product_rate() / 1e9, copy=copy_rate() / 1e9,
    )  # fmt: skip
    PAGE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"page: {PAGE}")
