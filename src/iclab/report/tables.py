"""Tables of a page: all numbers of a result, its symbols, its case, and verdicts by what they measure."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from iclab.claims import Verdict

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Measured", "Row", "csv", "measured", "parameters", "plain", "symbols", "table", "unbroken"]


def table(result: "xr.DataTree") -> "pd.DataFrame":
    """All numbers of a result as one long table: group, variable, one column for each axis, value."""
    import pandas as pd

    tables = []
    for node in result.subtree:
        for name, array in node.to_dataset(inherit=False).data_vars.items():
            # a single number has no axes, and no data frame of its own
            one = pd.DataFrame({"value": [array.item()]}) if array.ndim == 0 else _frame(array)
            one.insert(0, "variable", name)
            one.insert(0, "group", node.path.lstrip("/"))
            tables.append(one)
    whole = pd.concat(tables, ignore_index=True)
    return whole.reindex(columns=[*(column for column in whole.columns if column != "value"), "value"])


def csv(result: "xr.DataTree") -> bytes:
    """The table of all numbers of a result as CSV, with twelve digits."""
    return table(result).to_csv(index=False, float_format="%.12g").encode()


def symbols(result: "xr.DataTree") -> list[tuple[str, str, str]]:
    """Symbol, words and unit of each variable of a result, each once."""
    found = (
        (str(array.attrs.get("symbol", "")), str(array.attrs.get("long_name", "")), str(array.attrs.get("units", "")))
        for node in result.subtree
        for array in node.to_dataset(inherit=False).variables.values()
    )
    return sorted({one for one in found if one[0]}, key=lambda one: (one[0].lower(), one))


@dataclass(frozen=True)
class Row:
    """A verdict without the unit of its numbers."""

    verdict: Verdict
    number: str
    bound: str
    noticed: str


@dataclass(frozen=True)
class Measured:
    """Verdicts on one measure, which is stated once, with its unit."""

    measure: str
    rows: Sequence[Row]


def measured(verdicts: Sequence[Verdict]) -> list[Measured]:
    """Verdicts by what they measure, in the order in which measures come."""
    order = list(dict.fromkeys((verdict.measure, verdict.relative) for verdict in verdicts))
    ordered = sorted(verdicts, key=lambda verdict: order.index((verdict.measure, verdict.relative)))
    return [
        Measured(measure + (", %" if relative else ""), [_row(verdict) for verdict in several])
        for (measure, relative), several in groupby(ordered, key=lambda one: (one.measure, one.relative))
    ]


def _row(verdict: Verdict) -> Row:
    noticed = ", ".join(f"{name.partition('/')[2]} {one}" for name, one in verdict.notices.items())
    return Row(verdict, verdict.number.removesuffix(" %"), verdict.bound.removesuffix(" %"), noticed)


def plain(text: str) -> str:
    """Text with numbers in one style: 0.0241 for 2.41e-02, and 2.4 · 10⁻⁷ for smaller ones."""
    return re.sub(r"(\d\.?\d*)e([+-]\d+)", _plain_number, text)


def _plain_number(match: re.Match[str]) -> str:
    digits, power = match[1], int(match[2])
    if -4 <= power < 6:
        return f"{float(match[0]):.{max(0, len(digits.partition('.')[2]) - power)}f}"
    return f"{digits} · 10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def unbroken(text: str) -> str:
    """Text whose lines do not break between a sign or a unit and its number."""
    return re.sub(r"(?<=[≤≥=≈]) (?=\S)|(?<=\w) (?==)|(?<=\d) (?=[%τ])", "\N{NO-BREAK SPACE}", text)


def parameters(case: str) -> list[tuple[str, str]]:
    """A case, as JSON, as names of flags and values, nested fields with a dot."""
    return list(_parameters(json.loads(case)))


def _parameters(case: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in case.items():
        if isinstance(value, dict):
            yield from _parameters(value, f"{prefix}{key}.")
        else:
            shown = ", ".join(map(_shown, value)) if isinstance(value, list) else _shown(value)
            yield f"{prefix}{key}".replace("_", "-"), shown


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _frame(array: "xr.DataArray") -> "pd.DataFrame":
    return array.rename("value").to_dataframe().reset_index()
