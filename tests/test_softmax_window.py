"""The window of softmax attention: known losses, drawn examples, laws of long contexts, rivals, tasks of low rank."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gamma, gammaln, ive

from iclab.theory import softmax as window
from iclab.theory.softmax.attention_weights import angles, weight_products, weight_products_and_derivatives
from iclab.theory.softmax.sphere_kernels import zonal_harmonics

FIVE = {"dimension": 5, "context_length": 50}


def sphere(rng: np.random.Generator, *shape: int) -> np.ndarray:
    points = rng.standard_normal(shape)
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def drawn_squares(functions, scale: float, dimension: int, length: int, noise: float, draws: int) -> np.ndarray:
    """Squared errors of softmax attention on drawn functions, the noise of the label that is asked for included."""
    rng = np.random.default_rng(2)
    x = sphere(rng, draws, length + 1, dimension)
    y = functions(rng, x) + np.sqrt(noise) * rng.standard_normal((draws, length + 1))
    score = scale * np.einsum("pnd,pd->pn", x[:, :-1], x[:, -1])
    share = np.exp(score - score.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    return (y[:, -1] - np.sum(share * y[:, :-1], axis=1)) ** 2


def affine(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    draws, _, dimension = x.shape
    return np.einsum("pnd,pd->pn", x, sphere(rng, draws, dimension)) + rng.standard_normal((draws, 1))


def kinked(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    draws, _, dimension = x.shape
    along, (up, down) = np.einsum("pnd,pd->pn", x, sphere(rng, draws, dimension)), rng.standard_normal((2, draws, 1))
    return up * np.maximum(along, 0) + down * np.maximum(-along, 0)


def test_known_loss_of_the_affine_class() -> None:
    found = window.affine_loss(2.0, dimension=3, context_length=10, slope_variance=1.0, noise=0.1)
    assert_allclose(found - 0.1, 0.1475776242, rtol=1e-9)  # published units score against the clean target


def test_known_loss_of_the_kinked_class() -> None:
    found = window.kernel_loss(partial(window.kinked_kernel, dimension=5, slope_variance=1.0), 5.0, **FIVE, noise=0.5)
    assert_allclose(found.loss - 0.5, 0.0904565037, rtol=1e-8)
    assert found.error <= 1e-6 * found.loss


@pytest.mark.parametrize(
    ("scale", "dimension", "length", "noise"), [(2.0, 3, 10, 0.1), (5.0, 5, 50, 0.5), (10.0, 2, 20, 0.1)]
)
def test_affine_losses_are_those_of_drawn_functions_with_any_offset(
    scale: float, dimension: int, length: int, noise: float
) -> None:
    squares = drawn_squares(affine, scale, dimension, length, noise, 40_000)
    known = window.affine_loss(scale, dimension=dimension, context_length=length, slope_variance=1.0, noise=noise)
    assert abs(squares.mean() - known) < 4 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize(("scale", "dimension", "length"), [(5.0, 5, 50), (9.0, 2, 12)])
def test_kinked_losses_are_those_of_drawn_functions(scale: float, dimension: int, length: int) -> None:
    squares = drawn_squares(kinked, scale, dimension, length, 0.2, 40_000)
    kernel = partial(window.kinked_kernel, dimension=dimension, slope_variance=1.0)
    known = window.kernel_loss(kernel, scale, dimension=dimension, context_length=length, noise=0.2).loss
    assert abs(squares.mean() - known) < 4 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize(
    ("dimension", "length", "scale"), [(2, 3, 0.5), (5, 50, 6.0), (8, 400, 20.0), (1000, 9, 60.0), (3000, 5, 1.0)]
)
def test_affine_functions_as_a_kernel_lose_what_their_own_formula_says(
    dimension: int, length: int, scale: float
) -> None:
    law = {"dimension": dimension, "context_length": length, "noise": 0.1}
    kernel = window.kernel_loss(lambda cosine: cosine / dimension + 3.0, scale, **law)  # and an offset of variance 3
    assert_allclose(kernel.loss, window.affine_loss(scale, **law, slope_variance=1.0), rtol=1e-12)


def test_one_example_gets_the_whole_share_at_any_scale() -> None:
    found = window.affine_loss(
        np.array([0.05, 2.0, 60.0]), dimension=4, context_length=1, slope_variance=1.0, noise=0.3
    )
    assert_allclose(found, 2 / 4 + 0.6, rtol=1e-10)  # E |x − x_q|² /d and two noises


@pytest.mark.parametrize("scale", [0.3, 5.0, 40.0])
def test_two_examples_on_the_usual_sphere_are_a_plain_integral_over_two_cosines(scale: float) -> None:
    # in three dimensions cosines are uniform; weights of two examples are a logistic curve
    point, weight = np.polynomial.legendre.leggauss(400)
    t, u = np.meshgrid(point, point)
    both = np.outer(weight, weight) / 4
    a = 1 / (1 + np.exp(scale * (u - t)))
    share = np.sum(both * (a**2 + (1 - a) ** 2))
    along = np.sum(both * (a * (1 - t) + (1 - a) * (1 - u)) ** 2)
    across = np.sum(both * (a**2 * (1 - t**2) + (1 - a) ** 2 * (1 - u**2)))
    found = window.affine_loss(scale, dimension=3, context_length=2, slope_variance=1.0, noise=0.1)
    assert_allclose(found, (along + across) / 3 + 0.1 * (1 + share), rtol=1e-11)


def loss_of_two_examples(scale: float, dimension: int, noise: float, *, reach: float) -> float:
    """Loss by the trapezoid over both angles, π/2 ± reach: weights are a logistic curve, wider than a step."""
    theta = np.linspace(0.5 * np.pi - reach, 0.5 * np.pi + reach, 2400)
    density = np.sin(theta) ** (dimension - 2)
    density /= density.sum()
    gap, t = 2 * np.sin(theta / 2) ** 2, np.cos(theta)
    a = 1 / (1 + np.exp(np.clip(scale * np.subtract.outer(gap, gap), -700, 700)))
    own = density @ (a**2 * (gap**2 + 1 - t**2)[:, None]) @ density
    share, both = density @ a**2 @ density, density @ (a * (1 - a) * np.multiply.outer(gap, gap)) @ density
    return float(2 * (own + both) / dimension + noise * (1 + 2 * share))


@pytest.mark.parametrize(
    ("scale", "dimension", "reach"),
    [(350.0, 400, 0.5), (300.0, 50, 1.2), (350.0, 100_000, 0.03), (1e-3, 100_000, 0.03)],
)
def test_two_examples_in_narrow_windows_and_many_dimensions(scale: float, dimension: int, reach: float) -> None:
    found = window.affine_loss(scale, dimension=dimension, context_length=2, slope_variance=1.0, noise=0.1)
    assert_allclose(found, loss_of_two_examples(scale, dimension, 0.1, reach=reach), rtol=1e-10)


@pytest.mark.parametrize(
    ("scale", "dimension", "length"),
    [(350.0, 100_000, 5), (350.0, 1000, 20), pytest.param(300.0, 50, 5, marks=pytest.mark.slow)],
)
def test_narrow_windows_in_short_contexts_agree_with_drawn_cosines(scale: float, dimension: int, length: int) -> None:
    # cosines of examples with the query are independent; across them directions are isotropic
    rng = np.random.default_rng(5)
    t = 1 - 2 * rng.beta(0.5 * (dimension - 1), 0.5 * (dimension - 1), (200_000, length))
    a = np.exp(scale * (t - t.max(axis=1, keepdims=True)))
    a /= a.sum(axis=1, keepdims=True)
    bias = np.sum(a * (1 - t), axis=1) ** 2 + np.sum(a**2 * (1 - t**2), axis=1)
    drawn = bias / dimension + 0.1 * (1 + np.sum(a**2, axis=1))
    known = window.affine_loss(scale, dimension=dimension, context_length=length, slope_variance=1.0, noise=0.1)
    assert abs(drawn.mean() - known) < 4 * drawn.std() / np.sqrt(len(drawn))


@pytest.mark.parametrize(("scale", "dimension", "limit"), [(250.0, 5, 197), (1.0, 100_000, 0)])
def test_scales_too_large_for_a_kernel_are_refused_with_the_limit(scale: float, dimension: int, limit: int) -> None:
    law = {"dimension": dimension, "context_length": 5, "noise": 0.1}
    with pytest.raises(ValueError, match=f"scale must be at most {limit} for functions of a kernel in {dimension} "):
        window.kernel_loss(lambda cosine: cosine, scale, **law)


def test_a_window_wider_than_the_sphere_averages_over_everything() -> None:
    found = window.affine_loss(1e-5, **FIVE, slope_variance=1.0, noise=0.3)
    assert_allclose(found, (1 + 1 / 50) / 5 + 0.3 * (1 + 1 / 50), rtol=1e-5)  # first order in the scale
    assert_allclose(window.effective_context(1e-5, **FIVE), 50, rtol=1e-8)


@pytest.mark.parametrize("dimension", [2, 3, 20])
@pytest.mark.parametrize("length", [1, 2, 10, 10_000])
@pytest.mark.parametrize("scale", [0.05, 2.0, 40.0])
def test_ten_digits_do_not_depend_on_the_quadrature(dimension: int, length: int, scale: float) -> None:
    found = window.affine_loss(scale, dimension=dimension, context_length=length, slope_variance=1.0, noise=0.1)
    at = angles(dimension, 960)
    fine = weight_products(scale, length, at)
    bias = 2 * fine.single @ at.gap + np.sum((fine.pair @ at.gap) ** 2)
    assert_allclose(found, bias / dimension + 0.1 * (1 + fine.single.sum()), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "length"), [(2, 2), (20, 10), (20, 10_000)])
def test_ten_digits_do_not_depend_on_the_quadrature_for_narrow_windows(dimension: int, length: int) -> None:
    for scale in (120.0, 170.0):
        found = window.affine_loss(scale, dimension=dimension, context_length=length, slope_variance=1.0, noise=0.1)
        at = angles(dimension, 3000)
        fine = weight_products(scale, length, at)
        bias = 2 * fine.single @ at.gap + np.sum((fine.pair @ at.gap) ** 2)
        assert_allclose(found, bias / dimension + 0.1 * (1 + fine.single.sum()), rtol=1e-10)


def test_lengths_noises_and_slopes_broadcast() -> None:
    grid = window.affine_loss(
        np.array([2.0, 5.0])[:, None],
        dimension=5,
        context_length=np.array([10, 50, 100]),
        slope_variance=2.0,
        noise=0.1,
    )
    assert grid.shape == (2, 3)
    one = window.affine_loss(5.0, dimension=5, context_length=100, slope_variance=2.0, noise=0.1)
    assert_allclose(grid[1, 2], one, rtol=1e-14)


@pytest.mark.parametrize(("noise", "known"), [(0.01, 8.53906), (0.1, 5.99832), (1.0, 2.92407)])
def test_known_best_scales_depend_on_the_ratio_of_slope_and_noise_alone(noise: float, known: float) -> None:
    assert_allclose(window.best_scale(**FIVE, slope_variance=1.0, noise=noise), known, rtol=1e-5)
    assert_allclose(window.best_scale(**FIVE, slope_variance=0.1 / noise, noise=0.1), known, rtol=1e-5)


def test_the_loss_has_no_slope_at_the_best_scale() -> None:
    law = {**FIVE, "slope_variance": 1.0, "noise": 0.1}
    best, step = window.best_scale(**law), 0.01
    middle, around = (
        window.affine_loss(best, **law),
        window.affine_loss(best * np.exp(step * np.array([-1, 1])), **law),
    )
    slope, curvature = np.diff(around)[0] / (2 * step), (around.sum() - 2 * middle) / step**2
    assert abs(slope) < 2e-4 * curvature  # of the third derivative at this step; four digits of the scale
    assert curvature > 0


def test_without_noise_the_best_scale_is_finite_and_known() -> None:
    found = window.best_scale(dimension=5, context_length=100, slope_variance=3.0, noise=0.0)
    assert_allclose(found, 11.784, rtol=1e-4)


def test_a_best_scale_far_beyond_the_sphere_is_found_in_long_contexts() -> None:
    gaps = []
    for length in (10_000, 100_000, 1_000_000):
        law = {"dimension": 2, "context_length": length, "slope_variance": 100.0, "noise": 1.0}
        best = window.best_scale(**law)
        around = window.affine_loss(best * np.exp([-0.02, 0.0, 0.02]), **law)
        assert np.argmin(around) == 1
        gaps.append(best / window.scale_law(2, length, 100.0, 1.0) - 1)
    assert_allclose(gaps, [0.070, 0.027, 0.011], atol=0.001)
    assert_allclose(np.diff(np.log10(gaps)), -2 / 5, atol=0.03)  # the next order is 1/w, and w grows as n^(2/5)


def test_in_much_noise_the_best_scale_falls_to_its_limit() -> None:
    # n L²/(d ρ), with corrections of the order of the scale itself; it cannot be read off values of the loss
    for noise in (1e2, 1e4, 1e6, 1e8, 1e12):
        found = window.best_scale(**FIVE, slope_variance=1.0, noise=noise)
        assert_allclose(found, 10 / noise, rtol=30 / noise + 1e-6)


@pytest.mark.parametrize(("dimension", "length"), [(2, 2), (5, 50), (3, 10_000), (200, 30)])
def test_derivatives_of_weight_products_are_their_differences(dimension: int, length: int) -> None:
    at, step = angles(dimension, 240), 1e-4
    here, slopes = weight_products_and_derivatives(6.0, length, at)
    assert_allclose(here.single, weight_products(6.0, length, at).single, rtol=1e-13)
    below, above = (weight_products(6.0 * np.exp(side * step), length, at).single.sum() for side in (-1, 1))
    assert_allclose(slopes.single.sum(), (above - below) / (2 * step), rtol=1e-6)
    below, above = (
        np.sum((weight_products(6.0 * np.exp(side * step), length, at).pair @ at.gap) ** 2) for side in (-1, 1)
    )
    assert_allclose(
        2 * np.sum((here.pair @ at.gap) * (slopes.pair @ at.gap)), (above - below) / (2 * step), rtol=1e-6
    )


@pytest.mark.parametrize(("dimension", "scale"), [(2, 0.5), (3, 20.0), (5, 1e-10), (8, 1e6), (100, 50.0)])
def test_the_loss_of_long_contexts_is_one_of_bessel_functions(dimension: int, scale: float) -> None:
    law, order = {"dimension": dimension, "context_length": 1}, dimension / 2 - 1
    missed = 1 - ive(order + 1, scale) / ive(order, scale)
    found = window.long_context_loss(scale, **law, slope_variance=float(dimension), noise=0.0)
    assert_allclose(np.sqrt(found), missed, rtol=1e-9)  # the difference cancels at large scales
    log_share = np.log(ive(order, 2 * scale)) - 2 * np.log(ive(order, scale)) + order * np.log(scale / 4)
    share = np.exp(log_share - gammaln(dimension / 2))
    assert_allclose(window.long_context_loss(scale, **law, slope_variance=0.0, noise=1.0), 1 + share, rtol=1e-9)


def test_laws_hold_in_a_thousand_dimensions() -> None:
    # for 1 ≪ w ≪ d a window sees the sphere as flat: A ≈ w/d
    found = window.long_context_loss(1.0, dimension=1000, context_length=10, slope_variance=1000.0, noise=0.0)
    assert_allclose(found, (1 - 1 / 1000) ** 2, rtol=1e-8)
    assert np.isfinite(window.scale_law(1000, 50, 1.0, 0.1))
    best = window.best_scale(dimension=1000, context_length=50, slope_variance=1.0, noise=0.1)
    assert_allclose(best, 50 / (1000 * 0.1), rtol=0.02)  # n L²/(d ρ)


def test_the_best_scale_grows_with_the_length_as_the_law_says() -> None:
    lengths = np.array([1000, 3000, 10_000])
    exact = [window.best_scale(dimension=3, context_length=int(n), slope_variance=1.0, noise=0.1) for n in lengths]
    assert_allclose(exact, [18.783, 27.122, 40.535], rtol=1e-4)
    assert_allclose(window.scale_law(3, lengths, 1.0, 0.1), exact, rtol=2.1e-3)  # law 18.821, 27.144, 40.548
    slope = np.polyfit(np.log(lengths), np.log(exact), 1)[0]
    assert_allclose(slope, window.scale_exponent(3, 2.0), atol=0.005)
    many = window.best_scale(dimension=8, context_length=1000, slope_variance=1.0, noise=0.1)
    assert_allclose(window.scale_law(8, 1000, 1.0, 0.1) / many, 1.17, atol=0.005)


def test_kinks_and_roughness_lower_the_exponent_towards_their_own() -> None:
    lengths = [300, 1000, 3000]
    for kernel, noise, known, limit in (
        (partial(window.kinked_kernel, dimension=3, slope_variance=1.0), 0.1, [0.386, 0.382], 2 / 5),
        (lambda c: np.exp(-np.sqrt(2 * np.maximum(1 - c, 0))), 10.0, [0.734, 0.700], 2 / 3),
    ):
        exact = [window.best_kernel_scale(kernel, dimension=3, context_length=n, noise=noise) for n in lengths]
        slopes = np.diff(np.log(exact)) / np.diff(np.log(lengths))
        assert_allclose(slopes, known, atol=0.006)  # known at three digits
        assert np.all(abs(slopes - limit) < 0.07)
    assert [window.scale_exponent(3, power) for power in (1.5, 0.5)] == [2 / 5, 2 / 3]


def test_long_contexts_approach_their_law_as_one_over_the_length() -> None:
    law = {"dimension": 3, "slope_variance": 1.0, "noise": 0.1}
    gaps = [
        abs(
            window.affine_loss(20.0, context_length=n, **law)
            / window.long_context_loss(20.0, context_length=n, **law)
            - 1
        )
        for n in (1000, 10_000, 100_000)
    ]
    assert_allclose(np.diff(np.log10(gaps)), -1, atol=0.25)


def test_known_losses_of_windows_made_for_another_slope() -> None:
    made = window.best_scale(**FIVE, slope_variance=1.0, noise=0.1)
    for slope, known, matched in ((0.1, 0.017499, 0.011534), (1.0, 0.046064, 0.046064), (10.0, 0.331707, 0.299958)):
        law = {**FIVE, "slope_variance": slope, "noise": 0.1}
        assert_allclose(window.affine_loss(made, **law) - 0.1, known, rtol=1e-4)
        assert_allclose(window.affine_loss(window.best_scale(**law), **law) - 0.1, matched, rtol=1e-4)


def test_known_effective_contexts() -> None:
    found = [
        window.effective_context(window.best_scale(**FIVE, slope_variance=1.0, noise=noise), **FIVE)
        for noise in (0.01, 0.1, 1.0)
    ]
    assert_allclose(found, [4.2, 7.0, 19.0], atol=0.05)  # known to a decimal


@pytest.mark.parametrize("dimension", [2, 10])
@pytest.mark.parametrize("length", [10**9, 10**12, 10**15, 10**17])
def test_the_effective_context_keeps_its_digits_in_long_contexts(dimension: int, length: int) -> None:
    # n Z(w)²/Z(2w) in long contexts, Z(w) = E exp(w t), a Bessel function: up to terms of order 1/n
    order, scale = dimension / 2 - 1, 5.0
    known = length * ive(order, scale) ** 2 / ive(order, 2 * scale) * gamma(dimension / 2) * (4 / scale) ** order
    assert_allclose(window.effective_context(scale, dimension=dimension, context_length=length), known, rtol=1e-7)


@pytest.mark.parametrize(("offset", "known"), [(0.0, 0.0230088496), (1.0, 1.0773006135)])
def test_known_losses_of_linear_attention_with_and_without_offsets(offset: float, known: float) -> None:
    found = window.linear_attention_loss(**FIVE, slope_variance=1.0, offset_variance=offset, noise=0.1)
    assert_allclose(found - 0.1, known, rtol=1e-8)


def test_no_scale_of_linear_attention_beats_the_best_one_on_drawn_functions() -> None:
    rng = np.random.default_rng(4)
    draws, length = 60_000, 50
    x = sphere(rng, draws, length + 1, 5)
    y = affine(rng, x) + np.sqrt(0.1) * rng.standard_normal((draws, length + 1))
    answer = np.einsum("pn,pnd,pd->p", y[:, :-1], x[:, :-1], x[:, -1]) / length
    best = np.sum(answer * y[:, -1]) / np.sum(answer**2)  # least squares on the draws
    squares = (y[:, -1] - best * answer) ** 2
    known = window.linear_attention_loss(**FIVE, slope_variance=1.0, offset_variance=1.0, noise=0.1)
    assert abs(squares.mean() - known) < 4 * squares.std() / np.sqrt(draws)


def test_harmonics_are_orthogonal_with_mean_square_one() -> None:
    for dimension in (2, 3, 6):
        at = angles(dimension, 200)
        rows = zonal_harmonics(at.cosine, dimension, 12)
        assert_allclose((rows * at.weight) @ rows.T, np.eye(12), atol=1e-9)


def test_attention_weights_of_gaussian_inputs_are_those_of_many_drawn_examples() -> None:
    rng = np.random.default_rng(0)
    matrix, query, length = 0.3 * rng.standard_normal((3, 3)), np.array([0.8, -0.5, 1.0]), 20_000
    x = rng.standard_normal((40, length, 3))
    share = np.exp(x @ (matrix @ query))
    share /= share.sum(1, keepdims=True)
    squares = length * np.sum(share**2, axis=1)
    known = window.gaussian_squared_weights(matrix, query)
    assert abs(squares.mean() / known - 1) < 0.02  # of order 1/length, and the draws
    assert_allclose(np.einsum("pn,pnd->d", share, x) / 40, matrix @ query, atol=0.01)


def test_tasks_of_low_rank_want_no_window_outside_their_span() -> None:
    law = {"context_length": 100, "slope_variance": 1.0, "noise": 20.0}
    directions = np.eye(4)[:, :1]
    inside, outside = np.linspace(0.3, 0.69, 40), np.linspace(0, 0.5, 26)
    grid = np.array(
        [[window.gaussian_loss(np.diag([p, q, q, q]), directions, **law) for q in outside] for p in inside]
    )
    assert np.all(np.argmin(grid, axis=1) == 0)
    assert 0 < np.argmin(grid[:, 0]) < 39
    assert window.gaussian_loss(np.diag([0.8, 0, 0, 0]), directions, **law) == np.inf


def test_gaussian_loss_averages_the_share_over_queries() -> None:
    rng = np.random.default_rng(1)
    matrix, directions = 0.2 * rng.standard_normal((3, 3)), np.linalg.qr(rng.standard_normal((3, 2)))[0]
    q = rng.standard_normal((200_000, 3))
    a = np.sqrt(2.0) * rng.standard_normal((200_000, 2))
    bias = np.einsum("pk,kd,pd->p", a, directions.T @ (matrix - np.eye(3)), q) ** 2
    drawn = bias + 0.5 * (1 + window.gaussian_squared_weights(matrix, q) / 100)
    known = window.gaussian_loss(matrix, directions, context_length=100, slope_variance=2.0, noise=0.5)
    assert abs(drawn.mean() - known) < 4 * drawn.std() / np.sqrt(len(drawn))


GOOD = {**FIVE, "slope_variance": 1.0, "noise": 0.1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: window.affine_loss(0.0, **GOOD), "scale must be finite and > 0; got 0.0"),
        (lambda: window.affine_loss(1.0, **GOOD | {"dimension": 1}), "dimension must be a whole number >= 2; got 1"),
        (
            lambda: window.affine_loss(1.0, **GOOD | {"context_length": 0}),
            "context_length must be >= 1; got 0",
        ),
        (lambda: window.affine_loss(1.0, **GOOD | {"noise": -0.1}), "noise must be finite and >= 0; got -0.1"),
        (lambda: window.best_scale(**GOOD | {"context_length": 1}), "context_length must be 2 or more here"),
        (
            lambda: window.best_scale(**GOOD | {"slope_variance": 0.0}),
            "slope_variance must be finite and > 0; got 0.0. A constant needs no window",
        ),
        (lambda: window.kernel_loss(lambda c: -c, 1.0, **FIVE, noise=0.1), "kernel must be a covariance"),
        (lambda: window.kernel_loss(lambda c: 1.0, 1.0, **FIVE, noise=0.1), "kernel must return a finite number"),
        (lambda: window.scale_law(1, 10, 1.0, 1.0), "dimension must be a whole number >= 2"),
        (
            lambda: window.gaussian_squared_weights(np.eye(2), np.ones(3)),
            "matrix must be square and as wide as the query",
        ),
        (
            lambda: window.gaussian_loss(np.eye(2), np.ones((3, 1)), context_length=9, slope_variance=1.0, noise=1.0),
            "matrix must be square with a side for each row of directions",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_search_that_ends_on_its_bound_is_an_error() -> None:
    with pytest.raises(ValueError, match="the best scale must lie between 1e-06 and 100000"):
        window.best_scale(dimension=2, context_length=10_000, slope_variance=1.0, noise=0.0)


def test_a_search_that_ends_where_the_quadrature_does_is_an_error() -> None:
    # affine functions on the circle: 465 by their own formula, which leaves far angles out; kernels need all
    law = {"dimension": 2, "context_length": 150, "noise": 0.0}
    assert_allclose(window.best_scale(**law, slope_variance=1.0), 465.14, rtol=1e-5)
    with pytest.raises(ValueError, match="the best scale must be at most 398 for functions of a kernel in 2"):
        window.best_kernel_scale(lambda cosine: cosine / 2, **law)


def test_without_noise_the_law_has_no_bound() -> None:
    assert window.scale_law(3, 10, 1.0, 0.0) == np.inf
