"""Claims on results that are odd: infinite and missing entries, theory of zero, levels too close, one seed."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from iclab.claims import (
    Agrees,
    Bounded,
    ExactInRate,
    Misses,
    RestsAtLevels,
    RestsTend,
    Share,
    Tends,
    Verdict,
    above,
)  # fmt: skip
from iclab.claims.networks import PeaksWhereFitEnds

pytestmark = pytest.mark.filterwarnings("error")
SIZES = [10, 20, 40, 80]
SCATTER = 1e-4 * np.random.default_rng(0).standard_normal((4, 4))


def result(known: np.ndarray, drawn: np.ndarray) -> xr.DataTree:
    """A loss at four sizes, and that of four seeds."""
    return xr.DataTree.from_dict({
        "theory/runs": xr.Dataset({"loss": ("sequences", np.asarray(known, dtype=float))}, {"sequences": SIZES}),
        "simulation/runs": xr.Dataset(
            {"loss": (("seed", "sequences"), drawn)}, {"sequences": SIZES, "seed": range(len(drawn))}
        ),
    })  # fmt: skip


def with_value(value: float, seeds: slice) -> np.ndarray:
    """Losses of 1 that scatter, with another value at the second size in some seeds."""
    drawn = 1 + SCATTER
    drawn[seeds, 1] = value
    return drawn


CLAIMS = [
    Agrees("runs/loss", "It agrees.", 0.03), Tends("runs/loss", "It tends.", 0.03, "sequences"),
    Bounded("runs/loss", "It is below.", 4.0), above("runs/loss", "It is above.", 0.5),
    Misses("runs/loss", "It misses.", 1.2),
]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_value_that_is_no_number_in_some_seeds_decides_nothing(claim: Agrees, value: float) -> None:
    verdict = claim.verdict(result(np.ones(4), with_value(value, slice(0, 2))))
    assert verdict.outcome == "open"
    assert "is there in 2 of 4 seeds" in verdict.reason


def test_seeds_that_are_infinite_either_way_are_missing() -> None:
    drawn = with_value(np.inf, slice(0, 2))
    drawn[2:, 1] = -np.inf
    verdict = Bounded("runs/loss", "It is below.", 4.0).verdict(result(np.ones(4), drawn))
    assert verdict.reason == "entry 2 is there in 0 of 4 seeds"


@pytest.mark.parametrize("claim", CLAIMS[:2], ids=["Agrees", "Tends"])
@pytest.mark.parametrize("known", [[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
def test_nothing_is_relative_to_a_theory_of_zero(claim: Agrees, known: list[float]) -> None:
    # 1e-18 is rounding, infinitely far from 0 in units of it
    drawn = np.where(np.array(known) == 0, 1e-18, 1.0) * np.ones((4, 1))
    verdict = claim.verdict(result(np.array(known), drawn))
    assert verdict.outcome == "open"
    assert verdict.reason.startswith("theory is zero or at its floor")


def test_a_claim_about_nothing_but_zeros_does_not_hold_by_accident() -> None:
    verdict = Agrees("runs/loss", "It agrees.", 0.03).verdict(result(np.zeros(4), np.zeros((4, 4))))
    assert verdict.outcome == "open"
    assert Agrees("runs/loss", "It agrees.", 0.03, unit="one").verdict(result(np.zeros(4), np.zeros((4, 4)))).holds


def test_another_entry_still_refutes_a_theory_that_is_zero_in_one() -> None:
    drawn = np.array([1.0, 1e-18, 1.0, 2.0]) * np.ones((4, 1))
    verdict = Agrees("runs/loss", "It agrees.", 0.03).verdict(result(np.array([1.0, 0.0, 1.0, 1.0]), drawn))
    assert verdict.outcome == "does not hold"


def test_a_limit_without_theory_in_one_cell_is_open_and_in_one_size_is_judged() -> None:
    def judged(change: Callable[[np.ndarray], None]) -> Verdict:
        known = np.array([[1.0], [2.0]]) * np.ones(4)
        drawn = known * (1 + 1 / np.array(SIZES)) + SCATTER[:, None]
        change(known)
        both = xr.DataTree.from_dict({
            "theory/runs": xr.Dataset({"loss": (("mode", "sequences"), known)}, {"sequences": SIZES}),
            "simulation/runs": xr.Dataset(
                {"loss": (("seed", "mode", "sequences"), drawn)}, {"sequences": SIZES, "seed": range(4)}
            ),
        })  # fmt: skip
        return Tends("runs/loss", "It tends.", 0.03, "sequences").verdict(both)

    def without_cell(known: np.ndarray) -> None:
        known[0, 1] = np.nan

    def without_size(known: np.ndarray) -> None:
        known[:, 0] = np.nan

    assert judged(without_cell).reason == "mode 1 is there in 0 of 4 seeds"
    assert judged(without_size).holds


def without(*entries: int) -> np.ndarray:
    known = np.ones(4)
    known[list(entries)] = np.nan
    return known


@pytest.mark.parametrize("entries", [(1,), (0, 3)])
def test_entries_of_which_theory_says_nothing_are_open_and_counted(entries: tuple[int, ...]) -> None:
    first = f"sequences {SIZES[entries[0]]}"
    verdict = Agrees("runs/loss", "It agrees.", 0.03).verdict(result(without(*entries), 1 + SCATTER))
    assert verdict.outcome == "open"
    assert (
        verdict.reason == f"theory says nothing of {len(entries)} of 4 entries that are measured, the first {first}"
    )
    assert dict(verdict.evidence)["entries"] == "4"


def test_theory_that_says_nothing_at_all_is_open() -> None:
    verdict = Agrees("runs/loss", "It agrees.", 0.03).verdict(result(without(0, 1, 2, 3), 1 + SCATTER))
    assert (verdict.outcome, "nothing of 4 of 4 entries" in verdict.reason) == ("open", True)


def test_another_entry_still_refutes_a_theory_that_says_nothing_of_one() -> None:
    drawn = 1 + SCATTER
    drawn[:, 3] += 1
    assert Agrees("runs/loss", "It agrees.", 0.03).verdict(result(without(1), drawn)).outcome == "does not hold"


def test_an_entry_that_neither_theory_nor_simulation_has_is_none() -> None:
    assert Agrees("runs/loss", "It agrees.", 0.03).verdict(result(without(1), with_value(np.nan, slice(None)))).holds


def test_points_that_a_study_leaves_out_are_not_missed() -> None:
    claim = Agrees("runs/loss", "It agrees.", 0.03, at={"sequences": [10, 40, 80]})
    assert claim.verdict(result(without(1), 1 + SCATTER)).holds


def test_points_that_differ_by_rounding_are_one() -> None:
    times = np.array([0.15, 0.3, 0.6])
    drawn = 1 + SCATTER[:, :3]
    drawn[:, 1] += 1
    both = xr.DataTree.from_dict({
        "theory/runs": xr.Dataset({"loss": ("time", np.ones(3))}, {"time": times}),
        "simulation/runs": xr.Dataset(
            {"loss": (("seed", "time"), drawn)}, {"time": 3 * (times / 3 + 1e-17) * (1 + 4e-16), "seed": range(4)}
        ),
    })  # fmt: skip
    verdict = Agrees("runs/loss", "It agrees.", 0.03).verdict(both)
    assert (verdict.outcome, dict(verdict.evidence)["entries"]) == ("does not hold", "3")


def test_a_factor_that_theory_could_not_state_is_open() -> None:
    claim = Misses("runs/loss", "It misses.", 1.2)
    assert claim.verdict(result(np.array([np.nan, 1.0, 1.0, 1.0]), 1 + SCATTER)).outcome == "open"
    assert claim.verdict(result(np.array([np.nan, 2.0, 1.0, 1.0]), 1 + SCATTER)).holds


def test_a_count_of_which_theory_says_nothing_is_open_and_not_refuted() -> None:
    claim = Share("runs/loss", "It is so.")
    assert claim.verdict(result(np.ones(4), np.ones((24, 4)))).holds
    verdict = claim.verdict(result(without(1), np.ones((24, 4))))
    assert verdict.word == "open: theory says nothing of 24 of 96 counts that are measured"
    assert claim.verdict(result(np.ones(4), np.zeros((24, 4)))).outcome == "does not hold"


def test_a_limit_and_a_flow_of_which_theory_says_nothing_are_open() -> None:
    known = np.array([[1.0], [2.0]]) * np.ones(4)
    drawn = known * (1 + 1 / np.array(SIZES)) + SCATTER[:, None]
    known[1] = np.nan
    both = xr.DataTree.from_dict({
        "theory/runs": xr.Dataset({"loss": (("mode", "sequences"), known)}, {"sequences": SIZES}),
        "simulation/runs": xr.Dataset(
            {"loss": (("seed", "mode", "sequences"), drawn)}, {"sequences": SIZES, "seed": range(4)}
        ),
    })  # fmt: skip
    verdict = Tends("runs/loss", "It tends.", 0.03, "sequences").verdict(both)
    assert verdict.reason == "theory says nothing of 1 of 2 entries that are measured, the first mode 2"
    flow = trained(4, [1.0, 0.2])
    assert ExactInRate().verdict(flow).holds
    flow["theory/flow"].loss[:, 30] = np.nan
    assert "theory says nothing of 1 of" in ExactInRate().verdict(flow).reason


TIME = np.geomspace(0.1, 100, 60)


def trained(seeds: int, levels: list[float]) -> xr.DataTree:
    """A flow that falls from the first level to the last, and descent and drawn curves that follow it."""
    flow = levels[-1] + (levels[0] - levels[-1]) / (1 + (TIME / 3) ** 6)
    several = np.broadcast_to(flow, (seeds, 4, len(TIME))) * (1 + 1e-5 * np.arange(seeds))[:, None, None]
    seed = {"seed": np.arange(seeds)}
    return xr.DataTree.from_dict({
        "theory/flow": xr.Dataset({"loss": (("seed", "time"), several[:, 0])}, {**seed, "time": TIME}),
        "theory/levels": xr.Dataset({"loss": (("seed", "plateau"), np.tile(levels, (seeds, 1)))}, seed),
        "simulation/rates": xr.Dataset(
            {"loss": (("seed", "rate", "time"), several)}, {**seed, "time": TIME, "rate": [0.1, 0.05, 0.025, 0.0125]}
        ),
        "simulation/sequences": xr.Dataset(
            {"loss": (("seed", "sequences", "time"), several)}, {**seed, "time": TIME, "sequences": SIZES}
        ),
    })  # fmt: skip


@pytest.mark.parametrize("claim", [RestsAtLevels(), RestsTend()])
def test_levels_closer_than_a_claim_can_tell_are_open(claim: RestsAtLevels) -> None:
    verdict = claim.verdict(trained(3, [1.0, 0.99999]))
    assert verdict.outcome == "open"
    assert verdict.reason == "levels of theory lie closer together than the claim can tell"


def test_one_seed_asks_for_seeds_and_not_for_rates() -> None:
    assert ExactInRate().verdict(trained(1, [1.0, 0.5])).reason == "one seed has no scatter: 2 seeds or more"
    assert ExactInRate().verdict(trained(2, [1.0, 0.5])).outcome != "open"


def test_a_training_error_of_zero_has_a_place_where_fitting_ends() -> None:
    tau = [0.5, 1.0, 2.0, 4.0]
    errors = {"icl": [1.0, 3.0, 1.0, 0.5], "train": [0.0, 1e-5, 0.1, 0.2]}
    runs = xr.Dataset(
        {name: (("seed", "dimension", "tau"), np.array(row) * np.ones((3, 1, 1))) for name, row in errors.items()},
        {"tau": tau, "dimension": [8], "seed": range(3)},
    )
    verdict = PeaksWhereFitEnds("runs", "It peaks.", 4.0).verdict(xr.DataTree.from_dict({"simulation/runs": runs}))
    assert verdict.holds
