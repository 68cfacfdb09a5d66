"""Ranks, subspaces and distances of matrices and of products kept as two factors."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from iclab.spectra import measures
from iclab.spectra.measures.factors import Product
from iclab.spectra.measures.spectrum import leading_spectrum, spectrum

RANKS = {
    "effective": measures.effective_rank,
    "energy": lambda x: measures.effective_rank(x, power=2),
    "marginal": lambda x: measures.effective_rank(x, drop=2),
    "stable": measures.stable_rank,
    "participation": measures.participation_ratio,
    "nuclear": measures.nuclear_rank,
    "energy rank": lambda x: measures.energy_rank(x, fraction=0.7),
    "gap": lambda x: measures.spectral_gap(x, k=2),
}
STORED = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn}
MATRIX = np.random.default_rng(0).standard_normal((7, 12)) * np.geomspace(1, 1e-2, 12)

seeds = st.integers(0, 10_000)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def rotation(seed: int, size: int) -> np.ndarray:
    return np.linalg.qr(normal(seed, size, size))[0]


def product(seed: int, rows: int = 20, inner: int = 4, columns: int = 15) -> Product:
    return Product(normal(seed, rows, inner), normal(seed + 1, inner, columns))


def test_ranks_of_four_values_are_the_known_numbers() -> None:
    # σ = 4, 2, 1, ½: Σσ = 7.5, Σσ² = 21.25, Σσ⁴ = 273.0625
    values = np.array([1.0, 4.0, 0.5, 2.0])
    found = [
        measures.effective_rank(values),
        measures.effective_rank(values, power=2),
        measures.effective_rank(values, drop=1),
        measures.stable_rank(values),
        measures.participation_ratio(values),
        measures.nuclear_rank(values),
        measures.energy_rank(values, fraction=0.9),
        measures.spectral_gap(values, k=2),
    ]
    entropies = [3.117142110535455, 2.0629159664687955, 2.6004900059896596]
    assert_allclose(found, [*entropies, 21.25 / 16, 21.25**2 / 273.0625, 7.5**2 / 21.25, 2, 0.5], rtol=1e-12)


def test_overlaps_and_distances_of_two_drawn_matrices_are_the_known_numbers() -> None:
    stream = np.random.RandomState(0).standard_normal
    one, two = (stream((6, 3)) @ stream((3, 5)) for _ in range(2))
    found = [
        measures.subspace_overlap(one, two, k=2),
        measures.subspace_overlap(one, two, k=2, side="left"),
        measures.subspace_distance(one, two),
        measures.procrustes_distance(one, two),
    ]
    assert_allclose(
        found, [0.4013286293427399, 0.34613231172490744, 0.44605367147138875, 1.1740032554034757], rtol=1e-9
    )


@pytest.mark.parametrize("size", [1, 3, 16])
def test_every_rank_of_an_isotropic_matrix_is_its_size(size: int) -> None:
    found = [RANKS[name](rotation(0, size)) for name in ("effective", "energy", "stable", "participation", "nuclear")]
    assert_allclose(found, size, rtol=1e-13)
    assert measures.numerical_rank(rotation(0, size)) == size


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e30])
def test_ranks_do_not_see_the_scale(name: str, scale: float) -> None:
    assert_allclose(RANKS[name](scale * MATRIX), RANKS[name](MATRIX), rtol=1e-9)  # Gram of values down to 1e-2
    assert measures.numerical_rank(scale * MATRIX) == measures.numerical_rank(MATRIX) == 7


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_subspace_measures_do_not_see_the_scale_of_what_is_compared(scale: float) -> None:
    one, two = normal(0, 4, 9), normal(1, 4, 9)
    for side in ("left", "right"):
        assert_allclose(
            measures.subspace_overlap(scale * one, two, k=2, side=side),
            measures.subspace_overlap(one, two, k=2, side=side),
        )
    assert_allclose(measures.subspace_distance(scale * one, two / scale), measures.subspace_distance(one, two))
    assert_allclose(measures.procrustes_distance(scale * one, scale * two), measures.procrustes_distance(one, two))
    assert_allclose(measures.principal_angles(scale * one.T, two.T), measures.principal_angles(one.T, two.T))
    extreme = Product(scale * one.T, scale * two)
    assert_allclose(spectrum(extreme).values, scale**2 * spectrum(Product(one.T, two)).values, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-290, 1e-200, 1e200, 1e300])
def test_distances_hold_at_the_ends_of_the_range_of_numbers(scale: float) -> None:
    a, b = scale * np.round(1000 * normal(0, 3, 8)), scale * np.round(1000 * normal(1, 3, 8))
    at = [measures.subspace_distance(x, y) for x, y in ((a, b), (a / scale, b / scale))]
    assert_allclose(at[0], at[1], rtol=1e-12)
    assert_allclose(*(measures.procrustes_distance(x, y) for x, y in ((a, b), (a / scale, b / scale))), rtol=1e-12)


MASKED = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])


@pytest.mark.parametrize("x", [MASKED, MASKED[0], [[1, 2], [3]], ["a", "b"], [None, 1.0]], ids=str)
def test_what_is_no_array_of_numbers_is_refused_by_every_measure(x) -> None:
    for measure in (measures.stable_rank, measures.singular_values, lambda x: measures.procrustes_distance(x, x)):
        with pytest.raises(ValueError, match="must"):
            measure(x)


EXTREME = [1e308, 1.7e308, 1e160, 1e-160, 1e-300, 1e-307]


@pytest.mark.parametrize("scale", EXTREME)
@pytest.mark.parametrize("name", RANKS)
def test_ranks_hold_where_squares_are_no_numbers(name: str, scale: float) -> None:
    x = MATRIX / np.max(np.abs(MATRIX))
    assert_allclose(RANKS[name](x * scale), RANKS[name](x), rtol=1e-8)
    assert measures.numerical_rank(x * scale) == 7
    for left, right in ((scale, 1.0), (scale, 1 / scale), (scale, scale)):
        whole, small = Product(x.T, x), Product(x.T * left, x * right)
        assert_allclose(RANKS[name](small), RANKS[name](whole), rtol=1e-8)
        assert measures.numerical_rank(small) == measures.numerical_rank(whole)


def test_a_matrix_of_equal_large_entries_has_rank_one() -> None:
    x = np.full((3, 3), 1e308)
    assert_allclose([measures.stable_rank(x), measures.effective_rank(x), measures.numerical_rank(x)], 1, rtol=1e-12)
    assert_allclose(measures.subspace_overlap(x, np.ones((3, 3)), k=1), 1, rtol=1e-12)
    assert_allclose(measures.procrustes_distance(x, 0.5 * x), 1, rtol=1e-12)
    assert_allclose(measures.procrustes_distance(x, 1e-2 * x), 99, rtol=1e-12)
    assert_allclose(leading_spectrum(x * 0.1, count=1).values, 3e307, rtol=1e-12)
    for call in (measures.singular_values, spectrum):
        with pytest.raises(ValueError, match=r"x must have singular values between .*; got about 1e308\."):
            call(x)


@pytest.mark.parametrize("one", EXTREME)
@pytest.mark.parametrize("two", [1.0, 1e308, 1e-307])
def test_subspaces_hold_where_squares_are_no_numbers(one: float, two: float) -> None:
    a, b = (part / np.max(np.abs(part)) for part in (normal(1, 6, 9), normal(2, 6, 9)))
    for side in ("left", "right"):
        for first, second in ((a, b), (Product(a.T, a), Product(b.T, b))):
            large = [
                Product(x.left * c, x.right * c) if isinstance(x, Product) else x * c
                for x, c in ((first, one), (second, two))
            ]
            for measure in (
                lambda x, y: measures.subspace_overlap(x, y, k=2, side=side),  # noqa: B023
                lambda x, y: measures.subspace_distance(x, y, rank=2, side=side),  # noqa: B023
            ):
                assert_allclose(measure(*large), measure(first, second), rtol=1e-8)
    angles = measures.principal_angles(a.T * one, b.T * two)
    assert_allclose(angles, measures.principal_angles(a.T, b.T), rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("one", EXTREME)
@pytest.mark.parametrize("two", [1.0, 1e308, 1e-307])
def test_the_best_rotation_holds_where_squares_are_no_numbers(one: float, two: float) -> None:
    # ‖A a − b‖² = ‖a‖² + ‖b‖² − 2 ‖b aᵀ‖_*, at 700 digits of range
    a, b = normal(1, 6, 9), normal(2, 6, 9)
    along = np.linalg.svd(b @ a.T, compute_uv=False).sum()
    ratio = mpmath.mpf(one) / mpmath.mpf(two)
    square = (ratio * np.linalg.norm(a)) ** 2 + np.linalg.norm(b) ** 2 - 2 * ratio * along
    expected = float(mpmath.sqrt(square) / np.linalg.norm(b))
    assert_allclose(measures.procrustes_distance(0.2 * a * one, 0.2 * b * two), expected, rtol=1e-8)


@given(seeds)
def test_ranks_do_not_see_rotations_and_transposition(seed: int) -> None:
    turned = rotation(seed, 7) @ MATRIX @ rotation(seed + 1, 12)
    for name, rank in RANKS.items():
        assert_allclose([rank(turned), rank(MATRIX.T)], rank(MATRIX), rtol=1e-9), name


@given(seeds)
def test_ranks_stand_in_their_known_order(seed: int) -> None:
    # stable <= participation <= energy entropy, by Rényi orders ∞, 2, 1; all at most the number of values
    values = np.abs(normal(seed, 9)) ** 3
    found = [RANKS[name](values) for name in ("stable", "participation", "energy")]
    assert 1 <= found[0] <= found[1] * (1 + 1e-12) <= found[2] * (1 + 1e-11) <= 9 * (1 + 1e-11)
    assert RANKS["nuclear"](values) <= RANKS["effective"](values) * (1 + 1e-12)  # nuclear = order 2 of σ/Σσ


@given(seeds)
def test_overlap_does_not_see_sign_and_rotation_inside_the_subspace(seed: int) -> None:
    left, right = rotation(seed, 6)[:, :3], rotation(seed + 1, 8)[:, :3]
    values, other = np.diag([3.0, 2.0, 0.01]), normal(seed + 2, 6, 8)
    inside = scipy.linalg.block_diag(rotation(seed + 3, 2), -1.0)
    one = left @ values @ right.T
    two = left @ values @ inside @ right.T
    assert_allclose(measures.subspace_overlap(one, two, k=2), 1, rtol=1e-9)
    assert_allclose(
        measures.subspace_overlap(one, other, k=2), measures.subspace_overlap(-two, other, k=2), rtol=1e-8
    )


@given(seeds)
def test_distance_does_not_see_an_invertible_factor_and_procrustes_no_rotation(seed: int) -> None:
    one, two = normal(seed, 4, 9), normal(seed + 1, 4, 9)
    mixed = (normal(seed + 2, 4, 4) + 4 * np.eye(4)) @ one
    assert_allclose(measures.subspace_distance(mixed, two), measures.subspace_distance(one, two), rtol=1e-8)
    assert_allclose(
        measures.procrustes_distance(rotation(seed, 4) @ one, two), measures.procrustes_distance(one, two), rtol=1e-10
    )
    assert measures.subspace_distance(one, mixed) < 1e-10
    assert measures.procrustes_distance(rotation(seed, 4) @ one, one) < 1e-13


def test_distances_are_the_least_squares_and_the_best_rotation() -> None:
    one, two = normal(0, 5, 8), normal(1, 5, 8)
    fitted = np.linalg.lstsq(one.T, two.T, rcond=None)[0].T
    assert_allclose(measures.subspace_distance(one, two), np.linalg.norm(fitted @ one - two) / np.linalg.norm(two))
    turn = scipy.linalg.orthogonal_procrustes(one.T, two.T)[0].T
    assert_allclose(measures.procrustes_distance(one, two), np.linalg.norm(turn @ one - two) / np.linalg.norm(two))
    for name in ("subspace_distance", "procrustes_distance"):
        measure = getattr(measures, name)
        assert_allclose(measure(one.T, two.T, side="left"), measure(one, two), rtol=1e-12)


@given(seeds)
def test_a_product_of_two_factors_reads_as_its_dense_matrix(seed: int) -> None:
    # The dense matrix goes by its own decomposition, the product by small Grams: to rounding of either.
    one, two = product(seed), product(seed + 2)
    dense = [np.asarray(x.left @ x.right) for x in (one, two)]
    exact = scipy.linalg.svdvals(dense[0])[:4]
    assert_allclose(spectrum(one).values, exact, atol=1e-14 * exact[0] * (exact[0] / exact[-1]))
    assert spectrum(one).route == "gram"
    for side in ("left", "right"):
        for k in (1, 2, 4):
            assert_allclose(
                measures.subspace_overlap(one, two, k=k, side=side),
                measures.subspace_overlap(*dense, k=k, side=side),
                atol=1e-12,
            )
        for measure in (measures.subspace_distance, measures.procrustes_distance):
            assert_allclose(measure(one, two, side=side), measure(*dense, side=side), atol=1e-12)
    assert measures.numerical_rank(one) == measures.numerical_rank(dense[0]) == 4


def test_a_well_conditioned_product_agrees_with_the_dense_matrix_to_rounding() -> None:
    one, two = (Product(normal(s, 300, 8), normal(s + 1, 8, 200)) for s in (0, 2))
    dense = [x.left @ x.right for x in (one, two)]
    assert_allclose(spectrum(one).values, scipy.linalg.svdvals(dense[0])[:8], rtol=1e-14)
    for measure in (measures.subspace_distance, measures.procrustes_distance):
        assert_allclose(measure(one, two), measure(*dense), rtol=1e-14)
    assert_allclose(measures.subspace_overlap(one, two, k=8), measures.subspace_overlap(*dense, k=8), rtol=1e-13)


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize(("rank", "shape"), [(4, (256, 256)), (16, (1024, 1024)), (8, (4096, 128))])
def test_numerical_rank_counts_what_stands_above_rounding(stored: str, rank: int, shape: tuple[int, int]) -> None:
    exact = normal(rank, shape[0], rank) @ normal(rank + 1, rank, shape[1])
    assert measures.numerical_rank(exact.astype(STORED[stored])) == rank
    assert measures.numerical_rank(normal(0, 40, 20).astype(STORED[stored])) == 20  # and full is full


@pytest.mark.parametrize("stored", STORED)
def test_a_product_has_the_rank_of_its_factors_in_their_stored_type(stored: str) -> None:
    thin = (normal(0, 200, 3) @ normal(1, 3, 16)).astype(STORED[stored])
    whole = normal(2, 16, 100).astype(STORED[stored])
    assert measures.numerical_rank(Product(thin, whole)) == 3
    assert measures.numerical_rank(Product(whole.T, whole)) == 16
    assert np.isnan(measures.subspace_overlap(Product(thin, whole), Product(thin, whole), k=4))
    assert_allclose(measures.subspace_overlap(Product(thin, whole), Product(thin, whole), k=3), 1, rtol=1e-9)


def test_rounding_to_float32_does_not_hide_a_distance() -> None:
    one, two = (normal(s, 30, 4) @ normal(s + 1, 4, 25) for s in (0, 2))
    exact = measures.subspace_distance(one, two)
    assert exact > 0.8
    assert_allclose(measures.subspace_distance(one.astype(np.float32), two), exact, rtol=1e-6)


def test_a_gap_says_whether_a_subspace_is_defined() -> None:
    def noisy(values: np.ndarray) -> float:
        exact = np.diag(values)
        return measures.subspace_overlap(exact, exact + 1e-3 * normal(0, 40, 40) / 6, k=4)

    assert noisy(np.ones(40)) < 0.7
    assert noisy(np.concatenate([1.1 * np.ones(4), np.ones(36)])) > 0.99


def test_angles_that_are_tiny_keep_their_digits() -> None:
    angles = np.array([1e-12, 1e-7, 0.3, 1.2])
    plane = np.vstack([np.eye(4), np.zeros((4, 4))])
    tilted = np.vstack([np.diag(np.cos(angles)), np.diag(np.sin(angles))])
    found = measures.principal_angles(plane @ normal(0, 4, 4), tilted @ normal(1, 4, 4))
    assert_allclose(found, angles, rtol=1e-9, atol=1e-15)  # rounding of the basis is 1e-16, absolute


def test_angles_are_those_of_scipy_and_ignore_directions_that_are_not_there() -> None:
    one, two = normal(0, 9, 3), normal(1, 9, 4)
    assert_allclose(measures.principal_angles(one, two), scipy.linalg.subspace_angles(one, two)[::-1], rtol=1e-10)
    plane = normal(2, 5, 2) @ normal(3, 2, 3)  # rank 2 of 3, and a line inside it
    assert_allclose(measures.principal_angles(plane, plane[:, :1]), [0.0], atol=1e-14)
    assert measures.principal_angles(plane, np.zeros((5, 2))).size == 0


def test_consecutive_overlaps_are_spaced_by_the_logarithm_of_steps() -> None:
    series = [normal(0, 6, 8) + 0.1 * t * normal(1, 6, 8) for t in range(4)]
    overlaps = measures.consecutive_overlaps(series, k=2)
    assert_allclose(overlaps[1], measures.subspace_overlap(series[1], series[2], k=2))
    turned = measures.turnover(overlaps, np.array([0, 1, 3, 7]))
    assert_allclose(turned, (1 - overlaps) / np.log(2))


@pytest.mark.parametrize(
    ("left", "right", "route"),
    [
        (normal(0, 30, 5), normal(1, 5, 40), "gram"),
        (normal(0, 30, 5) @ np.diag([1, 1, 1, 1, 0]), normal(1, 5, 40), "qr"),
        (normal(0, 30, 5) * np.geomspace(1, 1e-9, 5), normal(1, 5, 40), "qr"),
        (normal(0, 3, 5), normal(1, 5, 40), "qr"),  # a head larger than its input
        (np.zeros((30, 5)), normal(1, 5, 40), "gram"),
    ],
)
def test_the_route_and_the_floor_of_a_spectrum_are_named(left: np.ndarray, right: np.ndarray, route: str) -> None:
    found = spectrum(Product(left, right))
    exact = scipy.linalg.svdvals(left @ right)[: min(5, len(left))]
    assert found.route == route
    assert_allclose(found.values, exact, atol=max(found.floor, 1e-13 * exact[0]))
    assert_allclose(found.frobenius, np.linalg.norm(exact), rtol=1e-12)
    assert np.sum(found.values > found.floor) == np.linalg.matrix_rank(left @ right)


@given(seeds, st.floats(0, 9), st.floats(-40, 40))
def test_products_of_known_spectrum_are_exact_to_their_floor(seed: int, steep: float, size: float) -> None:
    # A = U a Qᵀ and B = Q b Vᵀ with orthonormal columns: the values are a b, however much either is graded
    one, two = 10.0 ** (-steep * np.random.default_rng(seed).uniform(size=(2, 6)))
    turn, left, right = rotation(seed, 6), rotation(seed + 1, 30)[:, :6], rotation(seed + 2, 20)[:, :6]
    scale = 10.0**size
    found = spectrum(Product(scale * left * one @ turn.T, turn * two @ right.T))
    exact = -np.sort(-scale * one * two)
    assert np.max(np.abs(found.values - exact)) < found.floor
    if found.route == "gram":
        assert_allclose(found.values, exact, rtol=1e-4)  # ½ ε (10⁶)², the condition up to which Grams are used


def test_leading_values_of_a_large_matrix_come_without_decomposing_it() -> None:
    matrix = (normal(0, 900, 20) @ np.diag(np.geomspace(100, 1, 20)) @ normal(1, 20, 300)).astype(np.float32)
    matrix += normal(2, 900, 300).astype(np.float32)
    exact = scipy.linalg.svdvals(matrix.astype(float))
    found = leading_spectrum(matrix, count=8)
    assert_allclose(found.values, exact[:8], rtol=1e-12)  # (σ_25/σ_8)^10 is 1e-23
    assert np.all(found.values <= exact[:8] * (1 + 1e-12))
    assert_allclose(measures.stable_rank(found), np.sum(exact**2) / exact[0] ** 2, rtol=1e-9)
    with pytest.raises(ValueError, match="leading"):
        measures.effective_rank(found)


def test_ranks_of_many_spectra_at_once_are_those_of_each() -> None:
    spectra = -np.sort(-np.abs(normal(0, 3, 2, 9)))
    table = measures.rank_measures(spectra, drop=2, fraction=0.7)
    for place in np.ndindex(3, 2):
        assert_allclose(table["effective_rank"][place], RANKS["effective"](spectra[place]))
        assert_allclose(table["energy_effective_rank"][place], RANKS["energy"](spectra[place]))
        assert_allclose(table["marginal_effective_rank"][place], RANKS["marginal"](spectra[place]))
        assert_allclose(table["energy_rank"][place], RANKS["energy rank"](spectra[place]))


@pytest.mark.parametrize("name", [name for name in RANKS if name != "gap"])
@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((3, 4)), Product(np.zeros((5, 2)), np.ones((2, 4)))])
def test_ranks_of_zeros_are_undefined(name: str, x) -> None:
    assert np.isnan(RANKS[name](x))


def test_what_is_not_defined_is_nan() -> None:
    zero, thin = np.zeros((4, 6)), normal(0, 4, 2) @ normal(1, 2, 6)
    assert measures.numerical_rank(zero) == 0
    assert np.isnan(measures.subspace_overlap(zero, thin, k=1))
    assert np.isnan(measures.subspace_overlap(thin, thin, k=3))  # more directions than it has
    assert np.isnan(measures.subspace_distance(thin, zero))
    assert measures.subspace_distance(zero, thin) == 1  # nothing of the reference is reached
    assert np.isnan(measures.subspace_distance(thin, thin, rank=3))
    assert np.isnan(measures.procrustes_distance(thin, zero))
    assert np.isnan(measures.spectral_gap(thin, k=7))
    assert np.isnan(measures.effective_rank(thin, drop=2))  # only rounding noise is left
    assert np.isnan(measures.effective_rank(thin, drop=9))
    assert measures.spectral_gap(np.array([2.0, 1.0]), k=2) == 1


def test_a_distance_that_is_zero_whatever_the_matrix_is_refused() -> None:
    square, other = normal(0, 5, 5), normal(1, 5, 5)
    with pytest.raises(ValueError, match="zero whatever"):
        measures.subspace_distance(square, other)
    with pytest.raises(ValueError, match="left space"):
        measures.subspace_distance(normal(0, 4, 9), normal(1, 4, 9), side="left")
    assert 0 < measures.subspace_distance(square, other, rank=2) < 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_counted_and_placed(bad: float) -> None:
    matrix = normal(0, 4, 5)
    matrix[2, 1] = matrix[3, 4] = bad
    for call in (
        lambda: measures.effective_rank(matrix),
        lambda: measures.numerical_rank(matrix.astype(np.float16)),
        lambda: measures.subspace_overlap(matrix, matrix, k=1),
        lambda: leading_spectrum(matrix, count=2),
    ):
        with pytest.raises(ValueError, match=r"2 NaN or infinite entries of 20, the first at \(2, 1\)"):
            call()
    with pytest.raises(ValueError, match="finite"):
        spectrum(Product(matrix, normal(1, 5, 3)))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: measures.effective_rank(np.ones((2, 2, 2))), "x must be a non-empty matrix"),
        (lambda: measures.effective_rank(np.array([1.0, -1.0])), "singular values"),
        (lambda: measures.effective_rank(np.zeros((0, 3))), "non-empty"),
        (lambda: measures.effective_rank(MATRIX, power=0), "power"),
        (lambda: measures.effective_rank(MATRIX, drop=-1), "drop"),
        (lambda: measures.energy_rank(MATRIX, fraction=0), "fraction"),
        (lambda: measures.spectral_gap(MATRIX, k=0), "k must"),
        (lambda: measures.numerical_rank(np.ones(3)), "shape and stored"),
        (lambda: measures.numerical_rank(np.ones((3, 3), dtype=np.int8)), "dequantize"),
        (lambda: measures.stable_rank(np.ones((3, 3), dtype=complex)), "real"),
        (lambda: measures.subspace_overlap(MATRIX, MATRIX, k=1, side="up"), "side"),
        (lambda: measures.subspace_overlap(MATRIX, MATRIX.T, k=1), "right side"),
        (lambda: measures.principal_angles(MATRIX, MATRIX.T), "left side"),
        (lambda: measures.turnover(np.ones(3), np.arange(3)), "one more"),
        (lambda: Product(MATRIX, MATRIX), "multiplied"),
        (lambda: leading_spectrum(MATRIX, count=8), "count"),
    ],
)
def test_what_cannot_be_measured_is_named(call, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()
