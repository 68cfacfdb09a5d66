"""Data in the place of a spectrum: the flags --inputs and --covariance, and the theory of what they hold."""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from iclab.commands.studies import named
from iclab.commands.terminal import note, print_table
from iclab.commands.verdicts import SCHEMA
from iclab.numerics import require
from iclab.problem import SHRINKAGES, InputSample, Regression, given_covariance, measured_inputs, read_inputs
from iclab.study import Study

if TYPE_CHECKING:
    from iclab.report.sampling import Bands

__all__ = ["FLAGS", "NAMES", "measured", "measured_case", "print_bands", "sampled", "shortened", "theory_alone"]

FLAGS = """Data in the place of a spectrum: --inputs X.npy (or .csv, .parquet, .safetensors:NAME, .npz:NAME), an
example in each row, --uncentered to keep their mean, --shrinkage none|linear; or --covariance C.npy."""
NAMES = ("--inputs", "--covariance", "--uncentered", "--shrinkage")
LARGE = 200  # dimensions from which on memory and time are said first
_KINDS: dict[str, dict[str, Any]] = {"--uncentered": {"action": "store_true"}, "--shrinkage": {"default": "none"}}
SECONDS = 3e-10  # of one core for each of D³ products of a decomposition
DECOMPOSITIONS = 8.0  # of D × D numbers that are held at once, in units of these
ALONE = 4e9  # bytes of the statistics of a drawn training set, above which theory answers alone


def measured(words: Sequence[str]) -> tuple[list[str], InputSample | None]:
    """The flags with the spectrum of the data in their place, and the data; all flags where there are none.

    Raises ValueError for data beside a spectrum, and for what has no covariance.
    """
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in NAMES:
        early.add_argument(name, **_KINDS.get(name, {}))
    try:
        asked, rest = early.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}. {FLAGS}") from None
    given = [name for name in ("inputs", "covariance") if getattr(asked, name) is not None]
    if not given:
        changed = [flag for flag in ("--uncentered", "--shrinkage") if flag in words]
        require(not changed, f"{' and '.join(changed)} must come with --inputs; got none. {FLAGS}")
        return list(words), None
    stated = [word for word in rest if word.partition("=")[0].endswith("eigenvalues") and "task" not in word]
    require(
        len(given) == 1 and not stated,
        f"the spectrum must be stated once; got {', '.join(['--' + name for name in given] + stated)}. Leave one.",
    )
    require(
        asked.shrinkage in SHRINKAGES, f"--shrinkage must be one of {', '.join(SHRINKAGES)}; got {asked.shrinkage}."
    )
    matrix = read_inputs(Path(getattr(asked, given[0])))
    _said_first(matrix)
    if given == ["covariance"]:
        sample = given_covariance(matrix)
    else:
        sample = measured_inputs(matrix, centered=not asked.uncentered, shrinkage=asked.shrinkage)
    for text in sample.notes:
        note(text)
    return [*rest, "--problem.eigenvalues", *(repr(float(value)) for value in sample.eigenvalues)], sample


def _said_first(matrix: np.ndarray) -> None:
    """Memory and time of a large covariance, before they are taken. Raises ValueError where they do not suffice."""
    if matrix.ndim != 2 or matrix.shape[1] < LARGE:
        return
    rows, size = matrix.shape
    held = 8.0 * (rows * size + DECOMPOSITIONS * size * min(rows, size))
    seconds = SECONDS * (size * min(rows, size) ** 2 * 10 + rows * size * min(rows, size))
    note(f"inputs of {size} dimensions: their covariance takes about {held / 1e9:.2g} GB and {seconds:.1g} s")
    try:
        free = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    require(
        held <= free,
        f"the covariance of the inputs must fit into {free / 1e9:.3g} GB of memory; got {held / 1e9:.3g} GB for "
        f"{size} dimensions. Project the inputs first, or give their spectrum as --problem.eigenvalues.",
    )


def shortened(words: Sequence[str]) -> list[str]:
    """The words with --eigenvalues for --problem.eigenvalues, and so for every field of the problem."""
    return [word.replace("--problem.", "--", 1) if word.startswith("--") else word for word in words]


@dataclass(frozen=True)
class Alone:
    """The parts of a case that theory needs where it answers alone."""

    problem: Annotated[Regression, tyro.conf.arg(name="")]
    heads: int | None = None
    initial: float | None = None
    json: bool = False


def measured_case(case: Any, sample: InputSample | None) -> Any:
    """The same case, whose problem knows the data that it was measured on."""
    return case if sample is None else replace(case, problem=case.problem.measured_on(sample))


def theory_alone(words: Sequence[str], sample: InputSample) -> int | None:
    """Print levels and drop times where no simulation of the inputs fits; None where one does.

    Statistics of drawn sequences hold the square of features that grow as D³. Returns the exit code. Raises
    ValueError for a study whose cases have no problem of regression.
    """
    study, size = named(words[0] if words else ""), len(sample.eigenvalues)
    require(
        isinstance(getattr(study.quick, "problem", None), Regression),
        f"--inputs must go to a study whose case has a spectrum; got {study.name}. See `iclab run "
        f"{study.name} --help`.",
    )
    features = size * (size + 1) * (size + 2) / 2
    if 8 * features**2 <= ALONE:
        return None
    note(
        f"descent on drawn sequences must fit {ALONE / 1e9:g} GB; got {8 * features**2 / 1e9:.2g} GB for {size} "
        f"dimensions, with {features:.2g} features. Theory answers alone."
    )
    asked = tyro.cli(Alone, args=shortened(words[1:]), prog="iclab run", return_unknown_args=True)[0]
    given = {name: getattr(asked, name) for name in ("heads", "initial") if getattr(asked, name) is not None}
    case = measured_case(replace(study.quick, problem=asked.problem, **given), sample)
    found = sampled(study, case)
    if asked.json:
        plain = {"schema": SCHEMA, "study": study.name, "case": asdict(case), "seeds": [], "seconds": 0.0}
        print(json.dumps(plain | {"verdicts": [], "numbers": None, "figure": None, "inputs": found.plain()}))
    else:
        print_bands(found)
    return 0


def sampled(study: Study, case: Any) -> "Bands":
    """Intervals that sampling leaves for the levels and drop times of a case measured on data."""
    from iclab.report.sampling import bands

    return bands(study, case)


def print_bands(found: "Bands") -> None:
    """A table of levels and drop times, with what the sampling of the rows leaves open."""
    header = ("theory of these inputs", "value", "95 % of the spectrum's sampling")
    print_table(header, found.words)
    if found.tails is not None:
        print(
            f"with the fourth moments of these rows the least loss is {found.tails:.3g} times that of normal inputs"
        )
