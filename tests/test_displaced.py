"""Checkpoints and matrices out of their place, by samples of their entries."""

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import checkpoints
from iclab.spectra.checkpoints.content import content, sampled, transposed
from iclab.spectra.checkpoints.ledger import Ledger, contents
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.observation.integrity import Finding, Record, examine, record_of
from iclab.spectra.observation.integrity.samples import samples
from tests.series import AT, CONFIG, State, States, clean, written

SQUARE, WIDE = AT + "attn.c_proj.weight", AT + "mlp.c_fc.weight"


def records(states: States) -> list[Record]:
    series = checkpoints.of_states(list(states.values()), list(states), config=CONFIG)
    return [record_of(one, contents(one.open())) for one in series]


def found(states: States, *severities: str) -> list[Finding]:
    kept = severities or ("error", "warning")
    return [one for one in examine(records(states)).findings if one.severity in kept]


def moving(rng: np.random.Generator, rule: str, count: int = 9) -> States:
    """Series of `count` states of two matrices, by the name of their law."""
    start, states = rng.standard_normal((2, 16, 16)), {}
    plane = rng.standard_normal((2, 2, 16, 16))
    place = np.zeros_like(start)
    for index in range(count):
        noise = rng.standard_normal(start.shape)
        if rule == "walk in a plane":
            place += 0.1 * np.einsum("i,imab->mab", rng.standard_normal(2), plane)
        elif rule == "noise":
            place = 0.1 * noise
        elif rule == "noise that dies down":
            place = 0.1 * noise * (index < count - 1)
        else:
            place = 0.1 * np.cos(2.5 * index) * plane[0] + 0.02 * noise
        states[100 * index] = {name: start[row] + place[row] for row, name in enumerate(("one", "two"))}
    return states


def test_a_sample_of_all_entries_has_the_distances_and_cosines_of_the_matrices() -> None:
    rng = np.random.default_rng(0)
    states = {step: {"w": 10.0**step * rng.standard_normal((8, 12))} for step in range(4)}
    (one,) = samples(records(states))
    for a in range(4):
        for b in range(4):
            first, second = states[a]["w"], states[b]["w"]
            largest = np.sqrt(np.mean(states[3]["w"] ** 2))
            assert_allclose(one.distances()[a, b], np.mean((first - second) ** 2) / largest**2, rtol=1e-5, atol=1e-7)
            cosine = np.sum(first * second) / np.linalg.norm(first) / np.linalg.norm(second)
            assert_allclose(one.directions[a] @ one.directions[b], cosine, atol=1e-6)  # of float32


@pytest.mark.parametrize("size", [8, 11, 16, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ml_dtypes.bfloat16])
def test_the_sample_of_a_transpose_is_that_of_the_matrix_with_its_halves_exchanged(size: int, dtype: type) -> None:
    matrix = np.random.default_rng(size).standard_normal((size, size)).astype(dtype)
    plain, across = (sampled(content(of_array("w", one)).sample) for one in (matrix, matrix.T.copy()))
    assert_allclose(across, transposed(plain), rtol=1e-6)
    assert len(plain) == 128


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_a_sample_does_not_depend_on_the_scale(scale: float) -> None:
    matrix = np.random.default_rng(0).standard_normal((16, 12))
    one, two = (sampled(content(of_array("w", factor * matrix)).sample) for factor in (1.0, scale))
    assert_allclose(one, two, rtol=1e-6)


def test_vectors_zeros_and_numbers_that_are_none_have_no_sample() -> None:
    broken = np.ones((16, 16))
    broken[3, 4] = np.nan
    for array in (np.ones(300), np.zeros((16, 16)), broken, np.ones((3, 4)), np.ones((16, 16), int)):
        assert content(of_array("w", array)).sample == ""


def test_samples_are_the_same_from_the_cache(tmp_path) -> None:
    (checkpoint,) = checkpoints.read(written(tmp_path / "run", {0: clean("steady", 0)[0]}))
    ledger = Ledger(tmp_path / "cache")
    fresh = ledger.contents(checkpoint)
    assert ledger.contents(checkpoint) == fresh
    assert fresh[SQUARE].sample


@pytest.mark.parametrize("pair", [(100, 200), (300, 400), (500, 600), (200, 500), (100, 700)])
def test_two_checkpoints_in_each_others_place_are_found_and_named(pair: tuple[int, int]) -> None:
    states = clean("steady", 3)
    states[pair[0]], states[pair[1]] = states[pair[1]], states[pair[0]]
    (error,) = found(states)
    assert (error.kind, error.severity, error.steps) == ("exchanged checkpoints", "error", pair)


@pytest.mark.parametrize("count", [4, 5, 6])
def test_an_exchange_is_found_in_a_short_straight_series(count: int) -> None:
    rng = np.random.default_rng(1)
    start, move = rng.standard_normal((2, 2, 16, 16))
    states = {
        10 * i: {"one": start[0] + 0.1 * i * move[0], "two": start[1] + 0.1 * i * move[1]} for i in range(count)
    }
    assert found(states) == []
    states[10], states[20] = states[20], states[10]
    (error,) = found(states)
    assert (error.kind, error.severity, error.steps) == ("exchanged checkpoints", "error", (10, 20))


@pytest.mark.parametrize("pair", [(0, 100), (700, 800)])
def test_an_exchange_at_an_end_is_a_warning_that_says_what_else_it_may_be(pair: tuple[int, int]) -> None:
    states = clean("steady", 3)
    states[pair[0]], states[pair[1]] = states[pair[1]], states[pair[0]]
    (warning,) = found(states)
    assert (warning.kind, warning.severity, warning.steps) == ("exchanged checkpoints", "warning", pair)
    assert "or " in warning.message


def test_two_exchanges_are_both_found() -> None:
    states = clean("steady", 3)
    states[100], states[200], states[500], states[600] = states[200], states[100], states[600], states[500]
    assert {one.steps for one in found(states)} == {(100, 200), (500, 600)}


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        ("noise", 0),
        ("noise that dies down", 0),
        ("walk in a plane", 3),
        ("to and fro", 1),
    ],  # in few dimensions, short
)
def test_paths_that_turn_back_by_themselves_are_no_exchange(rule: str, most: int) -> None:
    errors = [found(moving(np.random.default_rng([7, seed]), rule, 5 + seed % 9), "error") for seed in range(60)]
    assert sum(map(bool, errors)) <= most


def anew(state: State, name: str, seed: int = 0) -> State:
    return state | {name: (0.1 * np.random.default_rng(seed).standard_normal(state[name].shape)).astype(np.float32)}


def test_a_matrix_that_is_drawn_anew_at_one_step_is_named_with_the_step() -> None:
    states = clean("steady", 3)
    states[300] = anew(anew(states[300], WIDE, 1), SQUARE, 2)
    (error,) = found(states)
    assert (error.kind, error.severity, error.steps) == ("reset tensors", "error", (300,))
    assert set(error.tensors) == {WIDE, SQUARE}
    assert "at step 300" in error.message


def test_a_reset_that_lasts_is_a_warning_from_its_step_on() -> None:
    states = clean("steady", 3)
    fresh = anew(states[400], WIDE)[WIDE] - states[400][WIDE]
    for step in range(400, 900, 100):
        states[step] = states[step] | {WIDE: states[step][WIDE] + fresh}
    (warning,) = found(states)
    assert (warning.kind, warning.severity, warning.steps) == ("reset tensors", "warning", (300, 400))


@pytest.mark.parametrize("at", [0, 300, 800])
def test_a_square_matrix_stored_transposed_at_one_step_is_named_with_the_step(at: int) -> None:
    states = clean("steady", 3)
    states[at] = states[at] | {SQUARE: states[at][SQUARE].T.copy()}
    (error,) = found(states)
    assert (error.kind, error.steps, error.tensors) == ("transposed tensors", (at,), (SQUARE,))


def test_a_convention_that_changes_at_a_resume_is_told_at_the_fewer_steps() -> None:
    states = clean("steady", 3)
    for step in (0, 100, 200):
        states[step] = states[step] | {SQUARE: states[step][SQUARE].T.copy()}
    assert [one.steps for one in found(states)] == [(0, 100, 200)]


def test_a_symmetric_matrix_is_never_transposed() -> None:
    states = {step: state | {SQUARE: state[SQUARE] + state[SQUARE].T} for step, state in clean("steady", 3).items()}
    assert found(states) == []


def test_two_matrices_under_each_others_name_are_found_by_what_they_continue() -> None:
    states = {step: state | {"extra": state[SQUARE][::-1].copy()} for step, state in clean("steady", 3).items()}
    at = states[300]
    states[300] = at | {SQUARE: at["extra"], "extra": at[SQUARE]}
    (error,) = found(states)
    assert (error.kind, error.steps) == ("swapped tensors", (200, 300))
    assert set(error.tensors) == {SQUARE, "extra"}
    states[300] = at | {SQUARE: at["extra"]}
    kinds = {(one.kind, one.steps, one.tensors) for one in found(states)}
    assert ("swapped tensors", (200, 300), (SQUARE, "extra")) in kinds
