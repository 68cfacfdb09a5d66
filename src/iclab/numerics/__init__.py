"""General numerical tools: checks of arguments, roots, minima and crossings."""

from iclab.numerics.annotations import Validated, checks_its_fields
from iclab.numerics.checks import (
    LEAST,
    MOST,
    Values,
    checked,
    checked_covariance,
    checked_laws,
    checked_number,
    divides,
    every,
    floats,
    increasing_grid,
    instance,
    magnitude,
    magnitude_number,
    nonnegative,
    numbers,
    one_of,
    pair,
    positive,
    require,
    share,
    whole_number,
    whole_numbers,
)
from iclab.numerics.constraints import (
    Ascending,
    Checked,
    Constraint,
    Count,
    Counts,
    Distinct,
    Finite,
    Floats,
    Fraction,
    Increasing,
    Kind,
    Magnitude,
    Magnitudes,
    Multiple,
    Nonnegative,
    Nonnegatives,
    OneOf,
    Positive,
    Positives,
    Real,
    Reals,
    Share,
    Whole,
    Wholes,
    constraints,
)
from iclab.numerics.crossings import intervals, with_turns
from iclab.numerics.minima import golden_section, least
from iclab.numerics.nearest import did_you_mean, plain
from iclab.numerics.roots import increasing_root
from iclab.numerics.streams import FIXED_STREAM

__all__ = [
    "FIXED_STREAM", "LEAST", "MOST", "Ascending", "Checked", "Constraint", "Count", "Counts", "Distinct",
    "Finite", "Floats", "Fraction", "Increasing", "Kind", "Magnitude", "Magnitudes", "Multiple", "Nonnegative",
    "Nonnegatives", "OneOf", "Positive", "Positives", "Real", "Reals", "Share", "Validated", "Values", "Whole",
    "Wholes", "checked", "checked_covariance", "checked_laws", "checked_number", "checks_its_fields",
    "constraints", "did_you_mean", "divides", "every", "floats", "golden_section", "increasing_grid",
    "increasing_root", "instance", "intervals", "least", "magnitude", "magnitude_number", "nonnegative",
    "numbers", "one_of", "pair", "plain", "positive", "require", "share", "whole_number", "whole_numbers",
    "with_turns",
]  # fmt: skip
