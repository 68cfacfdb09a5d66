"""The largest stable learning rate, and the time until training is done: by hand, on drawn sets, in the flow."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab import MergedAttention, Regression, SeparateAttention
from iclab.attention import random_merged, random_separate
from iclab.theory import dynamics
from iclab.theory.dynamics import (
    drawn_sharpness_factor,
    merged_sharpness,
    separate_sharpness,
    settling_time,
    stable_rate,
)
from iclab.theory.population import moments

SIMPLE = Regression((1.0,), context_length=1)
MIXED = Regression((1.0, 0.3), context_length=(6, 12), noise=0.1, task_eigenvalues=(0.2, 2.0))


def learned(problem: Regression, kind: type) -> MergedAttention | SeparateAttention:
    """The balanced layer of least loss, with the weights that a restricted one lacks at zero."""
    law = moments(problem)
    best = np.diag(law.cross) / (np.diag(law.second) * np.diag(law.input_covariance))
    if kind is MergedAttention:
        value = np.sqrt(np.linalg.norm(best))
        return MergedAttention(np.array([value]), np.diag(best)[None] / value).unrestricted()
    value = np.cbrt(best)
    return SeparateAttention(value, np.diag(value)[:, None], np.diag(value)[:, None]).unrestricted()


def test_sharpness_by_hand() -> None:
    # g = 1, h = 3, γ = 1/3. E[S²q²] = 3 + 6 + 15, E[YSq²] = 3 + 3, E[Y²q²] = 9, times r² = 1/3 or v⁴ = 3^(-4/3);
    # eigenvalues of [[24, 6], [6, 9]] are 16.5 ± √92.25.
    largest = 16.5 + np.sqrt(92.25)
    assert_allclose(merged_sharpness(SIMPLE), largest / 3, rtol=1e-12)
    assert_allclose(separate_sharpness(SIMPLE, heads=3), largest / 3 ** (4 / 3), rtol=1e-12)


@pytest.mark.parametrize("kind", [MergedAttention, SeparateAttention])
def test_sharpness_is_the_largest_curvature_of_the_loss_of_many_sequences(kind: type) -> None:
    import jax
    from jax.flatten_util import ravel_pytree

    from iclab.simulation.linear import contexts
    from iclab.simulation.linear.routes import statistics_route
    from iclab.simulation.linear.statistics import statistics

    layer = learned(MIXED, kind)
    data = statistics(contexts.draw(MIXED, 40_000, key=jax.random.key(0)), layer)
    route = statistics_route(layer, ())
    with jax.enable_x64(True):
        flat, shaped = ravel_pytree(tuple(map(jax.numpy.asarray, vars(layer).values())))
        arrays = (data.cross, data.left, data.right, data.null_loss)
        hessian = jax.hessian(lambda one: route.loss(arrays, shaped(one), jax.numpy.array(0)) / 2)(flat)
    expected = merged_sharpness(MIXED) if kind is MergedAttention else separate_sharpness(MIXED, heads=2)
    assert_allclose(np.linalg.eigvalsh(np.asarray(hessian))[-1], expected, rtol=0.05)  # drawn, with heavy tails


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_sharpness_has_the_unit_of_its_weights(scale: float) -> None:
    # x → √c x with the noise alike: γ ~ 1/c, features ~ c³; merged c^(3 − 1), separate c^(3 − 4/3)
    other = Regression(
        tuple(scale * one for one in MIXED.eigenvalues), (6, 12), noise=0.1 * scale, task_eigenvalues=(0.2, 2.0)
    )
    assert_allclose(merged_sharpness(other), scale**2 * merged_sharpness(MIXED), rtol=1e-9)
    assert_allclose(
        separate_sharpness(other, heads=2), scale ** (5 / 3) * separate_sharpness(MIXED, heads=2), rtol=1e-9
    )


def test_a_large_start_and_more_heads_are_sharper() -> None:
    assert merged_sharpness(MIXED, initial=0.5) > merged_sharpness(MIXED)
    assert separate_sharpness(MIXED, heads=2, initial=0.5) > separate_sharpness(MIXED, heads=2)
    assert separate_sharpness(MIXED, heads=2) >= separate_sharpness(MIXED, heads=1)


def test_the_rate_is_infinite_where_nothing_can_be_learned() -> None:
    nothing = Regression((1.0,), task_eigenvalues=(0.0,), noise=1.0)
    assert stable_rate(nothing, merged_sharpness(nothing), 2000) == np.inf


def test_the_factor_of_drawn_sets_falls_with_their_size_and_that_of_the_contexts() -> None:
    assert_allclose(drawn_sharpness_factor(Regression((1.0,), 4), (10_000, 80_000)), 1 + 300 * 2 / 1000, rtol=1e-12)
    with pytest.raises(ValueError, match="sequences must be whole numbers >= 1"):
        drawn_sharpness_factor(SIMPLE, 0)


def drawn_share(problem: Regression, sequences: int, draws: int) -> float:
    """The share of drawn sets whose sharpness at the population's least loss is above the bound; merged layer."""
    rng, (length,) = np.random.default_rng(0), problem.context_lengths
    root, tasks = np.sqrt(problem.eigenvalues), np.sqrt(problem.task_spectrum)
    layer = learned(problem, MergedAttention)
    assert isinstance(layer, MergedAttention)
    r, u = layer.value[0, -1], np.diagonal(layer.key_query[0, :-1])
    bound = merged_sharpness(problem) * drawn_sharpness_factor(problem, sequences)
    above = 0
    for _ in range(draws):
        x = root * rng.standard_normal((sequences, length + 1, problem.dimension))
        w = tasks * rng.standard_normal((sequences, problem.dimension))
        y = np.einsum("pnd,pd->pn", x[:, :-1], w)
        y += np.sqrt(problem.noise) * rng.standard_normal(y.shape)
        q, h = x[:, -1], np.einsum("pn,pnd->pd", y, x[:, :-1]) / length
        inputs = np.einsum("pni,pnj,j,pj->pi", x, x, u, q, optimize=True) / length
        labels = np.mean(y**2, axis=1)[:, None] * q
        key_query = (h[:, :, None] * q[:, None]).reshape(sequences, -1)
        read = np.concatenate([inputs, r * labels, r * key_query, np.sum(h * u * q, axis=1)[:, None]], axis=1)
        above += np.linalg.eigvalsh(read.T @ read / sequences)[-1] > bound
    return above / draws


def test_few_drawn_sets_are_sharper_than_the_bound() -> None:
    assert drawn_share(Regression((1.0, 0.5), 3), 200, 100) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "sequences"),
    [
        (SIMPLE, 50),
        (Regression((1.0, 0.8), 1), 200),
        (Regression((1.0, 0.5), 3), 2000),
        (Regression((1.0, 0.1, 0.01), 10, noise=1.0), 200),
        (Regression((0.4, 0.3, 0.2, 0.1), 31), 200),
    ],
)
def test_999_of_1000_drawn_sets_are_less_sharp_than_the_bound(problem: Regression, sequences: int) -> None:
    assert drawn_share(problem, sequences, 1000) <= 3e-3  # one in a thousand is 3 or fewer in 98 of 100 tests


@pytest.mark.parametrize("kind", ["merged", "separate"])
@pytest.mark.parametrize("problem", [Regression((0.4, 0.3, 0.2, 0.1), 31), Regression((1.0, 0.2), 5, noise=0.3)])
def test_at_the_settling_time_the_flow_is_at_its_least_loss(kind: str, problem: Regression) -> None:
    law, rng = moments(problem), np.random.default_rng(1)
    size = problem.dimension
    least, parts = dynamics.plateaus(law)[-1], np.array([0.5, 1.02])  # the closed forms are those of small starts
    if kind == "merged":
        start = random_merged(size, 4, scale=1e-5, rng=rng)
        loss = dynamics.merged_flow(law, start, parts * settling_time(law, start)).loss
    else:
        start = random_separate(size, 6, scale=0.02, rng=rng)
        loss = dynamics.separate_flow(law, start, parts * settling_time(law, start)).loss
    assert loss[1] < 1.004 * least
    assert loss[0] > 1.01 * least


def test_what_its_heads_cannot_hold_is_not_waited_for() -> None:
    law = moments(Regression((1.0, 0.5, 0.01), 20))
    start = random_separate(3, 2, scale=0.02, rng=np.random.default_rng(0))
    one = SeparateAttention(start.value[:1], start.key[:1], start.query[:1])
    assert settling_time(law, one) < settling_time(law, start) < np.inf
    nothing = moments(Regression((1.0,), task_eigenvalues=(0.0,), noise=1.0))
    assert settling_time(nothing, random_merged(1, 1, scale=0.1, rng=np.random.default_rng(0))) == np.inf


def test_a_start_that_is_not_small_is_followed_in_its_flow() -> None:
    law = moments(Regression((1.0, 0.5), 10, task_eigenvalues=(0.1, 1.0)))
    start = random_separate(2, 3, scale=0.6, rng=np.random.default_rng(0))
    done, least = settling_time(law, start), dynamics.plateaus(law)[-1]
    assert dynamics.separate_flow(law, start, np.array([done])).loss[0] < 1.0021 * least
