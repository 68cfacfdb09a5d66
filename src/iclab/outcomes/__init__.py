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
from iclab.outcomes.training import LossCurve, Trajectory
from iclab.outcomes.view import Groups, View

__all__ = [
    "VOCABULARY",
    "Errors",
    "EstimatorErrors",
    "ExpectedLoss",
    "FittedErrors",
    "GammaRuns",
    "Groups",
    "HeadRuns",
    "Labelled",
    "LossCurve",
    "LossSample",
    "MatrixCurves",
    "ModeCurves",
    "ModeDescent",
    "Quantity",
    "SingleHeadCurves",
    "SmallNoiseLoss",
    "Trajectory",
    "TransformerCurves",
    "View",
    "labelled",
    "parts",
    "quantities",
    "quantity",
    "unlabelled",
    "vocabulary",
]
