"""Studies of the related systems: what their simulations draw, what they compare, and the cases they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.simulation.keys import key_of
from iclab.simulation.related import low_rank, patterns, token_networks
from iclab.simulation.related.softmax_windows import WindowShape, drawn_errors
from iclab.studies import STUDIES
from iclab.studies.related import rank_robustness, separate_tokens, softmax_window
from iclab.theory import softmax as window


def test_padded_factors_hold_their_rank_before_and_after_descent() -> None:
    case = rank_robustness.Case()
    left, right = low_rank.factors(8, (1, 3), scale=0.05, key=key_of(0))
    assert_array_equal(np.linalg.matrix_rank(left @ right.swapaxes(1, 2)), [1, 3])
    gamma = low_rank.one_pass(case.problem, (left, right), rate=0.1, steps=20, batch=8, key=key_of(1))
    assert_array_equal(np.linalg.matrix_rank(gamma, tol=1e-12), [1, 3])


def test_training_that_diverges_is_said() -> None:
    case = rank_robustness.Case()
    start = low_rank.factors(8, (1, 3), scale=0.05, key=key_of(0))
    with pytest.raises(ArithmeticError, match=r"diverged at learning rate 1e\+03\. Use a smaller one"):
        low_rank.one_pass(case.problem, start, rate=1e3, steps=60, batch=8, key=key_of(1))
    basis = np.eye(6)
    law = patterns.Patterns(3 * basis[:4], basis[4:], np.array([(0, 1)]))
    with pytest.raises(ArithmeticError, match="diverged"):
        patterns.train(
            patterns.start(6, 4, key=key_of(0)),
            law,
            relevant=0.5,
            length=4,
            batch=4,
            steps=8,
            rate=1e200,
            key=key_of(1),
        )


def test_layers_that_answer_nothing_lose_the_target_and_its_noise() -> None:
    problem = rank_robustness.Case().problem
    found = low_rank.frozen_losses(
        np.zeros((1, 8, 8)), problem, noises=np.array([0.0, 2.0]), contexts=40_000, key=key_of(0)
    )
    # tr Λ = 5.15, each of its entries a mean of 4·10⁴ squares
    assert_allclose(found[0], [5.15, 7.15], atol=4 * np.sqrt(2 * 6.4325 / 40_000))


def test_misleading_contexts_label_with_ones_and_ask_for_the_relevant_part() -> None:
    told, asked = rank_robustness.Case(relevant=3).tasks
    assert_array_equal(told, np.ones(8))
    assert_array_equal(asked, [1, 1, 1, 0, 0, 0, 0, 0])


def test_drawn_errors_of_a_given_window_are_the_exact_ones() -> None:
    scale, noise = 6.0, np.array([0.1])
    drawn = drawn_errors(
        WindowShape("affine", 5, 50, 500), scale * np.eye(5)[None], noises=noise, blocks=60, key=key_of(0)
    )
    exact = window.affine_loss(scale, dimension=5, context_length=50, slope_variance=1.0, noise=0.1) - 0.1
    assert_allclose(drawn, exact, rtol=0.04)  # 3·10⁴ contexts: one percent, four times


def test_the_exact_error_leaves_the_noise_of_the_target_out() -> None:
    # n = 1: 2 L²/d + ρ
    assert_allclose(softmax_window.exact_error(4, 1, 3.0, 0.3), 0.8, rtol=1e-10)


def test_levels_of_separate_tokens_are_the_known_ones() -> None:
    levels = separate_tokens.theory(separate_tokens.Case())["levels"]
    assert_allclose(levels.loss, [1, 0.8, 0.533, 0.2857], atol=5e-4)  # known to three decimals
    assert_allclose(levels.construction, 0.684, atol=5e-4)


def test_tokens_alternate_and_the_query_has_no_label() -> None:
    tokens, labels = token_networks._contexts(token_networks.TokenSizes(3, 4, 8, 5), key_of(0))
    assert tokens.shape == (5, 9, 4)
    assert_array_equal(tokens[:, 1::2, :-1], 0)
    assert_array_equal(tokens[:, ::2, -1], 0)
    assert_array_equal(tokens[:, 1::2, -1], labels[:, :-1])


def test_tasks_of_training_and_of_the_test_share_no_pair() -> None:
    ring, unseen = patterns.ring_tasks(6)
    assert (len(ring), len(unseen)) == (6, 24)
    assert not {tuple(pair) for pair in ring} & {tuple(pair) for pair in unseen}


def test_patterns_out_of_the_domain_are_sums_of_two() -> None:
    mixed = patterns.Patterns.orthogonal(6, 24, 3.0, patterns.ring_tasks(6)[0]).summed(1.2)
    assert_allclose(mixed.relevant[0, :3], [1.8, 1.8, 0], atol=1e-15)  # 1.2/2 × β = 3
    assert len(mixed.tasks) == 6


def test_examples_carry_the_patterns_of_the_task_as_often_as_stated() -> None:
    basis = np.eye(9)
    law = patterns.Patterns(3 * basis[:5], basis[5:], np.array([(0, 1), (3, 2)]))
    tokens, same, label = map(np.asarray, patterns._contexts(law, 0.6, 10, 20_000, key_of(0)))
    assert_allclose(same.mean(), 0.3, atol=4 * np.sqrt(0.21 / 200_000))  # one half of the relevant fraction
    own = tokens[:, :-1, -1][same] * np.repeat(label, 10).reshape(-1, 10)[same]
    assert_array_equal(own, 1)  # an example with the query's pattern has its label
    assert_array_equal(tokens[:, -1, -1], 0)


def test_pruning_removes_neurons_from_the_end_that_is_asked_for() -> None:
    weights = patterns.Weights(np.eye(2), np.eye(2), np.eye(2), np.array([[3.0, 0], [1, 0], [2, 0], [4, 0]]))
    assert_array_equal(patterns.pruned(weights, 0.5, largest=False).hidden[:, 0], [3, 0, 0, 4])
    assert_array_equal(patterns.pruned(weights, 0.25, largest=True).hidden[:, 0], [3, 1, 2, 0])


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("rank-robustness", {"one_pass_ranks": (9,)}, "one_pass_ranks must be at most D = 8"),
        ("rank-robustness", {"relevant": 9}, "relevant must be at most D = 8; got 9"),
        ("softmax-window", {"lengths": (1,)}, "lengths must be 2 or more"),
        ("softmax-window", {"ratios": (0.0, 1.0)}, "ratios must be positive"),
        ("low-rank-tasks", {"seen": (6,)}, "seen must be below dimension = 6"),
        ("separate-tokens", {"steps": (500,)}, "steps must be 4, one for each network"),
        ("separate-tokens", {"leak_steps": 50}, "steps must outlast the 100 of the warming up"),
        ("pattern-selection", {"pruned": (0.1, 1.0)}, "pruned must be below 1"),
        ("pattern-selection", {"fractions": (1.2, 0.4, 0.2, 0.1)}, r"fractions must be in \(0, 1\]"),
        ("pattern-selection", {"fractions": (0.5,)}, "fractions must be as many as lengths, 4; got 1"),
    ],
)
def test_impossible_cases_are_refused_by_the_name_of_the_field(name: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STUDIES[name].quick, **changes)


def test_increasing_numbers_of_a_case_are_kept_as_they_came_in_a_tuple() -> None:
    case = replace(STUDIES["pattern-selection"].quick, sums=[0, 1, 2.5])
    assert case.sums == (0, 1, 2.5)
    assert [type(total) for total in case.sums] == [int, int, float]  # as its JSON, the key of the store, has them
