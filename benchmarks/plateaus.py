"""All plateaus of a problem of dimension 512. Promise: under 1 s."""

import numpy as np
from measure import least_seconds, promised, seconds

from iclab import Regression
from iclab.theory.dynamics import plateaus
from iclab.theory.population import moments

if __name__ == "__main__":
    problem = Regression(eigenvalues=tuple(1 / np.arange(1.0, 513)), context_length=1024)
    first = seconds(lambda: plateaus(moments(problem)))
    print(f"first {first.cpu:.2f} s")
    promised("plateaus at D = 512", least_seconds(lambda: plateaus(moments(problem)), repeats=3), 1.0)
