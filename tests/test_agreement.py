"""Orders, rests and drops: what verdicts are made of."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from iclab.claims import (
    ExactInRate,
    Limit,
    LimitInSequences,
    Misses,
    RestsNearLevels,
    Share,
    Vanishes,
    Verdict,
    Within,
    WithinErrors,
    fitted_order,
)
from iclab.numerics.curves import rests_and_drops

TIME = np.geomspace(0.1, 1000, 400)


def staircase(time: np.ndarray, *, scale: float = 1.0, floor: float = 0.1) -> np.ndarray:
    """Loss 1, a drop to 0.5 at `scale` × 10, a drop to `floor` at `scale` × 100."""
    steps = 0.5 / (1 + (time / (10 * scale)) ** 24) + (0.5 - floor) / (1 + (time / (100 * scale)) ** 24)
    return steps + floor


def verdict_of(value: float) -> Verdict:
    return Verdict("claim", "It is so.", "measure", value, 0.75, ())


def test_the_order_of_a_power_is_its_exponent() -> None:
    sizes = np.array([1.0, 2.0, 8.0])
    assert_allclose(fitted_order(sizes, 3 * sizes**1.5), 1.5, rtol=1e-12)


@pytest.mark.parametrize("gaps", [[1.0, 0.5], [1.0, 0.0, 0.1], [1.0, np.nan, 0.1], [np.inf, 1.0, 0.1]])
def test_too_few_sizes_or_gaps_without_size_have_no_order(gaps: list[float]) -> None:
    assert np.isnan(fitted_order(np.arange(1.0, len(gaps) + 1), np.array(gaps)))


@pytest.mark.parametrize(("value", "word"), [(0.75, "holds"), (0.74, "does not hold"), (np.nan, "open")])
def test_a_verdict_holds_from_its_yardstick_on(value: float, word: str) -> None:
    assert verdict_of(value).word == word
    assert verdict_of(value).holds == (word == "holds")


def test_a_number_is_shown_with_its_error_if_it_has_one() -> None:
    assert verdict_of(0.84).number == "0.840"
    assert replace(verdict_of(0.84), error=0.1).number == "0.840 ± 0.10"


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


def result_of(gap_of_rate: float, gap_of_size: float) -> xr.DataTree:
    """A labeled result whose gaps are powers of the rate and of the number of sequences."""
    loss = staircase(TIME)
    rates, sizes = np.array([0.1, 0.05, 0.01]), np.array([100, 1000, 10000])
    dims = {"time": TIME, "seed": [0]}
    by_rate = loss + 0.3 * rates[:, None] ** gap_of_rate * np.sin(TIME)
    by_size = loss * (1 + 0.1 * sizes[:, None].astype(float) ** -gap_of_size)
    return xr.DataTree.from_dict(
        {
            "theory/flow": xr.Dataset({"loss": (("seed", "time"), loss[None])}, dims),
            "theory/levels": xr.Dataset({"loss": ("plateau", [1.0, 0.5, 0.1])}),
            "simulation/rates": xr.Dataset(
                {"loss": (("seed", "rate", "time"), by_rate[None])}, {**dims, "rate": rates}
            ),
            "simulation/sequences": xr.Dataset(
                {"loss": (("seed", "sequences", "time"), by_size[None])}, {**dims, "sequences": sizes}
            ),
        }
    )


@pytest.mark.parametrize("order", [0.5, 1.0, 2.0])
def test_the_rate_claim_measures_the_order_of_the_gap(order: float) -> None:
    verdict = ExactInRate().verdict(result_of(order, 0.5))
    assert_allclose(verdict.value, order, rtol=1e-9)
    assert verdict.holds == (order >= 0.75)


@pytest.mark.parametrize("order", [0.1, 0.5])
def test_the_sequence_claim_measures_the_order_of_the_gap_in_level(order: float) -> None:
    verdict = LimitInSequences().verdict(result_of(1.0, order))
    assert_allclose(verdict.value, order, rtol=1e-6)
    assert verdict.holds == (order >= 0.25)


def test_a_shifted_drop_is_reported_and_not_mistaken_for_a_wrong_level() -> None:
    groups = result_of(1.0, 0.5).to_dict()
    loss = np.stack([staircase(TIME, scale=1.05) * (1 + size**-0.5) for size in (100.0, 1000.0, 10000.0)])
    shifted = groups["/simulation/sequences"].assign(loss=(("seed", "sequences", "time"), loss[None]))
    verdict = LimitInSequences().verdict(xr.DataTree.from_dict({**groups, "/simulation/sequences": shifted}))
    assert verdict.holds
    assert "drops at 1.05" in dict(verdict.evidence)["P = 10000"]


def test_a_verdict_with_an_upper_bound_holds_below_it() -> None:
    verdict = Verdict("claim", "It is so.", "measure", 3.9, 4.0, (), at_most=True)
    assert (verdict.word, verdict.bound) == ("holds", "≤ 4.00")
    assert not Verdict("claim", "It is so.", "measure", 4.1, 4.0, (), at_most=True).holds


def replicated(bias: float) -> xr.DataTree:
    """Twenty-five seeds of three entries around theory's, with unit spread and a bias."""
    noise = np.random.default_rng(0).standard_normal((25, 3))
    noise = (noise - noise.mean(0)) / noise.std(0, ddof=1)
    return xr.DataTree.from_dict(
        {
            "theory/curve": xr.Dataset({"loss": ("time", [1.0, 2.0, 3.0])}),
            "simulation/curve": xr.Dataset({"loss": (("seed", "time"), np.array([1.0, 2.0, 3.0]) + bias + noise)}),
        }
    )


@pytest.mark.parametrize(("bias", "word"), [(0.7, "holds"), (0.9, "does not hold")])
def test_a_bias_is_measured_in_standard_errors_of_the_mean(bias: float, word: str) -> None:
    verdict = WithinErrors("curve/loss", "It is so.").verdict(replicated(bias))
    assert_allclose(verdict.value, bias / (1 / 5), rtol=1e-9)  # 25 seeds of unit spread
    assert verdict.word == word


def test_where_theory_knows_seeds_gaps_are_taken_seed_by_seed() -> None:
    tree = replicated(0.7).to_dict()
    shift = 10.0 * np.arange(25)[:, None]
    known = {name: xr.Dataset({"loss": (("seed", "time"), np.broadcast_to(shift, (25, 3)))}) for name in "ab"}
    paired = {
        "/theory/curve": tree["/theory/curve"] + known["a"],
        "/simulation/curve": tree["/simulation/curve"] + known["b"],
    }
    verdict = WithinErrors("curve/loss", "It is so.").verdict(xr.DataTree.from_dict(paired))
    assert_allclose(verdict.value, 3.5, rtol=1e-9)


def test_two_seeds_have_no_standard_error_worth_the_name() -> None:
    few = replicated(0.0).isel(seed=slice(2))
    assert WithinErrors("curve/loss", "It is so.").verdict(few).word == "open"


@pytest.mark.parametrize(("start", "word"), [(1 / 3, "holds"), (0.3333, "does not hold")])
def test_what_no_draw_has_touched_must_agree_to_rounding(start: float, word: str) -> None:
    tree = replicated(0.0)
    tree["theory/curve"].loss[0] = 1 / 3 + 1e-16
    tree["simulation/curve"].loss[:, 0] = start
    assert WithinErrors("curve/loss", "It is so.").verdict(tree).word == word


def test_a_relative_distance_leaves_out_what_one_side_lacks() -> None:
    tree = xr.DataTree.from_dict(
        {
            "theory/drops": xr.Dataset({"drop": ("mode", [100.0, 200.0, np.nan])}),
            "simulation/drops": xr.Dataset(
                {"drop": (("seed", "mode"), [[101.0, 204.0, 300.0], [99.0, np.nan, 5.0]])}
            ),
        }
    )
    claim = Within("drops/drop", "It is so.", most=0.03)
    verdict = claim.verdict(tree)
    assert_allclose(verdict.value, 0.02, rtol=1e-12)
    assert dict(verdict.evidence)["entries compared"] == "3 of 6"


def test_a_limit_measures_the_order_of_the_gap_along_its_size() -> None:
    sizes = np.array([8, 16, 64])
    tree = xr.DataTree.from_dict(
        {
            "theory/error": xr.Dataset({"icl": ("tau", [1.0, 2.0])}, {"tau": [0.5, 2.0]}),
            "simulation/error": xr.Dataset(
                {"icl": (("seed", "dimension", "tau"), ([1.0, 2.0] + 3.0 / sizes[:, None])[None])},
                {"dimension": sizes, "tau": [0.5, 2.0], "seed": [0]},
            ),
        }
    )
    claim = Limit("error/icl", "It is so.", along="dimension", order=1.0)
    assert_allclose(claim.verdict(tree).value, 1.0, rtol=1e-9)


def by_rank(floors: tuple[float, float], shift: float) -> xr.DataTree:
    """Curves of two ranks, the second of which makes one drop; sampled ones end at `floors` and drop later."""

    def curves(ends: tuple[float, float], scale: float) -> np.ndarray:
        single = 1 - (1 - ends[1]) * TIME**24 / (TIME**24 + (50 * scale) ** 24)
        return np.stack([staircase(TIME, scale=scale, floor=ends[0]), single])

    dims = {"time": TIME, "seed": [0], "rank": [1, 2]}
    sampled = curves(floors, shift)[None, :, None]
    return xr.DataTree.from_dict(
        {
            "theory/flow": xr.Dataset({"loss": (("seed", "rank", "time"), curves((0.1, 0.1), 1.0)[None])}, dims),
            "theory/levels": xr.Dataset({"loss": (("rank", "plateau"), [[1.0, 0.5, 0.1], [1.0, 0.1, 0.1]])}),
            "simulation/sequences": xr.Dataset(
                {"loss": (("seed", "rank", "sequences", "time"), sampled)}, {**dims, "sequences": [1000]}
            ),
        }
    )


@pytest.mark.parametrize(("floors", "value"), [((0.101, 0.1), 0.01), ((0.1, 0.098), 0.02)])
def test_the_farthest_rest_of_any_rank_decides_and_the_time_of_its_drop_does_not(
    floors: tuple[float, float], value: float
) -> None:
    verdict = RestsNearLevels().verdict(by_rank(floors, shift=1.2))
    assert_allclose(verdict.value, value, rtol=0.05)  # the tail of the last drop is still 1e-4 above its floor
    assert dict(verdict.evidence)["rests compared"] == "3"
    assert verdict.holds == (value < 0.015)


def test_levels_that_the_flow_passes_without_rest_are_not_compared() -> None:
    tree = by_rank((0.1, 0.1), shift=1.0).to_dict()
    far = tree["/theory/levels"].assign(loss=tree["/theory/levels"].loss * [[1.0, 1.1, 1.0], [1.0] * 3])
    verdict = RestsNearLevels().verdict(xr.DataTree.from_dict({**tree, "/theory/levels": far}))
    assert dict(verdict.evidence)["rests compared"] == "2"


def test_the_rate_claim_takes_the_worst_of_further_axes() -> None:
    groups = result_of(1.0, 0.5).to_dict()
    both = xr.concat([groups["/simulation/rates"] * 0 + groups["/theory/flow"], groups["/simulation/rates"]], "rank")
    verdict = ExactInRate().verdict(xr.DataTree.from_dict({**groups, "/simulation/rates": both}))
    assert_allclose(verdict.value, 1.0, rtol=1e-9)


@pytest.mark.parametrize(("power", "word"), [(1.0, "holds"), (0.5, "does not hold")])
def test_a_gap_of_theory_vanishes_at_its_own_order(power: float, word: str) -> None:
    sizes = np.array([50, 200, 1000])
    gap = xr.Dataset({"gap": ("context_length", 7.0 * sizes**-power)}, {"context_length": sizes})
    claim = Vanishes("gap/gap", "It is so.", along="context_length", order=1.0)
    verdict = claim.verdict(xr.DataTree.from_dict({"theory/gap": gap}))
    assert_allclose(verdict.value, power, rtol=1e-9)
    assert verdict.word == word


@pytest.mark.parametrize(("approximation", "word"), [([1.0, 9.0], "holds"), ([1.0, 2.1], "does not hold")])
def test_an_approximation_misses_by_the_factor_of_its_worst_entry(approximation: list[float], word: str) -> None:
    tree = xr.DataTree.from_dict(
        {
            "theory/end": xr.Dataset({"strength": ("mode", approximation)}),
            "simulation/end": xr.Dataset({"strength": (("seed", "mode"), [[0.9, 2.0], [1.1, 2.0]])}),
        }
    )
    verdict = Misses("end/strength", "It is so.", factor=4.0).verdict(tree)
    assert_allclose(verdict.value, approximation[1] / 2.0, rtol=1e-12)


def test_what_is_predicted_and_never_found_is_infinitely_far() -> None:
    groups = {
        "theory/points": xr.Dataset({"loss": ("point", [1.0, np.inf])}),
        "simulation/points": xr.Dataset({"loss": (("seed", "point"), [[np.inf, np.inf]])}),
    }
    verdict = Within("points/loss", "It is so.", most=0.1).verdict(xr.DataTree.from_dict(groups))
    assert verdict.word == "does not hold"
    assert dict(verdict.evidence)["entries compared"] == "1 of 2"  # what both sides say never comes is left out


@pytest.mark.parametrize(("counts", "word"), [([1, 1, 2], "holds"), ([1, 2, 2], "does not hold")])
def test_counts_are_judged_by_the_share_of_seeds_that_agree(counts: list[int], word: str) -> None:
    groups = {
        "theory/drops": xr.Dataset({"merged": ("seed", [1, 1, 1])}),
        "simulation/drops": xr.Dataset({"merged": ("seed", counts)}),
    }
    verdict = Share("drops/merged", "It is so.").verdict(xr.DataTree.from_dict(groups))
    assert verdict.word == word
