"""The functions of the page beside those of the library: arguments to try them at, and what the library answers."""

from iclab.explorer.mirrors.dynamics import DYNAMICS
from iclab.explorer.mirrors.mirror import Mirror
from iclab.explorer.mirrors.modes import MODES
from iclab.explorer.mirrors.numerics import NUMERICS
from iclab.explorer.mirrors.planning import PLANNING
from iclab.explorer.mirrors.pretraining import PRETRAINING

__all__ = ["DYNAMICS", "MODES", "NUMERICS", "PLANNING", "PRETRAINING", "Mirror"]
