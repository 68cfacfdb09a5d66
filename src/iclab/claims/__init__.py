"""Claims: what a study says of its witnesses, each judged on a labeled result by a number."""

from iclab.claims.general import Bounded, Limit, Misses, Share, Vanishes, Within, WithinErrors, above, below
from iclab.claims.networks import CrossesBetween, PeaksWhereFitEnds, RisesAndFalls, WhereKnown
from iclab.claims.pretraining import CloseMeans, Coverage, ExactWithoutRidge, LimitOfMeans
from iclab.claims.training import ExactInRate, LimitInSequences, RestsNearLevels
from iclab.claims.verdict import SLACK, Claim, Verdict, fitted_order

__all__ = [
    "SLACK", "Bounded", "Claim", "CloseMeans", "Coverage", "CrossesBetween", "ExactInRate", "ExactWithoutRidge",
    "Limit", "LimitInSequences", "LimitOfMeans", "Misses", "PeaksWhereFitEnds", "RestsNearLevels",
    "RisesAndFalls", "Share", "Vanishes", "Verdict", "WhereKnown", "Within", "WithinErrors", "above", "below",
    "fitted_order",
]  # fmt: skip
