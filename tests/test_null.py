"""Levels of the measures on random numbers, against matrices drawn in full."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from iclab.spectra import measures
from iclab.spectra.measures import null

NAMES = (
    "effective_rank", "energy_effective_rank", "marginal_effective_rank", "stable_rank", "participation_ratio",
    "nuclear_rank", "energy_rank",
)  # fmt: skip
DRAWS = 400


def drawn(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    full = rng.standard_normal((DRAWS, shape[0], shape[1]))
    if len(shape) == 3:
        full = full @ rng.standard_normal((DRAWS, shape[1], shape[2]))
    return measures.rank_measures(np.linalg.svd(full, compute_uv=False)[:, : min(shape)])


@pytest.mark.parametrize("shape", [(24, 24), (12, 40), (40, 12), (40, 8, 30), (9, 20, 14), (20, 14, 9)])
def test_levels_are_those_of_matrices_drawn_in_full(shape: tuple[int, ...]) -> None:
    found = drawn(shape)
    for name in NAMES:
        mean, spread = null.level(shape, name)
        error = np.hypot(np.std(found[name]), spread) * np.sqrt(1 / DRAWS + 1 / 256)
        assert abs(mean - np.mean(found[name])) < 4 * error + 1e-12, name
        assert_allclose(spread, np.std(found[name]), rtol=0.25, err_msg=name)  # 4 errors of a spread of 256 draws


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        # one draw each, in units of the number of values: effective rank, participation ratio, stable rank
        ((256, 256), (0.804, 0.50, 0.25)),
        ((512, 64, 512), (0.966, 0.789, 0.426)),
    ],
)
def test_known_draws_lie_within_three_spreads_of_the_level(shape: tuple[int, ...], known: tuple[float, ...]) -> None:
    for name, one in zip(("effective_rank", "participation_ratio", "stable_rank"), known, strict=True):
        mean, spread = null.level(shape, name)
        assert abs(mean - one * shape[1]) < 3 * spread + 0.005 * shape[1], name  # given to two or three digits


def test_known_levels_of_the_heads_of_a_small_encoder() -> None:
    known = {"stable_rank": (16.3, 1.0), "participation_ratio": (27.3, 0.4), "nuclear_rank": (30.6, 0.2)}
    for name, (mean, spread) in known.items():
        assert abs(null.level((384, 32, 384), name)[0] - mean) < spread


def test_a_function_of_singular_values_has_a_level_too() -> None:
    assert_allclose(null.level((20, 30), measures.stable_rank), null.level((30, 20), "stable_rank"), rtol=1e-12)
    mean, spread = null.level((20, 30), lambda values: measures.spectral_gap(values, k=1))
    assert 0 < spread < mean < 0.2
    assert null.level((20, 4, 30), "numerical_rank") == (4, 0)


def test_the_same_question_has_the_same_answer() -> None:
    first = null.level((17, 5, 23), "stable_rank")
    null._draws.cache_clear()
    null._named_level.cache_clear()
    assert null.level((17, 5, 23), "stable_rank") == first


@pytest.mark.parametrize(("size", "k"), [(12, 1), (12, 4), (30, 8)])
def test_overlap_of_random_subspaces_has_its_level_and_spread(size: int, k: int) -> None:
    rng = np.random.default_rng(0)
    found = [
        measures.subspace_overlap(rng.standard_normal((size, size)), rng.standard_normal((size, size)), k=k)
        for _ in range(DRAWS)
    ]
    mean, spread = null.overlap_level(size, k)
    assert abs(np.mean(found) - mean) < 4 * spread / np.sqrt(DRAWS)
    assert_allclose(np.std(found), spread, rtol=0.25)  # of one direction the fourth moment is large
    assert null.overlap_level(size, size) == (1, 0)


@pytest.mark.parametrize(("size", "rank"), [(30, 5), (30, 20)])
def test_distance_from_a_random_row_space_has_its_level_and_spread(size: int, rank: int) -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((6, size)) * np.geomspace(1, 0.1, 6)[:, None]
    found = [measures.subspace_distance(rng.standard_normal((rank, size)), reference) for _ in range(DRAWS)]
    mean, spread = null.distance_level(size, rank, participation=measures.participation_ratio(reference))
    assert_allclose(
        np.mean(found), mean, atol=spread**2 / mean + 4 * spread / np.sqrt(DRAWS)
    )  # first order in spread
    assert_allclose(np.std(found), spread, rtol=0.2)


def test_the_level_of_the_best_rotation_holds_where_squares_are_no_numbers() -> None:
    values = np.array([3.0, 2.0, 1.0])
    for scale in (1e307, 1e-307):
        assert_allclose(
            null.procrustes_level(values * scale, (5, 7)), null.procrustes_level(values, (5, 7)), rtol=1e-10
        )
    # one norm beyond the other by far: the distance is the ratio of norms
    assert_allclose(null.procrustes_level(values, (5, 7), norm_ratio=1e200)[0], 1e200, rtol=1e-12)


@pytest.mark.parametrize("shape", [(20, 12), (5, 12), (20, 3, 12), (2, 4, 12), (20, 10, 12)])
@pytest.mark.parametrize("norm_ratio", [1.0, 0.3])
def test_procrustes_distance_from_a_random_matrix_has_its_level_and_spread(shape, norm_ratio: float) -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((4, 12)) * np.array([4.0, 2.0, 1.0, 0.5])[:, None]
    found = []
    for _ in range(DRAWS):
        drawn = rng.standard_normal(shape[:2]) @ (rng.standard_normal(shape[1:]) if len(shape) == 3 else np.eye(12))
        drawn *= norm_ratio * np.linalg.norm(reference) / np.linalg.norm(drawn)
        found.append(measures.procrustes_distance(drawn, reference))
    values = measures.singular_values(reference)
    mean, spread = null.procrustes_level(values, shape, norm_ratio=norm_ratio)
    assert abs(np.mean(found) - mean) < 4 * np.std(found) * np.sqrt(1 / DRAWS + 1 / 64)
    assert_allclose(spread, np.std(found), rtol=0.4)  # 4 errors of a spread of 64 draws


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: null.level((3,), "stable_rank"), "shape"),
        (lambda: null.level((3, 0), "stable_rank"), "size of shape"),
        (lambda: null.level((3, 3), "rank"), "measure must be one of"),
        (lambda: null.procrustes_level(np.ones(4), (5, 3)), "reference"),
        (lambda: null.procrustes_level(np.zeros(2), (5, 3)), "reference"),
        (lambda: null.procrustes_level(np.ones(2), (5, 3), norm_ratio=0), "norm_ratio"),
        (lambda: null.overlap_level(3, 4), "k must"),
        (lambda: null.distance_level(3, 3, participation=1), "rank must"),
        (lambda: null.distance_level(3, 2, participation=0.5), "participation"),
    ],
)
def test_what_has_no_level_is_named(call, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()
