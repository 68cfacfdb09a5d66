"""Outcomes of witnesses: arrays that know their symbol, their axes and their unit."""

from iclab.outcomes.labelled import (
    VOCABULARY,
    Labelled,
    Quantity,
    labelled,
    parts,
    quantities,
    quantity,
    unlabelled,
    vocabulary,
)
from iclab.outcomes.modes import (
    ExpectedLoss,
    GammaRuns,
    HeadRuns,
    LossSample,
    MatrixCurves,
    ModeCurves,
    ModeDescent,
    SingleHeadCurves,
    SmallNoiseLoss,
    TransformerCurves,
)
from iclab.outcomes.pretraining import Errors, EstimatorErrors, FittedErrors
from iclab.outcomes.training import DropCounts, HeadCurves, Levels, LossCurve, SearchEnds, Trajectory, ValueCurves
from iclab.outcomes.view import Groups, View

__all__ = [
    "VOCABULARY",
    "DropCounts",
    "Errors",
    "EstimatorErrors",
    "ExpectedLoss",
    "FittedErrors",
    "GammaRuns",
    "Groups",
    "HeadCurves",
    "HeadRuns",
    "Labelled",
    "Levels",
    "LossCurve",
    "LossSample",
    "MatrixCurves",
    "ModeCurves",
    "ModeDescent",
    "Quantity",
    "SearchEnds",
    "SingleHeadCurves",
    "SmallNoiseLoss",
    "Trajectory",
    "TransformerCurves",
    "ValueCurves",
    "View",
    "labelled",
    "parts",
    "quantities",
    "quantity",
    "unlabelled",
    "vocabulary",
]
