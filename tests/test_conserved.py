"""Balance laws along a series of checkpoints, beside what layers show that have nothing to do with each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import checkpoints
from iclab.spectra.layouts import from_mapping
from iclab.spectra.observation.dynamics import MatrixSeries, SpectralDynamics
from iclab.spectra.observation.observing import observe
from iclab.spectra.observation.selection import Selection

WIDTH, DIM, HEADS, SHARED = 12, 4, 4, 2
PARTS = {"q": HEADS * DIM, "k": SHARED * DIM, "v": SHARED * DIM}


def layout(**extra: object):
    tensors = [{"match": rf"(?P<layer>\d+)\.{part}\.weight", "role": part} for part in "qkvo"]
    return from_mapping({"heads": HEADS, "kv_heads": SHARED, "head_dim": DIM, "tensor": tensors, **extra})


def drawn(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {f"0.{part}.weight": rng.standard_normal((rows, WIDTH)) for part, rows in PARTS.items()}
    return {**found, "0.o.weight": rng.standard_normal((WIDTH, HEADS * DIM))}


def balanced(along: float) -> dict[str, np.ndarray]:
    """Queries cosh and keys sinh of `along` in one frame, likewise values and outputs: both laws hold for any."""
    frame = np.linalg.qr(np.random.default_rng(0).standard_normal((WIDTH, WIDTH)))[0]
    grown = np.diag(np.exp(along * np.arange(1, DIM + 1)))
    shrunk = np.diag(np.exp(-along * np.arange(1, DIM + 1)))
    more, less = ((grown + sign * shrunk) / 2 for sign in (1, -1))
    group = HEADS // SHARED
    return {
        "0.q.weight": np.concatenate([more @ frame[:DIM]] * HEADS) / np.sqrt(group),
        "0.k.weight": np.concatenate([less @ frame[:DIM]] * SHARED),
        "0.v.weight": np.concatenate([more @ frame[DIM : 2 * DIM]] * SHARED),
        "0.o.weight": np.concatenate([frame[:, :DIM] @ less] * HEADS, axis=1) / np.sqrt(group),
    }


def seen(states: list[dict[str, np.ndarray]], given=None, **chosen) -> SpectralDynamics:
    series = checkpoints.of_states(states, list(range(len(states))))
    return observe(series, given or layout(), selection=Selection(measures=("balance",), **chosen))


def track(dynamics: SpectralDynamics, role: str, head: int | None = 0) -> MatrixSeries:
    return next(one for one in dynamics.matrices if (one.role, one.head) == (role, head))


@pytest.mark.parametrize("extra", [{}, {"rotary": {"fraction": 0.5, "pairing": "half"}}], ids=["plain", "rotary"])
def test_a_series_that_keeps_the_laws_reads_zero(extra: dict) -> None:
    dynamics = seen([balanced(along) for along in (0.1, 0.2, 0.4)], layout(**extra))
    assert len(dynamics.matrices) == 2 * SHARED
    for one in dynamics.matrices:
        values = one.curves["imbalance_since_first"].values
        assert np.isnan(values[0])  # nothing has moved
        assert_allclose(values[1:], 0.0, atol=1e-13)


def test_imbalance_is_that_of_the_dense_grams() -> None:
    first, last = drawn(0), drawn(1)
    dynamics = seen([first, last])

    def grams(state: dict[str, np.ndarray], head: int) -> tuple[np.ndarray, ...]:
        own, group = slice(DIM * head, DIM * (head + 1)), slice(2 * DIM * head, 2 * DIM * (head + 1))
        query, key = state["0.q.weight"][group].reshape(2, DIM, WIDTH), state["0.k.weight"][own]
        value, output = state["0.v.weight"][own], state["0.o.weight"][:, group].reshape(WIDTH, 2, DIM)
        read = sum(one @ one.T for one in query)
        return read, read - key @ key.T, value @ value.T, value @ value.T - np.einsum("ngd,nge->de", output, output)

    for head in range(SHARED):
        change = [after - before for before, after in zip(grams(first, head), grams(last, head), strict=True)]
        moved, law, carried, other = map(np.linalg.norm, change)
        assert track(dynamics, "QK balance", head).curves["imbalance_since_first"].values[1] == pytest.approx(
            law / moved
        )
        assert track(dynamics, "OV balance", head).curves["imbalance_since_first"].values[1] == pytest.approx(
            other / carried
        )


@pytest.mark.parametrize("extra", [{}, {"rotary": {"fraction": 1.0, "pairing": "half"}}], ids=["plain", "rotary"])
def test_the_level_is_that_of_layers_drawn_whole(extra: dict) -> None:
    runs = [seen([drawn(2 * seed), drawn(2 * seed + 1)], layout(**extra)) for seed in range(100)]
    for role in ("QK balance", "OV balance"):
        values = [track(run, role, head).curves["imbalance_since_first"].values[1] for run in runs for head in (0, 1)]
        curve = track(runs[0], role).curves["imbalance_since_first"]
        error = curve.spread * np.sqrt(1 / 32 + 1 / len(values))  # of the mean of 32 draws and of that of the runs
        assert np.mean(values) == pytest.approx(curve.null, abs=4 * error)
        assert np.std(values) == pytest.approx(curve.spread, rel=0.5)  # 4 errors of a spread from 32 draws


def test_chosen_heads_have_the_laws_of_the_key_heads_they_read() -> None:
    assert {one.head for one in seen([drawn(0), drawn(1)], heads=(3,)).matrices} == {1}


def test_numbers_that_are_not_finite_are_said() -> None:
    broken = drawn(1)
    broken["0.k.weight"][0, 0] = np.nan
    dynamics = seen([drawn(0), broken, drawn(2)])
    rows = [row for row in dynamics.rows() if row.step == 1]
    assert len(rows) == 2 * SHARED
    assert all(np.isnan(row.value) and row.status == "nonfinite" for row in rows)
    assert np.isfinite(track(dynamics, "QK balance").curves["imbalance_since_first"].values[2])
