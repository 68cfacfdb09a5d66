"""Claims on made-up results: what they measure, what they would notice, and what they say of missing parts."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from iclab.claims import (
    Agrees,
    Bounded,
    Claim,
    ExactInRate,
    Misses,
    RestsAtLevels,
    RestsTend,
    Share,
    Tends,
    Verdict,
    excused,
    noticing,
)
from iclab.claims.extrapolation import extrapolated
from iclab.numerics.curves import rests_and_drops

TIME = np.geomspace(0.1, 1000, 400)
SEEDS = 6


def staircase(time: np.ndarray, *, scale: float = 1.0, floor: float = 0.1) -> np.ndarray:
    """Loss 1, a drop to 0.5 at `scale` × 10, a drop to `floor` at `scale` × 100."""
    steps = 0.5 / (1 + (time / (10 * scale)) ** 24) + (0.5 - floor) / (1 + (time / (100 * scale)) ** 24)
    return steps + floor


def test_rests_are_the_plateaus_and_drops_the_passing_of_their_middles() -> None:
    rests, drops = rests_and_drops(TIME, staircase(TIME), np.array([1.0, 0.5, 0.1]))
    assert_allclose(rests, [0.5, 0.1], atol=1e-3)  # the tails of the drops at the flattest point
    assert_allclose(drops, [10, 100], rtol=2e-3)  # one spacing of the records is 2 %, linear in between


def test_a_drop_that_never_comes_is_not_a_number() -> None:
    rests, drops = rests_and_drops(TIME, staircase(TIME, scale=30), np.array([1.0, 0.5, 0.1]))
    assert np.isnan(drops[1])
    assert_allclose(rests[0], staircase(TIME, scale=30)[-1], rtol=1e-12)


def test_levels_that_repeat_at_the_end_have_no_drop_between_them() -> None:
    rests, drops = rests_and_drops(TIME, staircase(TIME), np.array([1.0, 0.5, 0.1, 0.1]))
    assert_allclose(rests, [0.5, 0.1, np.nan], atol=1e-3)
    assert_allclose(drops, [10, 100, np.nan], rtol=2e-3)


def tree(**groups: xr.Dataset) -> xr.DataTree:
    return xr.DataTree.from_dict({name.replace("__", "/"): one for name, one in groups.items()})


def modes(bias: float = 0.0, scatter: float = 1e-3, seeds: int = SEEDS) -> xr.DataTree:
    """Three modes of theory, and their drawn sizes with a relative bias."""
    known, rng = np.array([3.0, 1.0, 0.2]), np.random.default_rng(0)
    drawn = known * (1 + bias + scatter * rng.standard_normal((seeds, 3)))
    return tree(
        theory__end=xr.Dataset({"strength": ("mode", known), "null": ((), 0.1)}),
        simulation__end=xr.Dataset({"strength": (("seed", "mode"), drawn)}, {"seed": np.arange(seeds)}),
    )


@pytest.mark.parametrize(("bias", "outcome"), [(0.0, "holds"), (0.012, "open"), (0.05, "does not hold")])
def test_agreement_is_judged_in_the_worst_entry(bias: float, outcome: str) -> None:
    verdict = Agrees("end/strength", "It agrees.", 0.01).verdict(modes(bias, scatter=0.003))
    assert verdict.outcome == outcome
    assert verdict.relative
    assert (verdict.value <= 0.01) == (outcome == "holds")


def test_a_floor_raises_the_height_of_a_deviation() -> None:
    whole, above = (Agrees("end/strength", "It agrees.", 0.02, floor=floor) for floor in (0.0, "end/null"))
    result = modes(0.005, scatter=1e-5)
    assert_allclose(whole.verdict(result).value, 0.005, rtol=0.02)
    assert_allclose(above.verdict(result).value, 0.005 * 0.2 / (0.2 - 0.1), rtol=0.02)


def test_agreement_would_notice_its_tolerance_in_every_mode() -> None:
    verdict = noticing(Agrees("end/strength", "It agrees.", 0.01), modes())
    (resolution,) = verdict.notices.values()
    assert_allclose([resolution.up, resolution.down], [0.01 / 0.99, 0.01 / 1.01], rtol=1e-5)
    assert resolution.refuted_up > resolution.up
    assert verdict.noticed == "end/strength 1 %"
    coarse = Agrees("end/strength", "It agrees.", 0.01, unit="range").resolution(modes())
    assert_allclose(coarse["theory/end/strength"].up, 0.01 * 3.0 / 0.2, rtol=1e-3)  # of the weakest mode


def test_deviations_are_judged_in_the_range_of_their_mode() -> None:
    groups = modes().to_dict()
    theory = xr.Dataset({"strength": (("time", "mode"), [[3.0, 1.0, 0.2], [0.0, 0.0, 0.1]])})
    drawn = groups["/simulation/end"].strength.expand_dims(time=2).transpose("seed", "time", "mode")
    shifted = xr.Dataset({"strength": theory.strength + 0.01 + 0 * drawn})
    result = xr.DataTree.from_dict({"/theory/end": theory, "/simulation/end": shifted})
    claim = Agrees("end/strength", "It agrees.", 0.06, unit="mode")
    assert_allclose(claim.verdict(result).value, 0.01 / 0.2, rtol=1e-6)
    (resolution,) = claim.resolution(result).values()
    assert_allclose([resolution.up, resolution.down], [0.06 / 0.94, 0.06 / 1.06], rtol=1e-4)  # in every mode alike


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_theory_off_by_the_resolution_does_not_hold(sign: float) -> None:
    claim, result = Agrees("end/strength", "It agrees.", 0.01), modes(scatter=1e-5)
    one = claim.resolution(result)["theory/end/strength"]
    for size, holds in ((0.98, True), (1.02, False)):
        groups = result.to_dict()
        change = 1 + sign * size * (one.up if sign > 0 else one.down)
        wrong = groups["/theory/end"].assign(strength=change * groups["/theory/end"].strength)
        assert claim.verdict(xr.DataTree.from_dict({**groups, "/theory/end": wrong})).holds == holds


def shrinking(orders: tuple[float, float], left: float = 0.0, scatter: float = 1e-4) -> xr.DataTree:
    """A variable whose relative gap is a power of the size, with a next order, and something left."""
    sizes, rng = np.array([16.0, 32.0, 64.0, 128.0]), np.random.default_rng(1)
    gap = left + 0.8 * sizes ** -orders[0] + 0.3 * sizes ** -orders[1]
    drawn = 2.0 * (1 + gap + scatter * rng.standard_normal((SEEDS, 4)))
    return tree(
        theory__limit=xr.Dataset({"error": ((), 2.0)}),
        simulation__runs=xr.Dataset(
            {"error": (("seed", "dimension"), drawn)}, {"seed": np.arange(SEEDS), "dimension": sizes}
        ),
    )


@pytest.mark.parametrize(("left", "outcome"), [(0.0, "holds"), (0.02, "does not hold"), (-0.02, "does not hold")])
def test_a_limit_is_judged_by_what_is_left_of_the_gap(left: float, outcome: str) -> None:
    claim = Tends("runs/error", "It tends to the limit.", 0.01, along="dimension", theory="limit/error")
    assert claim.verdict(shrinking((1.0, 2.0), left)).outcome == outcome


def test_sizes_of_another_order_are_open() -> None:
    claim = Tends("runs/error", "It tends to the limit.", 0.01, along="dimension", theory="limit/error")
    assert not claim.verdict(shrinking((0.3, 0.5), scatter=1e-5)).holds
    groups = shrinking((1.0, 2.0)).to_dict()
    two = xr.DataTree.from_dict({**groups, "/simulation/runs": groups["/simulation/runs"].isel(dimension=[0, 1])})
    assert claim.verdict(two).word == "open: 3 sizes or more are needed"


def test_the_intercept_is_that_of_exact_powers() -> None:
    sizes = np.array([10.0, 20.0, 40.0])
    gaps = np.broadcast_to(0.3 + 2 / sizes, (3, 1, 3))
    found = extrapolated(gaps, sizes)
    assert_allclose(found.gap, 0.3, rtol=1e-12)
    assert_allclose(found.model, 0.0, atol=1e-12)
    scattered = gaps[:, :, [0, 1, 2, 2, 2, 2]] + 1e-5 * np.random.default_rng(0).standard_normal((3, 1, 6))
    zigzag = np.array([1, -1, 1, -1, 1, -1])
    many = np.array([10.0, 20.0, 40.0, 40.0, 40.0, 40.0])
    assert extrapolated(scattered, many).fits
    assert not extrapolated(scattered + 0.01 * zigzag, many).fits
    bent = extrapolated(gaps + 5 / sizes**2, sizes)
    assert np.all(abs(bent.gap - 0.3) <= bent.model * (1 + 1e-9))


def descents(drag: float = 1.0) -> xr.DataTree:
    """Curves at three rates that tend to a flow, or to one with a wrong drag."""
    rates, dims = np.array([0.1, 0.05, 0.01]), {"time": TIME, "seed": [0, 1]}
    flow, wrong = (staircase(TIME, scale=scale) for scale in (1.0, drag))
    by_rate = flow + 0.3 * rates[:, None] * np.sin(TIME)
    by_size = np.stack([flow * (1 + 0.1 / size) for size in (100.0, 1000.0, 10000.0)])
    both = np.ones((2, 1, 1)) * (1 + 1e-6 * np.arange(2)[:, None, None])
    return tree(
        theory__flow=xr.Dataset({"loss": (("seed", "time"), np.stack([wrong, wrong]))}, dims),
        theory__levels=xr.Dataset({"loss": ("plateau", [1.0, 0.5, 0.1])}),
        simulation__rates=xr.Dataset({"loss": (("seed", "rate", "time"), both * by_rate)}, {**dims, "rate": rates}),
        simulation__sequences=xr.Dataset(
            {"loss": (("seed", "sequences", "time"), both * by_size)}, {**dims, "sequences": [100, 1000, 10000]}
        ),
    )


@pytest.mark.parametrize(("drag", "outcome"), [(1.0, "holds"), (1.01, "does not hold")])
def test_descent_is_extrapolated_to_its_flow(drag: float, outcome: str) -> None:
    assert ExactInRate().verdict(descents(drag)).outcome == outcome


def test_a_flow_whose_curve_is_off_by_the_tolerance_would_be_noticed() -> None:
    (one,) = ExactInRate().resolution(descents()).values()
    assert_allclose(one.up, 1e-3 * 1.0, rtol=0.01)  # the curve begins at 1, its range from 0


def test_rests_are_judged_against_levels() -> None:
    result = descents()
    assert RestsAtLevels().verdict(result).outcome == "holds"
    assert RestsTend().verdict(result).outcome == "holds"
    groups = result.to_dict()
    for change, outcome in ((1.02, "does not hold"), (1.0, "holds")):
        levels = groups["/theory/levels"] * xr.DataArray([1.0, change, 1.0], dims="plateau")
        assert RestsAtLevels().verdict(xr.DataTree.from_dict({**groups, "/theory/levels": levels})).outcome == outcome


def test_a_level_that_is_never_reached_is_open() -> None:
    groups = descents().to_dict()
    levels = xr.Dataset({"loss": ("plateau", [1.0, 0.5, 0.1, 0.01])})
    verdict = RestsAtLevels().verdict(xr.DataTree.from_dict({**groups, "/theory/levels": levels}))
    assert verdict.word == "open: the flow does not rest after drop 3: try more steps, or a smaller start"
    assert verdict.number == "≤ ∞"


def told(result: xr.DataTree, *, steps: float, made: int, rate: float = 0.1, stable: float = 0.04) -> xr.DataTree:
    """A result whose theory knows the largest stable rate and the steps until training is done."""
    limits = xr.Dataset(
        {"steps": ("seed", [0.5 * steps, steps]), "rate": ("seed", [stable, stable])}, {"seed": [0, 1]}
    )
    found = xr.DataTree.from_dict({**result.to_dict(), "/theory/limits": limits})
    found.attrs["case"] = json.dumps({"steps": made, "rate": rate})
    return found


def tried(claim: Claim, result: xr.DataTree) -> Verdict:
    return excused(claim, claim.verdict(result), result)


def changed(result: xr.DataTree, group: str, **variables: object) -> xr.DataTree:
    groups = result.to_dict()
    return xr.DataTree.from_dict({**groups, group: groups[group].assign(variables)})


def test_of_a_run_that_ends_early_the_steps_to_try_are_named() -> None:
    short = changed(descents(), "/theory/levels", loss=("plateau", [1.0, 0.5, 0.05]))
    for claim in (RestsAtLevels(), RestsTend()):
        done = tried(claim, told(short, steps=500, made=1000))
        assert done.word in ("does not hold", "open: the flow itself is not at its level after drop 2")
        ended = tried(claim, told(short, steps=2120, made=1000))
        assert ended.word == (
            "open: training ends before the last drop, try --steps 2600 (a default run is kept to about a minute)"
        )
        assert tried(claim, told(descents(), steps=2120, made=1000)).outcome == "holds"
    assert "larger one" in tried(RestsTend(), told(short, steps=np.inf, made=1000)).reason
    wrong = descents(drag=1.01)
    assert (
        tried(ExactInRate(), told(wrong, steps=2120, made=1000, stable=1)).outcome == "does not hold"
    )  # at every step


def test_of_a_drawn_run_that_rises_the_rate_to_try_is_named() -> None:
    loss = descents()["simulation/sequences"].loss
    high = changed(descents(), "/simulation/sequences", loss=loss * (1 + 0.5 * (loss.time > 500)))
    assert tried(RestsTend(), high).word == ("open: the rate is too large for this training set, try a smaller one")
    verdict = tried(RestsTend(), told(high, steps=1, made=10))
    assert verdict.word == "open: the rate is too large for this training set, try ≤ 0.033"
    assert tried(RestsTend(), told(descents(), steps=1, made=10)).outcome == "holds"
    away = changed(descents(), "/simulation/sequences", loss=loss * (1 - 0.3 * (loss < 0.3)))
    assert tried(RestsTend(), away).outcome == "does not hold"  # too low, but it never rises


def test_descent_on_the_moments_that_rises_is_open_for_its_rate() -> None:
    loss = descents()["simulation/rates"].loss
    high = changed(descents(), "/simulation/rates", loss=loss + 0.3 * (loss.time > 500) * (loss.rate > 0.06))
    assert tried(ExactInRate(), told(high, steps=1, made=10, rate=0.9)).word == (
        "open: the rate is too large for this training set, try ≤ 0.04"
    )


def test_levels_closer_than_a_claim_can_tell_are_one() -> None:
    near = changed(descents(), "/theory/levels", loss=("plateau", [1.0, 0.5, 0.1005]))
    both = xr.DataTree.from_dict(
        {
            **near.to_dict(),
            "/theory/levels": xr.Dataset({"loss": ("plateau", [1.0, 0.505, 0.5, 0.1005, 0.1])}),
        }
    )
    for claim in (RestsAtLevels(), RestsTend()):
        assert claim.verdict(both).outcome == "holds"
        assert dict(claim.verdict(both).evidence)["entries"] == "2"


def test_a_drop_that_follows_too_soon_leaves_its_level_open() -> None:
    result, time = descents(), xr.DataArray(TIME, dims="time")
    hurried = 0.5 / (1 + (time / 10) ** 4) + 0.4 / (1 + (time / 30) ** 4) + 0.1
    flow = changed(result, "/theory/flow", loss=hurried.expand_dims(seed=2))
    verdict = RestsAtLevels().verdict(flow)
    assert verdict.word == "open: the flow itself is not at its level after drop 1"


def test_a_seed_whose_flow_takes_two_drops_as_one_says_nothing_of_the_first() -> None:
    result, time = descents(), xr.DataArray(TIME, dims="time")
    hurried = 0.5 / (1 + (time / 10) ** 4) + 0.4 / (1 + (time / 30) ** 4) + 0.1
    groups, again = result.to_dict(), {"/simulation/sequences": (0, 1, 1), "/theory/flow": (0, 1, 1)}
    for path, seeds in again.items():
        groups[path] = groups[path].isel(seed=list(seeds)).assign_coords(seed=[0, 1, 2]).copy(deep=True)
        groups[path].loss[2] = hurried if path == "/theory/flow" else hurried * (1 + 0.1 / groups[path].sequences)
    three = xr.DataTree.from_dict(groups)
    for claim in (RestsAtLevels(), RestsTend()):
        assert claim.verdict(three).outcome == "holds"
        lower = changed(three, "/theory/levels", loss=("plateau", [1.0, 0.43, 0.1]))
        assert not claim.verdict(lower).holds  # by the two others


def test_a_time_that_never_comes_in_a_seed_is_missing_there() -> None:
    groups = modes(seeds=16).to_dict()
    never = groups["/simulation/end"].copy(deep=True)
    for seeds, word in ((1, "open: mode 2 is there in 15 of 16 seeds"), (16, "does not hold")):
        never.strength[:seeds, 1] = np.inf
        result = xr.DataTree.from_dict({**groups, "/simulation/end": never})
        assert Agrees("end/strength", "It agrees.", 0.01).verdict(result).word == word


def counted(values: list[float]) -> xr.DataTree:
    return tree(
        theory__drops=xr.Dataset({"count": ((), 1.0)}),
        simulation__drops=xr.Dataset({"count": ("seed", values)}, {"seed": np.arange(len(values))}),
    )


def test_bounds_are_judged_with_the_scatter_of_seeds() -> None:
    near = counted([0.9, 1.0, 1.1])
    assert Bounded("drops/count", "Small.", 1.3).verdict(near).outcome == "holds"
    assert Bounded("drops/count", "Small.", 1.1).verdict(near).outcome == "open"
    assert Bounded("drops/count", "Large.", 0.7, at_most=False).verdict(near).outcome == "holds"
    assert Bounded("drops/count", "Large.", 9.0, at_most=False).verdict(near).outcome == "does not hold"
    assert_allclose(Bounded("drops/count", "Small.", 1.3).verdict(near).value, 1 + 2.92 * 0.1 / 3**0.5, rtol=1e-3)


def test_shares_are_judged_by_their_lower_bound() -> None:
    assert Share("drops/count", "Once.").verdict(counted([1, 1, 1])).outcome == "holds"
    assert Share("drops/count", "Once.", least=0.6).verdict(counted([1, 1, 1])).outcome == "open"
    assert Share("drops/count", "Once.", least=0.6).verdict(counted([2.0] * 12)).outcome == "does not hold"


def test_an_approximation_misses_by_the_factor_of_its_worst_entry() -> None:
    groups = modes(scatter=0.01).to_dict()
    theory = groups["/theory/end"].assign(strength=("mode", [3.0, 1.0, 1.0]))
    result = xr.DataTree.from_dict({**groups, "/theory/end": theory})
    assert Misses("end/strength", "It is off.", factor=4.0).verdict(result).outcome == "holds"
    assert Misses("end/strength", "It is off.", factor=6.0).verdict(result).outcome == "does not hold"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "claim", [Agrees("end/strength", "It agrees.", 0.01), Bounded("end/strength", "Small.", 9.0)]
)
def test_one_seed_and_constant_or_missing_entries_raise_no_warning(claim: Claim) -> None:
    assert claim.verdict(modes(seeds=1)).outcome == "open"
    assert claim.verdict(modes(scatter=0.0)).outcome == "holds"
    groups = modes().to_dict()
    missing = groups["/simulation/end"].copy(deep=True)
    missing.strength[0, 0] = np.nan
    assert claim.verdict(xr.DataTree.from_dict({**groups, "/simulation/end": missing})).outcome == "open"


@pytest.mark.filterwarnings("error")
def test_a_theory_of_zero_needs_a_tolerance_in_its_own_unit() -> None:
    groups = modes(scatter=1e-3).to_dict()
    zero = groups["/theory/end"].assign(strength=("mode", np.zeros(3)))
    result = xr.DataTree.from_dict({**groups, "/theory/end": zero})
    assert Agrees("end/strength", "It agrees.", 0.01).verdict(result).reason.startswith("theory is zero")
    assert Agrees("end/strength", "It agrees.", 0.01, unit="one").verdict(result).outcome == "does not hold"
    assert Agrees("end/strength", "It agrees.", 4.0, unit="one").verdict(result).outcome == "holds"


def test_a_verdict_reads_as_an_answer() -> None:
    verdict = Verdict("agrees with theory", "It agrees.", "largest relative deviation", 0.006, 0.01, "holds")
    assert verdict.answer == "holds; largest relative deviation: ≤ 0.6 % (95 %), asked ≤ 1 %"
    assert verdict.number == "≤ 0.6 %"
    unknown = replace(verdict, value=float("nan"), outcome="open", reason="one seed has no scatter")
    assert (unknown.number, unknown.word) == ("–", "open: one seed has no scatter")
