"""Outcomes of witnesses: arrays that know their symbol, their axes and their unit."""

from typing import TYPE_CHECKING

from iclab.moved import refusal
from iclab.outcomes.labeled import (
    VOCABULARY,
    Labeled,
    Quantity,
    Variable,
    labeled,
    parts,
    quantities,
    quantity,
    shared,
    unlabeled,
    variables,
    vocabulary,
)
from iclab.outcomes.modes import (
    ExpectedLoss,
    GammaRuns,
    HeadRuns,
    MatrixCurves,
    ModeCurves,
    ModeDescent,
    SingleHeadCurves,
    SmallNoiseLoss,
    TransformerCurves,
)
from iclab.outcomes.pretraining import Errors, EstimatorErrors, FittedErrors
from iclab.outcomes.training import LossCurve, Trajectory
from iclab.outcomes.view import Groups, View

__all__ = [
    "VOCABULARY", "Errors", "EstimatorErrors", "ExpectedLoss", "FittedErrors", "GammaRuns", "Groups", "HeadRuns",
    "Labeled", "LossCurve", "MatrixCurves", "ModeCurves", "ModeDescent", "Quantity", "SingleHeadCurves",
    "SmallNoiseLoss", "Trajectory", "TransformerCurves", "Variable", "View", "labeled", "parts", "quantities",
    "quantity", "shared", "unlabeled", "variables", "vocabulary",
]  # fmt: skip

if not TYPE_CHECKING:  # else every name would be one
    __getattr__ = refusal(__name__)
