"""The battery of refusals: every constrained field of every case, and of its parts, refuses what it must, by name."""

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from iclab.numerics import (
    Ascending,
    Checked,
    Constraint,
    Distinct,
    Floats,
    Kind,
    Multiple,
    OneOf,
    Real,
    Reals,
    Share,
    Whole,
    Wholes,
    constraints,
)
from iclab.studies import STUDIES

NO_NUMBERS = ("many", None, [1.0, [2.0]], 1j)


def refused(mark: Constraint) -> Iterator[tuple[Any, str]]:
    """Values that a constraint refuses, and what its message says must hold."""
    if isinstance(mark, Whole):
        must = f"must be a whole number >= {mark.least}; got "
        yield from ((value, must) for value in (mark.least - 1, mark.least + 0.5, True, math.nan, *NO_NUMBERS))
    elif isinstance(mark, Wholes):
        yield (), "must hold at least one number >= 1; got none"
        yield from (
            ((1, value), "must be whole numbers >= 1; got ") for value in (0, -1, 1.5, True, math.nan, "many", None)
        )
    elif isinstance(mark, Real):
        several = isinstance(mark, Reals)
        limits = "finite and " * (not mark.infinite)
        bound = f"> {mark.above:g}" if mark.above > -math.inf else f">= {mark.at_least:g}"
        low = mark.above if mark.above > -math.inf else math.nextafter(mark.at_least, -math.inf)
        must = f"must be {limits}{bound}; got " if low > -math.inf else "must be finite; got "
        values = [*([low] if low > -math.inf else []), math.nan, -math.inf, *([] if mark.infinite else [math.inf])]
        yield from (((1.0, value) if several else value, must) for value in values)
        yield from (
            ((value,) if several else value, "must be a number or an array of numbers; got ") for value in ("a",)
        )
    elif isinstance(mark, Share):
        yield from ((value, r"must be in (0, 1]; got ") for value in (0.0, -0.5, 1.5))
        yield math.nan, "must be "
    elif isinstance(mark, OneOf):
        yield from ((value, f"must be one of {', '.join(mark.choices)}; got ") for value in ("nonsense", 3, None))
    elif isinstance(mark, Kind):
        yield from ((value, f"must be a {mark.of.__name__}; got ") for value in (object(), None, 1.0))
    elif isinstance(mark, Multiple):
        yield from (
            (value, f"must be a whole number >= {mark.of}; got ") for value in (0, mark.of - 1, math.nan, "many")
        )
        yield 2 * mark.of + 1, f"must be a multiple of {mark.of}, {mark.parts}; got "
    elif isinstance(mark, Ascending):
        yield from ((value, "must be ") for value in ((), (math.nan,), (math.inf,), "many"))
        yield (-1.0, 1.0), "must be finite and >= 0; got "
        yield from ((value, "must increase strictly; got ") for value in ((1.0, 1.0), (2.0, 1.0)))
    elif isinstance(mark, Floats):
        bound = f" and >= {mark.at_least:g}" if mark.at_least > -math.inf else ""
        low = [(math.nextafter(mark.at_least, -math.inf),)] if bound else []
        yield from ((value, f"must be finite{bound}; got ") for value in ((), (math.nan,), (math.inf,), *low))
    elif isinstance(mark, Distinct):
        yield (1, 1), "must differ; got (1"
    else:
        raise AssertionError(f"the battery knows no values that {mark} refuses")


def battery(case: Any) -> Iterator[tuple[Any, str, Any, str]]:
    """(case or part of it, field, value, message) for each constraint of a case and of its parts."""
    for name, marks in constraints(type(case)).items():
        for mark in marks:
            for value, must in refused(mark):
                yield case, name, value, f"{name} {must}"
    for entry in fields(case):
        if isinstance(part := getattr(case, entry.name), Checked):
            yield from battery(part)


@pytest.mark.parametrize("study", list(STUDIES))
def test_cases_refuse_by_name_what_their_constraints_exclude(study: str) -> None:
    for case, name, value, message in battery(STUDIES[study].quick):
        try:
            replace(case, **{name: value})
        except ValueError as error:
            assert str(error).startswith(message), f"{name}={value!r}: {error}"  # noqa: PT017
        else:
            raise AssertionError(f"{name}={value!r} is taken")


def numbers(case: Any) -> Iterator[tuple[Any, str]]:
    """Every field of a case and of its parts that holds a number or several."""
    for entry in fields(case):
        value = getattr(case, entry.name)
        if is_dataclass(value):
            yield from numbers(value)
        elif isinstance(value, int | float | tuple) and not isinstance(value, bool):
            yield case, entry.name


@pytest.mark.parametrize("study", list(STUDIES))
def test_no_field_of_a_case_takes_what_is_no_number(study: str) -> None:
    for case, name in numbers(STUDIES[study].quick):
        several = isinstance(getattr(case, name), tuple)
        for nothing in (math.nan, "many"):
            with pytest.raises(ValueError, match="must"):
                replace(case, **{name: (nothing,) if several else nothing})


@pytest.mark.parametrize("study", list(STUDIES))
def test_every_constraint_is_stated_in_help(study: str, capsys: pytest.CaptureFixture) -> None:
    from iclab.commands.main import main

    with pytest.raises(SystemExit):
        main(["run", study, "--help"])
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, marks in constraints(type(case := STUDIES[study].quick)).items():
        if is_dataclass(getattr(case, name)):  # its own fields are shown
            continue
        assert f"({' and '.join(map(str, marks))}; default: " in shown
