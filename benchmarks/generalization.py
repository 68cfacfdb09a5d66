"""Errors of the proportional limit: a large grid, one point, structured data; plans and finite size."""

from collections.abc import Callable

import numpy as np
from measure import least_seconds, promised

from iclab import Ratios, planning
from iclab.theory import finite_size, generalization


def each(call: Callable[[], object], times: int) -> float:
    """CPU seconds of one call among many."""

    def repeat() -> None:
        for _ in range(times):
            call()

    return least_seconds(repeat) / times


def main() -> None:
    rng, points = np.random.default_rng(0), 100_000
    alpha, kappa, tau = 10.0 ** rng.uniform([[-2], [-2], [-2]], [[4], [2], [2]], (3, points))
    grid, ridges = Ratios(alpha, kappa, tau, rng.uniform(0, 1, points)), 10.0 ** rng.uniform(-10, 1, points)
    point, spectrum = Ratios(10, 0.5, 2, 0.01), np.arange(1, 401) ** -0.7
    pool = finite_size.Pool(finite_size.SphereTasks(32).draw(16, rng))
    law = finite_size.ContextLaw(pool, 320, 0.01)

    def structured(**inputs: np.ndarray) -> object:
        return generalization.structured_errors(point, task_eigenvalues=spectrum[::-1], ridge=0.01, **inputs)

    def tau_for(error: float) -> object:
        return planning.required("tau", error=error, alpha=10, kappa=0.5, noise=0.01)

    def alpha_at_best_ridge() -> object:
        return planning.required("alpha", error=0.3, kappa=0.5, tau=2, noise=0.1, ridge=planning.BEST)

    for what, promise, spent in (
        ("1e5 points with ridge", 0.2, each(lambda: generalization.errors(grid, ridge=ridges), 1)),
        ("one point with ridge", 150e-6, each(lambda: generalization.errors(point, ridge=0.01), 1000)),
        ("one point without ridge", 150e-6, each(lambda: generalization.errors(point), 1000)),
        ("400 input and task eigenvalues", 0.5, each(lambda: structured(input_eigenvalues=spectrum), 1)),
        ("400 task eigenvalues", 0.5, each(structured, 10)),
        ("best ridge", 1, each(lambda: generalization.best_ridge(point), 10)),
        ("required tau", 1, each(lambda: tau_for(0.9), 10)),
        ("required alpha at its best ridge, with advice", 1, each(alpha_at_best_ridge, 1)),
        ("pool prediction, D = 32", 1, each(lambda: finite_size.pool_errors(law, 2048, ridge=1e-5), 10)),
        ("leverage prediction, D = 32", 1, each(lambda: finite_size.leverage_errors(law, 2048, ridge=1e-5), 1)),
    ):
        promised(what, spent * 1e3, promise * 1e3, "ms")


if __name__ == "__main__":
    main()
