"""Claims: what a study says of its witnesses, each judged on a labeled result as a measurement.

An outcome has a stated rate of false alarms, an interval, and a resolution: the smallest error of theory that the
very result would have exposed.
"""

from typing import TYPE_CHECKING

from iclab.claims.agreement import Agrees
from iclab.claims.answers import answered
from iclab.claims.bounds import Bounded, Coverage, Misses, Share, above, below
from iclab.claims.judgement import ALARM, CONFIDENCE, Deviations, Judgement, judged, judged_share
from iclab.claims.limits import ExactInRate, Tends
from iclab.claims.networks import CrossesBetween, PeaksWhereFitEnds, RisesAndFalls, WhereKnown
from iclab.claims.remedies import excused
from iclab.claims.resolution import Resolution, finest
from iclab.claims.training import RestsAtLevels, RestsTend
from iclab.claims.verdict import Claim, Verdict, asked, noticing, verdict_of
from iclab.moved import refusal

__all__ = [
    "ALARM", "CONFIDENCE", "Agrees", "Bounded", "Claim", "Coverage", "CrossesBetween", "Deviations", "ExactInRate",
    "Judgement", "Misses", "PeaksWhereFitEnds", "Resolution", "RestsAtLevels", "RestsTend", "RisesAndFalls", "Share",
    "Tends", "Verdict", "WhereKnown", "above", "answered", "asked", "below", "excused", "finest", "judged",
    "judged_share",
    "noticing", "verdict_of",
]  # fmt: skip

if not TYPE_CHECKING:  # else every name would be one
    __getattr__ = refusal(__name__)
