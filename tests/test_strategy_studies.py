"""Studies of strategies: what their simulations draw, and the cases they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.simulation.keys import key_of
from iclab.simulation.sequences import counted_laws
from iclab.simulation.sequences.pools import drawn_gaps
from iclab.studies import STUDIES
from iclab.studies.strategies import markov_stages, strategy_gap
from iclab.testing import check_study
from iclab.theory.sequences import bigram_law, markov_gap, unigram_law, urn_gap

SMALL = strategy_gap.Case(
    tasks=(2, 200), length=6, chain_tasks=(3,), chain_length=6, pools=2, wide_pools=3, sequences=200
)
SHORT = markov_stages.Case(length=8, width=8, batch=8, steps=200, every=100, tested=100)


def test_drawn_gaps_are_the_exact_ones() -> None:
    rng = np.random.default_rng(0)
    urns, chains = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), (5, 3))
    for pool, exact in ((urns, urn_gap(urns, length=8)), (chains, markov_gap(chains, length=8))):
        drawn = [drawn_gaps(pool, length=8, concentration=1.0, sequences=1000, key=key_of(i)).sum() for i in range(6)]
        error = np.std(drawn, ddof=1) / np.sqrt(len(drawn))
        assert error < 0.015 * exact
        assert abs(np.mean(drawn) - exact) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), [("strategy-gap", SMALL), ("markov-stages", SHORT)])
def test_small_cases_keep_the_contract_of_studies(name: str, case: object) -> None:
    study = STUDIES[name]
    presets = {preset: replace(one, case=case, seeds=2) for preset, one in study.presets.items()}
    check_study(replace(study, presets=presets))


def test_counts_of_the_simulation_are_those_of_theory() -> None:
    tokens = np.random.default_rng(0).integers(3, size=(5, 9))
    alone, after = counted_laws(tokens, symbols=3, concentration=0.4)
    assert_allclose(alone, unigram_law(tokens, states=3, concentration=0.4), rtol=1e-14)
    assert_allclose(after, bigram_law(tokens, states=3, concentration=0.4), rtol=1e-14)


def test_half_way_is_between_the_start_and_the_maximum() -> None:
    steps = np.array([0, 50, 100, 150])
    assert markov_stages._half_way(steps, np.array([0.4, 0.61, 0.8, 0.5])) == 50
    assert markov_stages._half_way(steps, np.array([0.4, 0.5, 0.59, 0.8])) == 150


def test_pools_of_the_limit_are_those_from_eight_chi_square_on() -> None:
    assert strategy_gap.wide_sizes(strategy_gap.Case()) == [256]  # χ² = 16.98
    assert strategy_gap.wide_sizes(strategy_gap.Case(tasks=(2, 8))) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"every": 70}, "every must divide steps and be at most 100; got every 70 and steps 1200"),
        ({"every": 200}, "every must divide steps and be at most 100"),
        ({"heads": 3}, "heads must divide the width"),
        ({"tested": 10}, "tested must be"),
    ],
)
def test_impossible_runs_are_refused_by_name(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        markov_stages.Case(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tasks": (4, 2)}, "tasks must increase; got"),
        ({"tasks": (1, 4)}, "tasks must be 2 or more; got"),
        ({"concentration": 0.0}, "concentration must be"),
        ({"symbols": 1}, "symbols must be"),
    ],
)
def test_impossible_cases_are_refused_by_name(given: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strategy_gap.Case(**given)
    with pytest.raises(ValueError, match="pool must hold urns"):
        drawn_gaps(np.full((2, 3, 4), 0.25), length=2, concentration=1.0, sequences=2, key=key_of(0))
