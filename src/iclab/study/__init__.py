"""A study: one question, put to theory and simulation, whose answers are labeled here and nowhere else."""

from iclab.outcomes import View
from iclab.study.labels import PER_SEED, SCHEMA, Outcomes, case_json, dataset_at, joined, labeled_groups, seed_numbers
from iclab.study.result import Result, Verdicts
from iclab.study.study import Axes, Cost, Figure, Formula, Key, Preset, Study

__all__ = [
    "PER_SEED", "SCHEMA", "Axes", "Cost", "Figure", "Formula", "Key", "Outcomes", "Preset", "Result", "Study",
    "Verdicts", "View", "case_json", "dataset_at", "joined", "labeled_groups", "seed_numbers",
]  # fmt: skip
