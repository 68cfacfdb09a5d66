"""What counts as evidence against a series: matrices of many numbers, and no buffer, scalar or hump of a norm."""

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import checkpoints, observe
from iclab.spectra.checkpoints.content import content
from iclab.spectra.checkpoints.tensors import of_array
from iclab.spectra.layouts.skipping import is_buffer
from iclab.spectra.observation.integrity import Integrity
from iclab.spectra.observation.trajectories import outliers
from tests.series import AT, CONFIG, States, clean

FUSED = AT + "attn.c_attn.weight"


def found(states: States) -> Integrity:
    series = checkpoints.of_states(list(states.values()), list(states), config=CONFIG)
    return observe(series).integrity


@pytest.mark.parametrize(
    "name",
    [
        "blocks.0.attn.IGNORE", "blocks.0.attn.mask", "h.0.attn.bias", "h.0.attn.masked_bias", "attn_mask",
        "causal_mask", "tril", "rotary_emb.inv_freq", "rotary_emb.original_inv_freq", "freqs_cis", "rope.cos_cached",
        "rotary_sin", "embeddings.position_ids", "bn.num_batches_tracked", "global_step", "alibi_slopes",
    ],
)  # fmt: skip
def test_masks_tables_and_counters_are_buffers(name: str) -> None:
    assert is_buffer(name)
    assert is_buffer(f"module.{name}")


@pytest.mark.parametrize(
    "name", ["h.0.attn.c_attn.bias", "h.0.ln_1.bias", "mask_token", "steps.0.weight", "cos.weight", "lm_head.bias"]
)
def test_parameters_are_no_buffers(name: str) -> None:
    assert not is_buffer(name)


def test_buffers_and_counters_that_repeat_or_are_not_finite_are_no_evidence() -> None:
    states = clean("steady", 5)
    for index, state in enumerate(states.values()):
        state["h.0.attn.IGNORE"] = np.array(-np.inf, np.float32)
        state["rope.cos_cached"] = np.full((8, 8), float(index % 2), np.float32)
        state["tokens_seen"] = np.array(index % 3)
        state["some.window"] = np.where(np.tril(np.ones((8, 8))) > 0, 0, -np.inf).astype(np.float32)
    notes = found(states).findings
    assert {(one.kind, one.tensors) for one in notes} == {
        ("constant infinities", ("some.window",)),
        ("frozen tensors", ("some.window",)),
    }
    assert {one.severity for one in notes} == {"note"}


@pytest.mark.parametrize("broken", [np.inf, -np.inf, np.nan])
def test_infinities_that_come_later_and_numbers_that_are_none_stay_errors(broken: float) -> None:
    states = clean("steady", 5)
    states[800][FUSED] = np.full((16, 48), broken, np.float32)
    assert [one.steps for one in found(states).findings if one.kind == "nonfinite"] == [(800,)]
    states = clean("steady", 5)
    for state in states.values():
        state["constant"] = np.full((8, 8), np.nan, np.float32)
    assert found(states).broken


@pytest.mark.parametrize(
    ("name", "values", "dtype", "severity"),
    [
        ("scale", np.array(2.0), np.float32, "note"),
        ("gain", np.ones(64), ml_dtypes.bfloat16, "note"),
        ("gain", np.ones(16), np.float32, "note"),
        ("small.weight", np.ones((4, 4)), ml_dtypes.bfloat16, "note"),
        ("small.weight", np.ones((4, 4)), np.float32, "error"),
        ("large.weight", np.ones((32, 32)), ml_dtypes.bfloat16, "error"),
        ("large.bias", np.ones(256), np.float32, "error"),
    ],
)
def test_only_many_numbers_that_return_are_a_mix_up(name: str, values, dtype: type, severity: str) -> None:
    states = clean("steady", 5)
    for index, (step, state) in enumerate(states.items()):
        state[name] = np.asarray((1 + 0.01 * index * (step != 500)) * values, dtype)
    (finding,) = found(states).findings
    assert (finding.severity, finding.steps, finding.tensors) == (severity, (0, 500), (name,))


def test_a_series_of_one_more_tensor_of_a_mixed_up_shard_is_one_finding() -> None:
    states = clean("steady", 5)
    states[300] = {**states[300], **{n: a for n, a in states[700].items() if "mlp" in n or "ln_1" in n}}
    (finding,) = found(states).findings
    assert (finding.severity, finding.steps, len(finding.tensors)) == ("error", (300, 700), 4)


@pytest.mark.parametrize(
    ("steps", "norms"),
    [
        ((0, 1, 2, 4, 8, 16, 32), (1.0, 1.0, 1.2, 2.5, 4.0, 4.2, 4.2)),  # a fast rise at early steps
        ((0, 100, 200, 300, 400, 500), (1.0, 5.0, 5.2, 5.3, 5.3, 5.3)),  # all of it before the second checkpoint
        ((0, 100, 200, 300, 400, 500), (5.0, 1.0, 0.9, 0.9, 0.9, 0.9)),
        ((0, 100, 200, 300, 400, 500, 600), (1.0, 2.0, 3.0, 2.2, 1.7, 1.5, 1.4)),  # a hump
        ((0, 100, 200, 300, 400, 500, 600), (1.0, 1.2, 1.9, 1.25, 1.15, 1.1, 1.1)),  # a sharp one
        ((0, 1, 10, 100, 1000, 10_000), (1.0, 1.0, 1.1, 2.0, 4.0, 30.0)),
    ],
)
def test_norms_of_healthy_runs_have_no_outliers(steps: tuple[int, ...], norms: tuple[float, ...]) -> None:
    assert outliers(steps, norms) == []
    assert outliers(steps, [1e-300 * norm for norm in norms]) == []


@pytest.mark.parametrize("factor", [0.1, 0.7, 1.4, 3.0])
@pytest.mark.parametrize("at", [1, 4, 8])
def test_one_norm_off_the_others_is_an_outlier(factor: float, at: int) -> None:
    norms = 1 + 0.02 * np.arange(10.0)
    norms[at] *= factor
    assert outliers(range(0, 1000, 100), norms.tolist()) == [at]


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1e-100, 1e150])
def test_a_series_that_is_only_rescaled_has_the_findings_of_the_other(scale: float) -> None:
    states = clean("steady", 6)
    scaled = {s: {n: scale * a.astype(float) for n, a in state.items()} for s, state in states.items()}
    assert found(scaled) == found(states) == Integrity(())
    one = content(of_array("w", scaled[0][FUSED]))
    assert_allclose(one.norm, scale * np.linalg.norm(states[0][FUSED].astype(float)), rtol=1e-12)
    assert not one.zero


@pytest.mark.parametrize(
    ("dtype", "values", "nans", "infinite"),
    [
        (np.float32, [np.nan, np.inf, -np.inf, 1], 1, 2),
        (ml_dtypes.bfloat16, [np.nan, np.nan, -np.inf, 1], 2, 1),
        (ml_dtypes.float8_e5m2, [np.nan, np.inf, 2, 1], 1, 1),
        (ml_dtypes.float8_e4m3fn, [np.nan, 3, 2, 1], 1, 0),
    ],
)
def test_numbers_that_are_none_and_infinities_are_counted_apart(dtype, values, nans: int, infinite: int) -> None:
    one = content(of_array("w", np.array(values).astype(dtype)))
    assert (one.nans, one.nonfinite - one.nans) == (nans, infinite)
