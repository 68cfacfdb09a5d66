"""How long the errors of the proportional limit take: a grid, a point, structured data, plans.

Processor time on one thread, the best of several runs, beside the limit that users were promised.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable

import numpy as np

from iclab import Ratios, planning
from iclab.theory import finite_size, generalization


def seconds(call: Callable[[], object], *, repeats: int, runs: int = 5) -> float:
    """Least processor time of one call."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        for _ in range(repeats):
            call()
        times.append((time.process_time() - start) / repeats)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    points = 100_000
    alpha, kappa, tau = 10.0 ** rng.uniform([[-2], [-2], [-2]], [[4], [2], [2]], (3, points))
    grid = Ratios(alpha, kappa, tau, rng.uniform(0, 1, points))
    ridges = 10.0 ** rng.uniform(-10, 1, points)
    point = Ratios(10, 0.5, 2, 0.01)
    spectrum = np.arange(1, 401) ** -0.7
    pool = finite_size.Pool(finite_size.SphereTasks(32).draw(16, rng))
    law = finite_size.ContextLaw(pool, 320, 0.01)
    rows = [
        (
            "1e5 random points with ridge",
            "0.2 s",
            seconds(lambda: generalization.errors(grid, ridge=ridges), repeats=1),
        ),
        ("one point with ridge", "150 µs", seconds(lambda: generalization.errors(point, ridge=0.01), repeats=1000)),
        ("one point without ridge", "150 µs", seconds(lambda: generalization.errors(point), repeats=1000)),
        (
            "400 input and task eigenvalues",
            "0.5 s",
            seconds(
                lambda: generalization.structured_errors(
                    point, task_eigenvalues=spectrum[::-1], input_eigenvalues=spectrum, ridge=0.01
                ),
                repeats=1,
                runs=3,
            ),
        ),
        (
            "400 task eigenvalues, white inputs",
            "",
            seconds(
                lambda: generalization.structured_errors(point, task_eigenvalues=spectrum, ridge=0.01), repeats=10
            ),
        ),
        ("best ridge", "", seconds(lambda: generalization.best_ridge(point), repeats=10)),
        (
            "required tau",
            "1 s",
            seconds(lambda: planning.required("tau", error=0.9, alpha=10, kappa=0.5, noise=0.01), repeats=5),
        ),
        (
            "required alpha at its best ridge, out of reach",
            "1 s",
            seconds(
                lambda: planning.required("alpha", error=0.3, kappa=0.5, tau=2, noise=0.1, ridge="best"),
                repeats=1,
                runs=2,
            ),
        ),
        ("pool prediction, D = 32", "", seconds(lambda: finite_size.pool_errors(law, 2048, ridge=1e-5), repeats=10)),
        (
            "leverage prediction, D = 32",
            "",
            seconds(lambda: finite_size.leverage_errors(law, 2048, ridge=1e-5), repeats=1, runs=3),
        ),
    ]
    print(f"{'what':48s}{'limit':>10s}{'measured':>14s}")
    for what, limit, time_taken in rows:
        print(f"{what:48s}{limit:>10s}{time_taken * 1e3:>11.3f} ms")


if __name__ == "__main__":
    main()
