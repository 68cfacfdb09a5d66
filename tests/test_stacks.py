"""A stack of layers: the recursion that it implements, and the neighbors that are other models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.attention import MergedAttention, StackedAttention, random_stack, stack_of
from iclab.problem import Regression
from iclab.theory import depth
from iclab.theory.estimators import descended
from iclab.theory.estimators.eigenvalue_law import singular_values

RNG = np.random.default_rng(0)


def contexts(count: int, length: int, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts whose inputs are not white."""
    root = RNG.standard_normal((dimension, dimension)) / np.sqrt(dimension)
    x, q = RNG.standard_normal((count, length, dimension)) @ root, RNG.standard_normal((count, dimension)) @ root
    return x, RNG.standard_normal((count, length)), q


@pytest.mark.parametrize(("dimension", "layers"), [(3, 1), (4, 3), (8, 6)])
def test_a_stack_is_preconditioned_descent_in_the_context(dimension: int, layers: int) -> None:
    x, y, q = contexts(20, 11, dimension)
    key, query = (RNG.standard_normal((layers, 3, dimension)) / dimension for _ in range(2))
    stack = StackedAttention(RNG.standard_normal(layers), key.transpose(0, 2, 1) @ query)  # of rank 3
    steps = np.swapaxes(stack.gammas(), -1, -2)
    known = descended(x, y, q, preconditioner=steps)
    assert_allclose(stack.predictions(x, y, q), known, rtol=1e-12, atol=1e-12 * np.max(abs(known)))
    assert_allclose(stack.unrestricted().predictions(x, y, q), known, rtol=1e-12, atol=1e-12 * np.max(abs(known)))


def test_one_layer_is_the_layer_of_the_library() -> None:
    x, y, q = contexts(5, 7, 3)
    matrix = RNG.standard_normal((1, 3, 3))
    layer = MergedAttention(np.array([0.7]), matrix)
    summary = np.einsum("bn,bnd->bd", y, x) / 7
    known = np.einsum("bi,ij,bj->b", summary, layer.gamma(), q)
    assert_allclose(StackedAttention(np.array([0.7]), matrix).predictions(x, y, q), known, rtol=1e-12)


def test_scalar_layers_have_the_loss_of_theory() -> None:
    problem = Regression((0.5,) * 3, 6, 0.2)
    layers = depth.best_layers(depth.stack_problem(problem).law, 2)
    rng = np.random.default_rng(1)
    x, w = np.sqrt(0.5) * rng.standard_normal((40_000, 7, 3)), rng.standard_normal((40_000, 3))
    y = np.einsum("bnd,bd->bn", x, w) + np.sqrt(0.2) * rng.standard_normal((40_000, 7))
    answers = stack_of(depth.scalar_gammas(problem, layers)).predictions(x[:, :-1], y[:, :-1], x[:, -1])
    squares = (answers - y[:, -1]) ** 2
    assert abs(squares.mean() - depth.stack_loss(problem, layers)) < 3 * squares.std() / 200


def test_without_the_mask_the_query_is_an_example_with_label_zero() -> None:
    x, y, q = contexts(4, 7, 3)
    open_stack = StackedAttention(np.array([0.4, 0.9]), RNG.standard_normal((2, 3, 3)) / 3, masked=False)
    shown = np.concatenate([x, q[:, None]], axis=1), np.concatenate([y, np.zeros((4, 1))], axis=1)
    masked = StackedAttention(open_stack.value * 8 / 7, open_stack.key_query)
    assert_allclose(open_stack.predictions(x, y, q), masked.predictions(*shown, q), rtol=1e-12)
    assert (
        np.max(
            abs(
                open_stack.predictions(x, y, q)
                - StackedAttention(open_stack.value, open_stack.key_query).predictions(x, y, q)
            )
        )
        > 1e-3
    )


def test_a_first_layer_that_rewrites_inputs_is_the_other_model() -> None:
    (x, y, q), size = contexts(6, 9, 4), 4
    (first, second), turn = (0.34, 2.8), -0.32
    value, key_query = np.zeros((2, size + 1, size + 1)), np.zeros((2, size + 1, size + 1))
    value[:, -1, -1] = -first, -second
    value[0, :-1, :-1], key_query[:, :-1, :-1] = turn * np.eye(size), np.eye(size)
    answers = StackedAttention(value, key_query).predictions(x, y, q)
    for one, labels, query, answer in zip(x, y, q, answers, strict=True):
        values, vectors = np.linalg.eigh(one.T @ one / 9)
        seen = second * (1 + turn * values) ** 2
        along = vectors.T @ (one.T @ labels / 9)
        assert_allclose(answer, query @ vectors @ ((first + seen * (1 - first * values)) * along), rtol=1e-12)


def test_the_loss_of_rewriting_layers_is_a_mean_over_the_density_of_eigenvalues() -> None:
    density = singular_values(4, 8)
    x, weights = density.nodes**2 / 8, density.weights / 4
    kept = (1 - 0.34 * x) * (1 - 2.8 * x * (1 - 0.32 * x) ** 2)
    answer = 0.34 + 2.8 * (1 - 0.32 * x) ** 2 * (1 - 0.34 * x)
    for noise in (0.0, 0.3):
        known = weights @ (kept**2 + noise / 2 * x * answer**2)
        found = depth.rewriting_excess(depth.wishart(4, 8), (0.34, 2.8), -0.32, noise_ratio=noise)
        assert_allclose(found, known, rtol=1e-9)


def test_leading_axes_are_carried_along() -> None:
    stack = random_stack(3, 2, scale=0.1, rng=RNG)
    times = StackedAttention(np.stack([stack.value] * 2), np.stack([stack.key_query] * 2))
    assert (times.depth, times.dimension, times.restricted) == (2, 3, True)
    assert_allclose(times[1].gammas(), stack.gammas())
    assert_allclose(times.gammas()[0], stack.gammas())
    assert times.unrestricted().dimension == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StackedAttention(np.ones(2), np.ones((3, 2, 2))), "value and key_query must have shapes"),
        (lambda: StackedAttention(np.ones(0), np.ones((0, 2, 2))), "with L >= 1"),
        (lambda: stack_of(np.ones((2, 2))), "gammas must be a list of square matrices"),
        (lambda: random_stack(2, 0, scale=1.0, rng=RNG), "depth must be a whole number >= 1; got 0"),
        (lambda: random_stack(2, 1, scale=1.0, rng=RNG)[0], "a stack must have leading axes"),
        (lambda: random_stack(2, 1, scale=1.0, rng=RNG).unrestricted().gammas(), "the stack must be restricted"),
        (
            lambda: random_stack(2, 1, scale=1.0, rng=RNG).predictions(np.ones((3, 4)), np.ones(3), np.ones(4)),
            "inputs, labels and query must have shapes",
        ),
    ],
)
def test_bad_input_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
