"""Finite pretraining: against a plain direct solution, large dimensions, the published quick figure, growth with D.

    python benchmarks/pretraining.py                    # ratios and draws up to D = 256
    python benchmarks/pretraining.py figure 10 32 64    # 12 pool sizes × 20 draws
    python benchmarks/pretraining.py large 400 1.5      # one draw at D = 400, τ = 1.5

The direct solution is what published simulations do: features of one sequence after the other, then a D(D+1) ×
D(D+1) system. Seconds are CPU seconds, sampling included.
"""

import resource
import sys

import jax
import numpy as np
from measure import Spent, seconds

from iclab import Pretraining, Ratios
from iclab.simulation.keys import key_of
from iclab.simulation.pretraining import Fit, RidgeSolver, chosen_route, fit, fit_each

RIDGE = 1e-5


def run_of(dimension: int, tau: float) -> Pretraining:
    return Pretraining.of(Ratios(10, 0.5, tau, 0.01), dimension)


def direct(run: Pretraining, rng: np.random.Generator) -> np.ndarray:
    """The readout by its whole matrix, from tokens."""
    d, n, length = run.dimension, run.sequences, run.context_length
    pool = rng.standard_normal((run.tasks or n, d))
    pool *= np.sqrt(d) / np.linalg.norm(pool, axis=1, keepdims=True)
    features, target = np.empty((n, d * (d + 1))), np.empty(n)
    for i in range(n):
        x = rng.standard_normal((length + 1, d)) / np.sqrt(d)
        y = x @ pool[i % len(pool)] + np.sqrt(run.noise) * rng.standard_normal(length + 1)
        summary = np.append(d / length * (y[:-1] @ x[:-1]), np.mean(y[:-1] ** 2))
        features[i], target[i] = np.outer(x[-1], summary).ravel(), y[-1]
    gram = features.T @ features + n / d * RIDGE * np.eye(features.shape[1])
    return np.linalg.solve(gram, features.T @ target).reshape(d, d + 1)


def fitted(run: Pretraining, draws: int) -> tuple[Spent, Fit]:
    """The quickest of several draws."""
    found: list[Fit] = []
    spent = [
        seconds(lambda seed=seed: found.append(fit(run, ridge=RIDGE, key=key_of(seed)))) for seed in range(draws)
    ]
    return min(spent, key=lambda one: one.cpu), found[0]


def told(run: Pretraining, spent: Spent, found: Fit) -> str:
    estimate, peak = chosen_route(run, ridge=RIDGE), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"D = {run.dimension:3d}, τ = {run.ratios.tau:4.2f}: {spent.cpu:7.3f} s ({estimate.seconds:.2f} estimated), "
        f"{found.route}, {found.iterations} iterations, process peak {peak:.2f} GB "
        f"({estimate.bytes / 1e9:.2f} estimated for the fit)"
    )


def ratios() -> None:
    for dimension, promise in ((48, 10), (64, 15), (80, 25)):
        run = run_of(dimension, 2.0)
        spent, found = fitted(run, 3)
        plain = seconds(lambda run=run: direct(run, np.random.default_rng(0)))
        print(told(run, spent, found), flush=True)
        print(
            f"         direct {plain.cpu:.2f} s, ratio {plain.cpu / spent.cpu:.0f}   promised {promise}", flush=True
        )


def growth() -> None:
    dimensions, times = (64, 100, 128, 200, 256), []
    for dimension in dimensions:
        run = run_of(dimension, 2.0)
        spent, found = fitted(run, 3 if dimension <= 128 else 1)
        times.append(spent.cpu)
        print(told(run, spent, found), flush=True)
    exponent = np.polyfit(np.log(dimensions), np.log(times), 1)[0]
    print(f"seconds grow like D to the {exponent:.2f}   promised 3.6 to 4.4", flush=True)


def quick_figure(dimension: int) -> None:
    runs = [Pretraining.of(Ratios(10, kappa, 10, 0.01), dimension) for kappa in np.geomspace(0.2, 32, 12)]
    gaps, keys, solver = [], jax.random.split(key_of(0), 20), RidgeSolver(tolerance=1e-6)

    def draw() -> None:
        for run in runs:
            errors = [one.errors() for one in fit_each(run, ridge=1e-6, solver=solver, keys=keys)]
            gaps.append(np.mean([one.icl - one.idg for one in errors]))

    spent = seconds(draw)
    print(f"D = {dimension}: 240 fits in {spent.cpu:.1f} s CPU, {spent.wall:.1f} s wall")
    print(f"         gaps {', '.join(f'{gap:.3g}' for gap in gaps)}", flush=True)


def main(what: str = "all", *numbers: str) -> None:
    if what == "figure":
        for dimension in numbers:
            quick_figure(int(dimension))
    elif what == "large":
        run, found = run_of(int(numbers[0]), float(numbers[1])), []
        spent = seconds(lambda: found.append(fit(run, ridge=RIDGE, key=key_of(1))))
        print(told(run, spent, found[0]), found[0].errors())
    else:
        ratios()
        growth()


if __name__ == "__main__":
    main(*sys.argv[1:])
