"""The published low-rank case, whole: D = 8, H = 9, R = 4, 80000 sequences, 20001 epochs of the unrestricted layer.

Everything after the imports counts, compilation too. Promise: under 60 s.
"""

import numpy as np
from measure import promised, seconds

from iclab import Regression
from iclab.outcomes import Trajectory
from iclab.published import context_length, eigenvalues, separate_start, separate_units
from iclab.simulation.keys import key_of
from iclab.simulation.linear.contexts import draw
from iclab.simulation.linear.descent import on_statistics
from iclab.simulation.linear.statistics import statistics

UNITS = separate_units(0.02, context_length(32))


def curve(seed: int) -> Trajectory:
    problem = Regression(eigenvalues=eigenvalues(8), context_length=context_length(32))
    start = separate_start(8, 9, 4, initial=5e-3, units=UNITS, rng=np.random.default_rng(seed))
    start = start.unrestricted()
    contexts = draw(problem, 80_000, key=key_of(seed))
    return on_statistics(statistics(contexts, start), start, rate=UNITS.rate, steps=range(0, 20_001, 50))


if __name__ == "__main__":
    found: list[Trajectory] = []
    spent = seconds(lambda: found.append(curve(0)))
    levels = ", ".join(f"{loss:.4f}" for loss in found[0].loss[::40])
    print(f"loss every 2000 epochs {levels}")
    promised("published low-rank case, R = 4, whole", spent.cpu, 60.0)
