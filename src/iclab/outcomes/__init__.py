"""What witnesses return: frozen arrays whose fields know their symbol, their axes and their unit."""

from iclab.outcomes.labels import (
    Measured,
    Quantity,
    Table,
    answers,
    half_drops,
    losses,
    quantities,
    quantity,
    unlabelled,
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

__all__ = [
    "DropCounts",
    "Errors",
    "EstimatorErrors",
    "ExpectedLoss",
    "FittedErrors",
    "GammaRuns",
    "HeadCurves",
    "HeadRuns",
    "Levels",
    "LossCurve",
    "LossSample",
    "MatrixCurves",
    "Measured",
    "ModeCurves",
    "ModeDescent",
    "Quantity",
    "SearchEnds",
    "SingleHeadCurves",
    "SmallNoiseLoss",
    "Table",
    "Trajectory",
    "TransformerCurves",
    "ValueCurves",
    "answers",
    "half_drops",
    "losses",
    "quantities",
    "quantity",
    "unlabelled",
]
