"""The best scale of the softmax window, at three sizes. Promise: 15 ms each, nodes made before."""

import numpy as np
from measure import least_seconds, promised

from iclab.theory import softmax

if __name__ == "__main__":
    for dimension, length in ((5, 50), (3, 1000), (8, 10_000)):

        def ten(dimension: int = dimension, length: int = length) -> None:
            for noise in np.geomspace(0.1, 1, 10):
                softmax.best_scale(dimension=dimension, context_length=length, slope_variance=1.0, noise=float(noise))

        promised(f"best scale of softmax, d = {dimension}, N = {length}", 100 * least_seconds(ten), 15.0, "ms")
