"""What a series of checkpoints is found to be before any curve is drawn from it."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from iclab.spectra.checkpoints.content import content
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.observation.integrity import Integrity, Record, examine
from iclab.spectra.observation.trajectories import missing_steps, outliers


def trained(steps: Sequence[int]) -> list[dict[str, np.ndarray]]:
    """Weights that move a little from step to step."""
    rng = np.random.default_rng(0)
    start = {name: rng.standard_normal((3, 4)) for name in ("first", "second", "third")}
    moves = {name: rng.standard_normal((3, 4)) for name in start}
    return [{name: start[name] + 0.1 * index * moves[name] for name in start} for index in range(len(steps))]


def found(steps: Sequence[int], states: Sequence[dict[str, np.ndarray]], **entries: Any) -> Integrity:
    records = [
        Record(
            step, f"step{step}", {name: content(of_array(name, array)) for name, array in state.items()}, **entries
        )
        for step, state in zip(steps, states, strict=True)
    ]
    return examine(records)


def kinds(integrity: Integrity) -> set[str]:
    return {finding.kind for finding in integrity.findings}


STEPS = (0, 1, 2, 4, 8, 16)


def test_a_sound_series_has_no_findings() -> None:
    assert found(STEPS, trained(STEPS)) == Integrity(())


def test_copies_of_the_last_checkpoint_break_the_series() -> None:
    states = trained(STEPS)
    states[:4] = [states[-1]] * 4
    integrity = found(STEPS, states)
    assert integrity.broken
    assert integrity.findings[0].steps == (0, 1, 2, 4, 16)
    assert "last one" in integrity.findings[0].message


def test_a_first_step_that_changed_nothing_is_a_note_with_both_explanations() -> None:
    states = trained(STEPS)
    states[1] = states[0]
    (finding,) = found(STEPS, states).findings
    assert (finding.severity, finding.steps) == ("note", (0, 1))
    assert "rounded away" in finding.message
    assert "copy" in finding.message


def test_a_long_stretch_of_copies_is_no_early_step() -> None:
    steps = (0, 2000, 6300, 143_000)
    states = trained(steps)
    states[1] = states[2] = states[0]
    assert found(steps, states).broken


def test_a_shard_of_the_last_step_at_a_middle_one_is_found_by_tensor() -> None:
    states = trained(STEPS)
    states[2] = {**states[2], "first": states[-1]["first"]}
    errors = [finding for finding in found(STEPS, states).findings if finding.severity == "error"]
    (error,) = errors
    assert (error.steps, error.tensors) == ((2, 16), ("first",))


def test_a_frozen_tensor_is_a_note() -> None:
    states = [{**state, "first": np.eye(3)} for state in trained(STEPS)]
    (finding,) = found(STEPS, states).findings
    assert (finding.kind, finding.severity, finding.tensors) == ("frozen tensors", "note", ("first",))


@pytest.mark.parametrize("cast", [np.float16, np.int8])
def test_a_frozen_tensor_that_one_step_stores_in_another_type_is_no_mix_up(cast: type) -> None:
    states = trained(range(6))
    for state in states:
        state["frozen"] = np.linspace(1, 2, 64).reshape(8, 8)
    states[3] = {name: array.astype(cast) for name, array in states[3].items()}
    told = [one for one in found(range(6), states).findings if "frozen" in one.tensors]
    assert not any("mixed up" in one.message for one in told)
    assert any(one.kind == "type changes" for one in told)


def test_two_tensors_that_change_places_are_found() -> None:
    states = trained(STEPS)
    states[3] = {**states[3], "first": states[2]["second"], "second": states[2]["first"]}
    swapped = [finding for finding in found(STEPS, states).findings if finding.kind == "swapped tensors"]
    assert swapped[0].tensors == ("first", "second")
    assert swapped[0].steps == (2, 4)


def test_a_norm_off_its_line_is_an_outlier() -> None:
    steps = tuple(range(0, 1000, 100))
    states = trained(steps)
    states[5] = {name: 3 * array for name, array in states[5].items()}
    outlier = [finding for finding in found(steps, states).findings if finding.kind == "outliers"]
    assert [finding.steps for finding in outlier] == [(500,)]


def test_steps_that_come_twice_or_go_back_break_the_series() -> None:
    assert kinds(found((0, 100, 100), trained((0, 1, 2)))) >= {"overlapping steps"}
    assert kinds(found((0, 200, 100), trained((0, 1, 2)))) >= {"rewound steps"}
    assert found((100,), trained((0,)), noted=50).broken


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        ((0, 1, 2, 4, 8, 1000, 3000), [2000]),
        ((0, 1, 4, 8, 16), [2]),
        ((100, 200, 400, 500), [300]),
        ((500, 1000, 2000, 2123), [1500]),  # the last step of a run stands off the grid
        ((512, 1024, 1536), []),
        ((1000, 2000, 8000, 16000), [4000]),
        ((0, 1, 2, 4, 8, 16, 32), []),
        ((3, 17, 401), []),
        ((5,), []),
        ((0, 1, 2, 3, 4, 6, 7, 10, 13, 18, 24, 32, 42, 56, 75, 100), []),  # eight for each power of ten
        ((), []),
    ],
)
def test_missing_steps_are_those_the_others_lead_to_expect(steps: tuple[int, ...], missing: list[int]) -> None:
    assert missing_steps(steps) == missing


def test_a_smooth_curve_on_log_spaced_steps_has_no_outliers() -> None:
    steps = [0, *(2**power for power in range(10)), *range(1000, 10_000, 1000)]
    assert outliers(steps, [1 + np.log1p(step) for step in steps]) == []


def test_one_bad_number_is_counted_and_placed() -> None:
    states = trained(STEPS)
    states[2]["second"] = states[2]["second"].copy()
    states[2]["second"][1, 3] = np.nan
    (finding,) = found(STEPS, states).findings
    assert (finding.kind, finding.steps, finding.tensors) == ("nonfinite", (2,), ("second",))
    assert "1 numbers" in finding.message
    assert "(1, 3)" in finding.message


def test_zeros_shapes_shards_ties_and_absences_are_named() -> None:
    states = trained((0, 1))
    assert kinds(found((0, 1), [{**state, "zero": np.zeros((2, 2))} for state in states])) >= {"zero tensors"}
    assert found((0, 1), [states[0], {**states[1], "first": np.ones((2, 2))}]).broken
    assert kinds(found((0, 1), [states[0], {"first": states[1]["first"]}])) == {"absent tensors"}
    assert kinds(found((0, 1), states, missing=("a.safetensors",))) == {"missing shards"}
    assert kinds(found((0, 1), [{**state, "head": state["first"]} for state in states])) == {"tied tensors"}
    half = {name: array.astype(np.float16) for name, array in states[1].items()}
    assert kinds(found((0, 1), [states[0], half])) == {"type changes"}


FORMATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_two_zeros_are_one_content_and_numbers_are_told_apart(dtype: Any) -> None:
    plus, minus, other = (content(of_array("w", np.array(row, dtype))) for row in ([0, 1], [-0.0, 1], [0, -1]))
    assert plus.digest == minus.digest != other.digest
    assert plus.norm == 1


@pytest.mark.parametrize("dtype", FORMATS)
def test_what_is_not_finite_is_seen_in_every_format(dtype: Any) -> None:
    largest = float(ml_dtypes.finfo(dtype).max)
    assert content(of_array("w", np.array([[1, -largest]], dtype))).nonfinite == 0
    broken = content(of_array("w", np.array([[1, 2], [np.nan, 4]], dtype)))
    assert (broken.nonfinite, broken.first_nonfinite) == (1, (1, 0))
    assert np.isnan(broken.norm)


def test_a_content_does_not_depend_on_how_the_array_lies_in_memory() -> None:
    array = np.arange(12.0).reshape(3, 4)
    assert content(of_array("w", np.asfortranarray(array))) == content(of_array("w", array))
    assert content(of_array("w", array.T)).digest != content(of_array("w", array)).digest


def test_numbers_and_names_alone_make_a_content() -> None:
    ends = [
        content(of_array("w", np.array(value))).digest for value in (np.float32(1), np.arange(3), np.zeros((0, 3)))
    ]
    assert len(set(ends)) == 3
    assert content(of_array("w", np.zeros((0, 3)))).zero
