"""Designing pretraining, in theory: costs of tests, their gradient, low rank, mixtures, inputs, chosen pools."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import Ratios
from iclab.theory import generalization
from iclab.theory.generalization import (
    Shift,
    chosen_pool_errors,
    design_gradient,
    errors,
    low_rank_errors,
    mixed_lengths_error,
    other_inputs_error,
    structured_errors,
)

INF = np.inf
KNOWN = json.loads((Path(__file__).parent / "data/task_design.json").read_text())
Entry = dict[str, Any]
MANY = pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.slow)])


def known(*starts: str) -> list[Entry]:
    """The known answers whose names start so."""
    return [entry for entry in KNOWN if entry["name"].startswith(starts)]


def point(p: Entry) -> Ratios:
    return Ratios(p["alpha"], p["kappa"], float(p.get("tau", INF)), p["rho"])


def power_law(size: int, exponent: float) -> np.ndarray:
    spectrum = np.arange(1, size + 1.0) ** -exponent
    return spectrum / spectrum.mean()


def worlds(count: int, least: float = 0.0) -> list[Entry]:
    """Random points of the theory: zeros in spectra, few tasks, limits, other contexts at test."""
    rng, found = np.random.default_rng(24), []
    for _ in range(count):
        d = rng.integers(2, 25)
        c, new = (np.exp(rng.standard_normal(d)) * (rng.random(d) > 0.3) for _ in range(2))
        c[0], new[0] = 1.0, 0.5
        kappa, tau = (INF if rng.random() < 0.15 else 10 ** rng.uniform(-1, 2) for _ in range(2))
        ratios = Ratios(10 ** rng.uniform(-1, 3), kappa, tau, rng.random())
        ridge = least if rng.random() < 0.3 else 10 ** rng.uniform(-3, 1)
        shift = Shift(10 ** rng.uniform(-1, 3), rng.random(), 0.1 + rng.random()) if rng.random() < 0.5 else None
        found.append({"ratios": ratios, "c": c, "new": new, "ridge": ridge, "shift": shift})
    return found


def error(w: Entry, c: np.ndarray, ridge: float) -> float:
    constant, costs = generalization.test_costs(w["ratios"], task_eigenvalues=c, ridge=ridge, shift=w["shift"])
    return constant + float(np.mean(w["new"] * costs))


def test_all_known_answers_are_here() -> None:
    assert len(KNOWN) == 61


@pytest.mark.parametrize("entry", known("alignment kernel"), ids=lambda entry: entry["quantity"][:6])
def test_costs_are_the_known_ones(entry: Entry) -> None:
    p = entry["parameters"]
    ratios, c, new = point(p), np.array(p["c"]), np.array(p["c_test"])
    shift = Shift(p.get("alpha_t"), p.get("rho_t"))
    constant, costs = generalization.test_costs(ratios, task_eigenvalues=c, ridge=p["lam"], shift=shift)
    alone = generalization.test_costs(
        ratios, task_eigenvalues=c, ridge=p["lam"], shift=Shift(INF, p.get("rho_t", p["rho"]))
    )[1]  # contexts without noise leave K
    scalar = constant + np.mean(new * (costs - alone))
    found = {"scalar": scalar, "K (one per direction)": alone, "icl": constant + np.mean(new * costs)}
    assert_allclose(found[entry["quantity"]], entry["value"], atol=entry["tolerance"])


@pytest.mark.parametrize("entry", known("gradient"), ids=lambda entry: entry["quantity"][:9])
def test_the_gradient_is_the_known_one(entry: Entry) -> None:
    p = entry["parameters"]
    by_task, by_ridge = design_gradient(
        point(p), task_eigenvalues=p["c"], test_task_eigenvalues=p["c_test"], ridge=p["lam"],
        shift=Shift(p.get("alpha_t"), p.get("rho_t")),
    )  # fmt: skip
    found = by_ridge if "lam" in entry["quantity"] else by_task
    assert_allclose(found, entry["value"], atol=entry["tolerance"])


@pytest.mark.parametrize("entry", known("low-rank", "rank against"), ids=lambda entry: entry["quantity"][:6])
def test_low_rank_errors_are_the_known_ones(entry: Entry) -> None:
    p = entry["parameters"]
    found = low_rank_errors(point(p), rank=p["rank"], ridge=p.get("lam", 0.0))
    name = {"m": "matched", "i": "in_distribution", "o": "out_of_distribution"}[entry["quantity"][0]]
    assert_allclose(getattr(found, name), entry["value"], atol=entry["tolerance"])


def test_the_known_mixture_and_the_known_other_inputs() -> None:
    (mixture,), (inputs,) = known("mixture"), known("other inputs")
    found = mixed_lengths_error(Ratios(4, 2, 1.5, 0.1), alphas=[1, 8], shares=[0.5, 0.5], ridge=0.05)
    assert_allclose(found, mixture["value"], atol=mixture["tolerance"])
    found = other_inputs_error(
        Ratios(4, 2, 2, 0.1), task_eigenvalues=power_law(24, 1), test_task_eigenvalues=np.ones(24),
        test_input_eigenvalues=power_law(24, 0.7), ridge=0.05,
    )  # fmt: skip
    assert_allclose(found, inputs["value"], atol=inputs["tolerance"])


def test_tests_on_untrained_directions_can_be_cheaper() -> None:
    (entry,) = known("tests on untrained")
    c = np.where(np.arange(40) < 36, 1 / 0.9, 0.0)
    constant, costs = generalization.test_costs(Ratios(1e4, INF, 0.8, 0.3), task_eigenvalues=c)
    assert_allclose([constant + costs[0], constant + costs[-1]], entry["value"], atol=entry["tolerance"])


@MANY
def test_costs_are_those_of_structured_errors_for_every_test_spectrum(count: int) -> None:
    for w in worlds(count):
        right = structured_errors(
            w["ratios"], task_eigenvalues=w["c"], test_task_eigenvalues=w["new"], ridge=w["ridge"], shift=w["shift"]
        )
        assert_allclose(error(w, w["c"], w["ridge"]), right.icl, rtol=1e-12)


def slope(function: Any, step: float) -> float:
    """The derivative at 0 by differences of sixth order."""
    weights = {1: 45, 2: -9, 3: 1}
    return sum(w * (function(k * step) - function(-k * step)) for k, w in weights.items()) / (60 * step)


@MANY
def test_the_gradient_is_that_of_the_error(count: int) -> None:
    rng = np.random.default_rng(1)
    for w in worlds(count):
        by_task, by_ridge = design_gradient(
            w["ratios"], task_eigenvalues=w["c"], test_task_eigenvalues=w["new"], ridge=w["ridge"], shift=w["shift"]
        )
        c, ridge, height = w["c"], w["ridge"], error(w, w["c"], w["ridge"])
        j = rng.choice(np.flatnonzero(c))
        along = np.eye(len(c))[j]
        found = len(c) * slope(lambda h, w=w, c=c, along=along, r=ridge: error(w, c + h * along, r), 0.01 * c[j])
        assert_allclose(by_task[j], found, atol=1e-8 * max(height, np.max(abs(by_task))))
        if ridge > 0:
            found = slope(lambda h, w=w, c=c, r=ridge: error(w, c, r + h), 0.01 * ridge)
            assert_allclose(by_ridge, found, atol=1e-8 * max(height / ridge, abs(by_ridge)))


def test_the_gradient_holds_where_a_direction_is_not_trained_and_where_there_is_no_ridge() -> None:
    w = {"ratios": Ratios(2, 0.5, 2, 0.1), "new": np.array([2.0, 0.5, 0.5]), "shift": None}
    c = np.array([2.0, 1.0, 0.0])
    by_task, by_ridge = design_gradient(w["ratios"], task_eigenvalues=c, test_task_eigenvalues=w["new"])
    base, h = error(w, c, 0.0), 1e-4
    third = [error(w, c + k * h * np.array([0, 0, 1.0]), 0.0) for k in (1, 2)]
    assert_allclose(by_task[2], 3 * (4 * third[0] - third[1] - 3 * base) / (2 * h), rtol=1e-5)
    ridged = [error(w, c, k * h) for k in (1, 2)]
    assert_allclose(by_ridge, (4 * ridged[0] - ridged[1] - 3 * base) / (2 * h), rtol=1e-5)


def test_where_contexts_are_short_training_on_a_direction_lowers_its_cost() -> None:
    for w in worlds(40):
        found = structured_errors(w["ratios"], task_eigenvalues=w["c"], ridge=w["ridge"])
        noise = (np.mean(w["c"]) + w["ratios"].noise) / w["ratios"].alpha
        if found.effective_ridge <= noise:
            costs = generalization.test_costs(w["ratios"], task_eigenvalues=np.sort(w["c"]), ridge=w["ridge"])[1]
            assert np.all(np.diff(costs) <= 1e-12 * costs[0])


def test_training_as_one_tests_is_best_only_in_the_limit_of_everything() -> None:
    new = np.array([3.0, 0.7, 0.3, 0.0])
    for test_alpha, level in ((4.0, True), (1.0, False)):
        by_task, _ = design_gradient(
            Ratios(4, INF, INF, 0.1), task_eigenvalues=new, test_task_eigenvalues=new, shift=Shift(test_alpha)
        )
        assert (np.ptp(by_task[:3]) < 1e-12) == level


@MANY
def test_low_rank_errors_are_those_of_a_spectrum_with_zeros(count: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(count):
        d = rng.integers(2, 12)
        held = rng.integers(1, d + 1)
        rank = held / d
        c = np.where(np.arange(d) < held, 1 / rank, 0.0)
        ratios = Ratios(*10 ** rng.uniform([-0.5, -1, -1], [2.5, 1, 1]), rng.random())
        ridge = 0.0 if rng.random() < 0.2 else 10 ** rng.uniform(-3, 1)
        found = low_rank_errors(ratios, rank=rank, ridge=ridge)
        inside = structured_errors(ratios, task_eigenvalues=c, ridge=ridge)
        outside = structured_errors(ratios, task_eigenvalues=c, test_task_eigenvalues=np.ones(d), ridge=ridge)
        right = (inside.idg, inside.icl, outside.icl)
        assert_allclose((found.matched, found.in_distribution, found.out_of_distribution), right, rtol=1e-10)


def test_for_infinite_pretraining_low_rank_tasks_are_white_ones_at_other_ratios() -> None:
    alpha, rank = np.geomspace(1, 1e6, 7)[:, None], np.array([0.2, 0.4, 0.8])
    found = low_rank_errors(Ratios(alpha, 0.4, INF, 0.1), rank=rank)
    white = errors(Ratios(alpha / rank, 0.4 / rank, INF, 0.1))
    assert_allclose(found.in_distribution, white.icl, rtol=1e-12)
    assert_allclose(found.matched, white.idg, rtol=1e-12)


def test_generalization_in_the_subspace_begins_where_the_rank_falls_below_the_pool() -> None:
    rank = np.array([0.2, 0.3, 0.5, 0.8])
    found = low_rank_errors(Ratios(1e9, 0.4, INF, 0.1), rank=rank)
    assert_allclose(found.in_distribution, 0.1 + np.maximum(0, 1 - 0.4 / rank), atol=1e-6)
    assert_allclose(found.out_of_distribution, 1.1 - np.minimum(0.4, rank), atol=1e-6)
    at = low_rank_errors(Ratios(1e4, 0.4, INF, 0.01), rank=0.4)
    assert_allclose(at.in_distribution - at.matched, 0.5 * np.sqrt(0.4 * 1.01 / 1e4), rtol=1e-4)


def test_long_contexts_interpolate_low_rank_tasks_at_two_numbers_of_sequences() -> None:
    found = low_rank_errors(Ratios(1e6, 0.5, [0.2499996, 0.9986], 0.1), rank=0.25, ridge=1e-9).matched
    assert_allclose(found, [39.04, 1.983], rtol=1e-3)


def test_a_mixture_of_one_length_is_that_length() -> None:
    c = power_law(12, 1)
    for alpha, tau in ((1.0, 0.7), (5.0, 3.0)):
        one = mixed_lengths_error(
            Ratios(4, 0.8, tau, 0.1), alphas=[alpha], shares=[1.0], task_eigenvalues=c, ridge=0.05
        )
        right = structured_errors(Ratios(alpha, 0.8, tau, 0.1), task_eigenvalues=c, ridge=0.05, shift=Shift(alpha=4))
        two = mixed_lengths_error(
            Ratios(4, 0.8, tau, 0.1), alphas=[alpha, alpha], shares=[0.3, 0.7], task_eigenvalues=c, ridge=0.05
        )
        assert_allclose([one, two], right.icl, rtol=1e-11)


def test_with_many_sequences_only_the_mean_inverse_length_of_a_mixture_counts() -> None:
    mixed = mixed_lengths_error(Ratios(4, 2, 1e9, 0.1), alphas=[1, 8], shares=[0.5, 0.5], ridge=0.05)
    mean = 1 / (0.5 / 1 + 0.5 / 8)
    assert_allclose(mixed, errors(Ratios(mean, 2, INF, 0.1), ridge=0.05, shift=Shift(alpha=4)).icl, rtol=1e-7)


def test_other_inputs_that_are_the_same_change_nothing() -> None:
    c, s, new = power_law(10, 1), power_law(10, 0.6)[::-1], np.ones(10)
    given = {"task_eigenvalues": c, "input_eigenvalues": s, "test_task_eigenvalues": new, "ridge": 0.05}
    shift = Shift(2.0, 0.3, 1.7)
    found = other_inputs_error(Ratios(4, 2, 2, 0.1), test_input_eigenvalues=s, **given, shift=shift)
    assert_allclose(found, structured_errors(Ratios(4, 2, 2, 0.1), **given, shift=shift).icl, rtol=1e-13)


def test_chosen_tasks_count_as_infinitely_many_drawn_ones() -> None:
    found = chosen_pool_errors(Ratios(2, 1, 3, 0.1), task_eigenvalues=np.ones(4), ridge=0.01)
    fresh, drawn = (errors(Ratios(2, kappa, 3, 0.1), ridge=0.01) for kappa in (INF, 1.0))
    assert_allclose(found.icl, fresh.icl, rtol=1e-12)
    assert_allclose([drawn.icl, found.icl], [0.876, 0.6759287994538387], rtol=1e-3)
    with pytest.raises(ValueError, match=r"at most a share kappa of the directions; got 1 of them for kappa = 0\.5"):
        chosen_pool_errors(Ratios(2, 0.5, 3, 0.1), task_eigenvalues=np.ones(4), ridge=0.01)


C = {"task_eigenvalues": [2.0, 0.5]}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generalization.test_costs(Ratios(INF, 1, 2, 0.1), **C), "alpha must be finite"),
        (lambda: generalization.test_costs(Ratios(2, 1, 1, 0.1), **C), "ridge must be positive at tau = 1"),
        (lambda: generalization.test_costs(Ratios(2, [1, 2], 2, 0.1), **C), "ratios.kappa must be one number"),
        (lambda: generalization.test_costs(Ratios(2, 1, 2, 0.1), task_eigenvalues=[0.0]), "must hold a positive"),
        (lambda: generalization.test_costs(Ratios(2, 1, 2, 0.1), task_eigenvalues=[1, -1]), "must be .*>= 0; got -1"),
        (lambda: design_gradient(Ratios(2, 1, 2, 0.1), **C, test_task_eigenvalues=[1.0]), "as many as task_eigenval"),
        (lambda: low_rank_errors(Ratios(2, 1, 2, 0.1), rank=1.5), "rank must be at most 1; got 1.5"),
        (
            lambda: mixed_lengths_error(Ratios(2, 1, 2, 0.1), alphas=[1, 2], shares=[0.5, 0.4], ridge=0.1),
            "shares must add to 1; got 0.9",
        ),
        (
            lambda: mixed_lengths_error(Ratios(2, 1, 2, 0.1), alphas=[1, 2], shares=[0.5, 0.5], ridge=0.0),
            "ridge must be positive for a mixture",
        ),
        (
            lambda: other_inputs_error(Ratios(2, 1, 2, 0.1), **C, test_input_eigenvalues=[1.0]),
            "test_input_eigenvalues must be as many",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
