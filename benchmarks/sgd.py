"""CPU seconds of one-pass SGD, simulated and expected; run it on one core:

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" python benchmarks/sgd.py
"""

from time import process_time

import jax
import numpy as np

from iclab import Regression
from iclab.simulation.linear.scalar_sgd import gamma_sgd
from iclab.theory import population, sgd

REFERENCE = Regression(eigenvalues=(1.5, 0.6), context_length=5, noise=0.2)


def simulated() -> float:
    """20000 runs of 120 steps, 8 contexts each, float64, compilation included."""
    began = process_time()
    keys = jax.random.split(jax.random.key(0), 20_000)
    runs = gamma_sgd(REFERENCE, rate=0.01, batch=8, steps=120, every=1, key=keys)
    loss = population.loss(population.moments(REFERENCE), runs.gamma[:, -1])
    took = process_time() - began
    expected = sgd.expected_loss(REFERENCE, rate=0.01, batch=8, steps=120).loss[-1]
    print(f"  loss at the end {loss.mean():.5f} ± {loss.std() / np.sqrt(len(loss)):.5f}, expected {expected:.5f}")
    return took


def expected() -> float:
    """Expected loss of 1000 steps in 64 dimensions."""
    problem = Regression(tuple(1 / (1 + np.arange(64))), context_length=32, noise=0.1)
    began = process_time()
    sgd.expected_loss(problem, rate=0.01, batch=8, steps=1000)
    return process_time() - began


if __name__ == "__main__":
    print(f"20000 runs x 120 steps, CPU seconds (limit 20): {simulated():.1f}")
    print(f"expected loss, D = 64, 1000 steps, CPU seconds (limit 2): {expected():.2f}")
