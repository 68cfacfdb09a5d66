"""Theory of depth against known answers, which separate code computed to the tolerances of the table."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.theory import depth
from iclab.theory.depth.exact_moments import recurrence_of

TABLE = json.loads((Path(__file__).parent / "data/depth.json").read_text())
KNOWN = {row["name"]: row for row in TABLE}
TRAINED = {"orbit_training", "full_stack", "full_stack_noise", "anisotropic"}  # in test_depth_simulation.py


def names(*starts: str) -> list[str]:
    return [name for name in KNOWN if name.startswith(starts)]


def sized(name: str) -> tuple[Any, dict[str, Any], Any, float]:
    """Law, parameters, value and tolerance of a row."""
    row = KNOWN[name]
    given = row["parameters"]
    law = depth.wishart(given["D"], given["N"]) if "D" in given else depth.white_limit(given["alpha"])
    tolerance = row["tolerance"]
    return law, given, row["value"], tolerance if isinstance(tolerance, float) else 5e-8


SIZED = [name for name in names("best_") if not name.startswith("best_real")]
WHITE = [name for name in names("white_") if "layers" not in name]


@pytest.mark.parametrize("name", names("moments_"))
def test_mean_moments_are_the_known_fractions(name: str) -> None:
    given = KNOWN[name]["parameters"]
    assert [str(one) for one in depth.wishart_moments(given["D"], given["N"], 8)] == KNOWN[name]["value"]


def test_the_recurrence_is_the_known_one() -> None:
    diagonal, squares = KNOWN["recurrence_6_12"]["value"]
    found = recurrence_of(depth.wishart_moments(6, 12, 17))
    assert_allclose(found[0], diagonal, rtol=1e-9)
    assert_allclose(found[1], squares, rtol=1e-9)


@pytest.mark.parametrize("name", SIZED)
def test_best_layers_at_finite_size_are_the_known_ones(name: str) -> None:
    law, given, (best, layers, tied, layer, rate), tolerance = sized(name)
    count = given["L"]
    assert_allclose(depth.best_excess(law, count), best, atol=tolerance)
    assert_allclose(depth.best_layers(law, count), layers, atol=tolerance)
    assert_allclose(depth.excess(law, depth.best_layers(law, count)), best, atol=tolerance)
    assert_allclose(depth.tied_excess(law, count), tied, atol=tolerance)
    assert_allclose(depth.tied_layer(law, count), layer, atol=tolerance)
    assert_allclose(depth.split_rate(law, count), rate, atol=tolerance)


@pytest.mark.parametrize("name", WHITE)
def test_the_white_limit_is_the_known_one_in_closed_form_and_by_quadrature(name: str) -> None:
    law, given, known, tolerance = sized(name)
    alpha, count = given["alpha"], given["L"]
    closed = [
        depth.white_untied_excess(alpha, count),
        depth.white_tied_excess(alpha, count),
        depth.white_tied_layer(alpha),
        depth.white_split_rate(alpha, count),
    ]
    assert_allclose(closed, known, atol=tolerance)
    assert_allclose(closed, known, rtol=1e-8)  # also where the values are 1e-39: digits of the table
    routes = [
        depth.best_excess(law, count), depth.tied_excess(law, count), depth.tied_layer(law, count),
        depth.split_rate(law, count),
    ]  # fmt: skip
    assert_allclose(routes, closed, rtol=2e-10)  # of the split rate at α = .5, L = 64, a power of 126


@pytest.mark.parametrize("name", names("white_layers"))
def test_best_white_layers_are_the_known_ones(name: str) -> None:
    law, given, layers, tolerance = sized(name)
    assert_allclose(depth.white_untied_layers(given["alpha"], given["L"]), layers, atol=tolerance)
    assert_allclose(depth.best_layers(law, given["L"]), layers, atol=tolerance)


@pytest.mark.parametrize("name", names("free_"))
def test_the_free_polynomial_is_the_known_one(name: str) -> None:
    law, given, value, tolerance = sized(name)
    count, noise = given["L"], given["noise"]
    assert_allclose(depth.white_free_excess(given["alpha"], count, noise_ratio=noise), value, atol=tolerance)
    assert_allclose(depth.free_excess(law, count, noise_ratio=noise), value, atol=tolerance)


@pytest.mark.parametrize("name", names("ridge_"))
def test_infinite_depth_is_ridge(name: str) -> None:
    law, given, value, tolerance = sized(name)
    assert_allclose(depth.white_ridge_excess(given["alpha"], noise_ratio=given["noise"]), value, atol=tolerance)
    assert_allclose(depth.free_excess(law, 60, noise_ratio=given["noise"]), value, atol=tolerance)
    assert_allclose(depth.ridge_excess(law, noise_ratio=given["noise"]), value, atol=tolerance)


@pytest.mark.parametrize("name", names("critical_noise"))
def test_the_critical_noise_of_two_layers_is_the_known_one(name: str) -> None:
    law, given, value, tolerance = sized(name)
    assert_allclose(depth.critical_noise_ratio(law), value, atol=tolerance)
    assert_allclose(depth.spinodal_noise_ratio(law, 2), value, atol=tolerance)
    if "alpha" in given:
        assert_allclose(depth.white_critical_noise_ratio(given["alpha"]), value, atol=tolerance)


PHASES = [
    pytest.param(name, marks=() if name in ("noise_phases_2_L3", "noise_phases_1_L4") else pytest.mark.slow)
    for name in names("noise_phases")
]


@pytest.mark.parametrize("name", PHASES)
def test_layers_become_equal_in_the_known_sequence(name: str) -> None:
    law, given, value, _ = sized(name)
    found = depth.noise_phases(law, given["L"])
    for one, known, tolerance in zip(found, value, KNOWN[name]["tolerance"], strict=True):
        if known is None:
            assert one > found.jump  # no end is known
        else:
            assert_allclose(one, known, atol=tolerance)


@pytest.mark.parametrize("name", names("best_real"))
def test_noisy_layers_are_the_known_ones(name: str) -> None:
    law, given, (value, layers), _ = sized(name)
    noise, tolerance = given["noise"], KNOWN[name]["tolerance"]
    found = depth.best_layers(law, given["L"], noise_ratio=noise)
    assert_allclose(depth.excess(law, found, noise_ratio=noise), value, atol=tolerance[0])
    assert_allclose(found, layers, atol=tolerance[1])


@pytest.mark.parametrize("name", names("given_layers"))
def test_the_loss_of_given_layers_is_the_known_one(name: str) -> None:
    law, given, value, tolerance = sized(name)
    assert_allclose(depth.excess(law, given["layers"], noise_ratio=given["noise"]), value, atol=tolerance)


@pytest.mark.parametrize("name", names("bessel_"))
def test_the_bessel_case_is_the_known_one(name: str) -> None:
    count, value = KNOWN[name]["parameters"]["L"], KNOWN[name]["value"]
    assert_allclose(depth.best_excess(depth.power_law(2, 0.5), count), value, atol=1e-9)
    assert_allclose(depth.untied_bessel_excess(count), value, rtol=1e-14)


def test_power_laws_are_the_known_ones() -> None:
    law, depths = depth.power_law(1.5, 1), KNOWN["power_untied"]["parameters"]["L"]
    assert_allclose([depth.best_excess(law, one) for one in depths], KNOWN["power_untied"]["value"], rtol=1e-4)
    assert_allclose([depth.tied_excess(law, one) for one in depths], KNOWN["power_tied"]["value"], atol=2e-6)


def test_the_best_rewriting_layers_are_the_known_ones() -> None:
    excess, numbers = KNOWN["input_writing"]["value"]
    found = depth.rewriting_optimum(depth.wishart(4, 8))
    assert_allclose(found.excess, excess, atol=1e-5)
    assert_allclose([*found.layers, found.rewriting], numbers, atol=2e-3)
    white = KNOWN["input_writing_white"]
    for noise, value in zip(white["parameters"]["noise"], white["value"], strict=True):
        assert_allclose(depth.rewriting_optimum(depth.white_limit(2), noise_ratio=noise).excess, value, atol=2e-6)
    noisy = depth.rewriting_optimum(depth.wishart(4, 8), noise_ratio=0.3).excess
    assert_allclose(noisy, KNOWN["full_stack_noise"]["value"][1], atol=1e-5)


@pytest.mark.parametrize("name", names("shift_"))
def test_the_loss_at_another_context_length_is_the_known_one(name: str) -> None:
    given, value = KNOWN[name]["parameters"], KNOWN[name]["value"]
    trained, tested = (depth.white_limit(given[kind]) for kind in ("trained_alpha", "tested_alpha"))
    layers = depth.best_layers(trained, 3), np.full(3, depth.tied_layer(trained, 3))
    assert_allclose([depth.excess(tested, one) for one in layers], value, atol=1e-8)


def structured(nu: float, beta: float, dimension: int, length: int) -> depth.FiniteContexts:
    k = np.arange(1.0, dimension + 1)
    return depth.finite_contexts(k**-nu, k ** (nu - nu * beta - 1), length)


def test_structured_inputs_in_finite_contexts_lose_the_known_amounts() -> None:
    row = KNOWN["finite_context_loss"]
    found = structured(1.5, 1, 240, 240)
    assert_allclose([found.best_excess(one) for one in row["parameters"]["L"]], row["value"], rtol=2e-3)


def test_finite_contexts_have_the_known_exponents() -> None:
    row = KNOWN["finite_context_exponent"]
    found = structured(1.5, 0.5, 1200, 2400)
    best = np.log2([found.best_excess(one) for one in (4, 8, 16)])
    tied = np.log2([found.tied_excess(one) for one in (4, 8, 16, 32)])
    assert_allclose(-np.diff(best), row["value"][0], atol=0.05)
    assert_allclose(-np.diff(tied), row["value"][1], atol=0.05)
    assert max(-np.diff(best)) < 0.7 * (2 + 1.5) * 0.5  # that of infinite contexts is lost


def test_curvature_towards_matrices_is_the_known_one() -> None:
    row = KNOWN["matrix_curvature"]
    for alpha, noise, value in zip(row["parameters"]["alpha"], row["parameters"]["noise"], row["value"], strict=True):
        assert_allclose(depth.matrix_curvature(alpha, noise_ratio=noise).antisymmetric, value, atol=1e-4)


def test_the_bound_of_two_matrices_is_the_known_one() -> None:
    row = KNOWN["trace_bound"]
    for noise, value in zip(row["parameters"]["noise"], row["value"], strict=True):
        assert_allclose(depth.two_matrices_bound(4, 8, noise_ratio=noise), value, atol=1e-5)
        assert depth.two_matrices_bound(4, 8, noise_ratio=noise) < depth.best_excess(
            depth.wishart(4, 8), 2, noise_ratio=noise
        )


def test_every_known_answer_is_tried() -> None:
    tried = names(
        "moments_", "recurrence_", "best_", "white_", "free_", "ridge_", "critical_noise", "noise_phases", "given_",
        "bessel_", "power_", "input_writing", "shift_", "finite_context", "matrix_curvature", "trace_bound",
    )  # fmt: skip
    assert {*tried, *TRAINED} == set(KNOWN)
    assert len(KNOWN) == 167
    assert math.isclose(KNOWN["full_stack_noise"]["value"][2], 0.303393)
    assert_allclose(depth.best_excess(depth.wishart(4, 8), 2, noise_ratio=0.3), 0.303393, atol=1e-5)
