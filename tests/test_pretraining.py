"""Fits of drawn pretraining runs: routes against each other, means against reference values, theory and limits."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Pretraining, Ratios
from iclab.simulation.keys import key_of
from iclab.simulation.pretraining import fit, fit_each

SMALL = Pretraining(dimension=6, context_length=12, sequences=60, tasks=4, noise=0.1)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize(
    ("tau", "ridge", "routes"),
    [
        (0.5, 1e-5, ("kernel", "plain", "dual")),
        (0.5, 0.1, ("kernel", "plain", "preconditioned", "dual")),
        (0.5, 0.0, ("kernel", "plain", "dual")),
        (2.0, 1e-5, ("kernel", "plain", "preconditioned")),
        (2.0, 0.1, ("kernel", "plain", "preconditioned", "dual")),
        (2.0, 0.0, ("plain", "preconditioned")),
    ],
)
def test_all_routes_find_the_readout_of_the_singular_values(tau: float, ridge: float, routes: tuple) -> None:
    run = Pretraining.of(Ratios(10, 0.5, tau, 0.01), 14)
    witness = fit(run, ridge=ridge, route="direct", tolerance=1e-12, key=key_of(1))
    for route in routes:
        found = fit(run, ridge=ridge, route=route, tolerance=1e-12, key=key_of(1))
        assert relative(found.readout, witness.readout) < 1e-10, route  # of a condition of 1e6 at ridge 1e-5
        assert_allclose(found.train, witness.train, rtol=1e-7, atol=1e-20)  # below interpolation it is tiny


def mean_errors(run: Pretraining, ridge: float, draws: int, **settings) -> tuple[dict, dict]:
    """Means over draws and their standard errors."""
    fits = fit_each(run, ridge=ridge, keys=jax.random.split(key_of(7), draws), **settings)
    table = np.array([[e.icl, e.idg, e.train] for e in (found.errors() for found in fits)])
    names = ("icl", "idg", "train")
    error = table.std(axis=0, ddof=1) / np.sqrt(draws)
    return dict(zip(names, table.mean(axis=0), strict=True)), dict(zip(names, error, strict=True))


# D, N, n, K, noise, ridge: means over 80 to 200 draws of another sampler and solver, and their standard errors
KNOWN = [
    (
        Pretraining(24, 24, 288, 6, 0.5),
        0.3,
        {"icl": (2.131787, 0.005450), "idg": (1.485041, 0.005070), "train": (0.028106, 0.000328)},
    ),
    (
        Pretraining(24, 24000, 864, 24, 0.25),
        0.05,
        {"icl": (0.787539, 0.003109), "idg": (0.459267, 0.001667), "train": (0.114352, 0.000684)},
    ),
    (
        Pretraining(24, 48, 1152, None, 0.0),
        0.001,
        {"icl": (0.756734, 0.003824), "idg": (0.756734, 0.003824), "train": (0.159399, 0.001133)},
    ),
    (
        Pretraining(32, 320, 512, 16, 0.01),
        1e-5,
        {"icl": (0.836130, 0.002965), "idg": (0.255725, 0.001780)},
    ),
    (
        Pretraining(32, 320, 2048, 16, 0.01),
        1e-5,
        {"icl": (1.047077, 0.006837), "idg": (0.120512, 0.000464), "train": (0.026942, 0.000148)},
    ),
    (
        Pretraining(32, 320, 1024, 64, 0.01),
        0.1,
        {"icl": (0.429537, 0.001684), "idg": (0.299537, 0.001175), "train": (0.024567, 0.000148)},
    ),
]


@pytest.mark.parametrize(("run", "ridge", "known"), KNOWN)
def test_means_over_draws_are_the_known_ones(run: Pretraining, ridge: float, known: dict) -> None:
    mean, error = mean_errors(run, ridge, 80)
    for name, (value, standard_error) in known.items():
        assert abs(mean[name] - value) < 4 * np.hypot(standard_error, error[name]), name
