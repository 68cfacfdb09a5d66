"""Population gradient flow of rank-four heads, D = 8, H = 9, over the published span. Promise: under 0.6 s."""

import numpy as np
from measure import least_seconds, promised, seconds

from iclab import Regression
from iclab.published import context_length, eigenvalues, separate_start, separate_units
from iclab.theory.dynamics import separate_flow
from iclab.theory.population import moments

UNITS = separate_units(0.02, context_length(32))

if __name__ == "__main__":
    law = moments(Regression(eigenvalues=eigenvalues(8), context_length=context_length(32)))
    start = separate_start(8, 9, 4, initial=5e-3, units=UNITS, rng=np.random.default_rng(0))
    time = UNITS.time(np.linspace(0, 20_000, 1001))
    first = seconds(lambda: separate_flow(law, start, time))
    again = least_seconds(lambda: separate_flow(law, start, time), repeats=3)
    print(f"first {first.cpu:.2f} s")
    promised("flow of rank-four heads, D = 8, H = 9, over the published span", again, 0.6)
