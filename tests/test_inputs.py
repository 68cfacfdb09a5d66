"""Problems from rows of data: the covariance, its sampling error, and what is said of few rows and heavy tails."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from iclab.attention import random_merged, random_separate
from iclab.numerics.curves import first_below
from iclab.problem import Regression, given_covariance, measured_inputs, read_inputs
from iclab.theory import dynamics, population

VARIANCES = np.array([0.4, 0.3, 0.2, 0.1])
PROBLEM = Regression(tuple(VARIANCES), 31)


def rows(count: int, seed: int = 0, *, tails: float | None = None, variances: np.ndarray = VARIANCES) -> np.ndarray:
    """Inputs along turned axes; Student's with `tails` degrees of freedom, or normal."""
    rng, size = np.random.default_rng(seed), len(variances)
    turn = np.linalg.qr(rng.standard_normal((size, size)))[0]
    unit = rng.standard_normal((count, size)) if tails is None else rng.standard_t(tails, (count, size))
    return unit * np.sqrt(variances * (1 if tails is None else 1 - 2 / tails)) @ turn.T


def quiet(x: np.ndarray, *args: Any, **kwargs: Any) -> Regression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Regression.from_inputs(x, *args, **kwargs)


def test_the_covariance_of_three_rows_by_hand() -> None:
    # Columns (0, 2, 4) and (0, 0, 3): centered squares 8 and 6, product 6; over 2: [[4, 3], [3, 3]].
    sample = measured_inputs([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0]])
    assert_allclose(sample.eigenvalues, (7 + np.array([1, -1]) * np.sqrt(37)) / 2)
    assert sample.directions is not None
    assert_allclose(sample.directions @ np.diag(sample.eigenvalues) @ sample.directions.T, [[4, 3], [3, 3]])
    uncentered = measured_inputs([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0]], centered=False)
    assert_allclose(np.sum(uncentered.eigenvalues), (4 + 16 + 9) / 3)


def test_wide_data_have_the_spectrum_of_their_covariance() -> None:
    x = rows(7, variances=np.linspace(1, 0.1, 30))
    sample = measured_inputs(x)
    assert_allclose(sample.eigenvalues, np.linalg.eigvalsh(np.cov(x.T))[::-1], atol=1e-14)
    assert sample.spectra is None
    assert np.all(np.isnan(dynamics.level_band(quiet(x)).low))
    assert "7 rows for 30 dimensions are few" in sample.notes[0]


def test_linear_shrinkage_has_the_weight_of_its_formula() -> None:
    # Ledoit and Wolf 2004: the mean over rows of |x xᵀ − S|² / n, over |S − μ I|².
    x = rows(60, 3)
    x = x - x.mean(axis=0)
    second = x.T @ x / 60
    noise = np.mean([np.sum((np.outer(row, row) - second) ** 2) for row in x]) / 60
    weight = noise / np.sum((second - np.eye(4) * np.trace(second) / 4) ** 2)
    sample = measured_inputs(x, centered=False, shrinkage="linear")
    assert_allclose(sample.weight, weight, rtol=1e-10)
    plain = measured_inputs(x, centered=False).eigenvalues
    assert_allclose(sample.eigenvalues, plain + weight * (plain.mean() - plain))
    assert sample.shrinkage == "linear"


def test_a_problem_from_rows_is_that_of_their_covariance_in_other_coordinates() -> None:
    x = rows(400)
    problem = quiet(x, 20, noise=0.1)
    moments = population.moments_from(np.cov(x.T), 20, noise=0.1)
    assert_allclose(dynamics.plateaus(population.moments(problem)), dynamics.plateaus(moments), rtol=1e-10)
    assert problem == Regression(problem.eigenvalues, 20, 0.1)
    assert problem.sampling is not None
    assert problem.sampling.rows == 400
    assert Regression(problem.eigenvalues, 20).sampling is None


def test_levels_of_a_spectrum_are_the_plateaus() -> None:
    problem = Regression((0.5, 0.3, 0.0), (4, 9), 0.2, (0.3, 2.0, 1.0))
    found = dynamics.spectral_levels(problem, np.array([problem.eigenvalues, (1.0, 0.1, 0.05)]))
    other = Regression((1.0, 0.1, 0.05), (4, 9), 0.2, (0.3, 2.0, 1.0))
    expected = [dynamics.plateaus(population.moments(one)) for one in (problem, other)]
    assert_allclose(found, expected, rtol=1e-12)


def test_the_drop_time_of_a_spectrum_is_that_of_its_flow() -> None:
    start, law = random_merged(4, 8, scale=1e-3, rng=np.random.default_rng(0)), population.moments(PROBLEM)
    time = np.linspace(0, 60, 2000)
    loss = dynamics.merged_flow(law, start, time).loss
    half = first_below(time, loss, (law.null_loss + population.best_loss(law)) / 2)
    found = dynamics.merged_drop_time(PROBLEM, start, np.array([VARIANCES, 2 * VARIANCES]))
    assert_allclose(found[0], half, rtol=2e-3)  # first order in the start
    assert found[1] < found[0] / 3  # growth is quadratic in the eigenvalues


def test_without_rows_a_band_is_its_value() -> None:
    levels = dynamics.level_band(PROBLEM)
    assert_array_equal(levels.low, levels.value)
    assert_array_equal(levels.high, levels.value)
    known = Regression.from_covariance(np.diag(VARIANCES), 31)
    assert_array_equal(dynamics.level_band(known).high, levels.value)


@pytest.mark.slow  # 400 data sets
@pytest.mark.parametrize(("count", "tails", "least"), [(300, None, 0.9), (50, None, 0.83), (300, 5.0, 0.8)])
def test_bands_cover_the_truth(count: int, tails: float | None, least: float) -> None:
    # Stated 95 %; rows that are few or have heavy tails hold too little of their own scatter.
    start = random_merged(4, 8, scale=1e-3, rng=np.random.default_rng(0))
    true_levels = dynamics.level_band(PROBLEM).value
    true_time = dynamics.merged_drop_time(PROBLEM, start, VARIANCES[None])[0]
    levels, times = [], []
    for seed in range(200):
        problem = quiet(rows(count, seed, tails=tails), 31)
        band = dynamics.level_band(problem)
        levels.append((band.low <= true_levels) & (true_levels <= band.high))
        if seed < 60:
            drop = dynamics.drop_band(problem, start)
            times.append(drop.low[0] <= true_time <= drop.high[0])
    assert np.min(np.mean(levels, axis=0)) >= least
    assert np.mean(times) >= least - 0.05


def test_the_band_of_separate_drops_follows_the_drops_of_other_spectra() -> None:
    start = random_separate(2, 2, scale=0.05, rng=np.random.default_rng(1))
    problem = quiet(rows(2000, variances=np.array([1.0, 0.4])), 31)
    band = dynamics.drop_band(problem, start)
    assert problem.sampling is not None
    assert problem.sampling.spectra is not None
    drawn = [
        dynamics.drop_times(population.moments(Regression(tuple(one), 31)), start)
        for one in problem.sampling.spectra[:40]
    ]
    spread = np.std(np.log(drawn), axis=0)
    assert_allclose(np.log(band.high / band.low) / (2 * 1.96), spread, rtol=0.35)  # 40 draws, and linear


def test_heavy_tails_are_said_and_what_they_cost() -> None:
    x = rows(20000, tails=6.0)
    with pytest.warns(
        UserWarning, match=r"tails of the inputs are heavier than normal ones, excess kurtosis 2\.|3\."
    ):
        problem = Regression.from_inputs(x, 8)
    own = dynamics.measured_levels(problem)
    assert own is not None
    normal = dynamics.level_band(problem).value
    assert_allclose(own[0], normal[0])
    assert own[-1] > 1.03 * normal[-1]
    assert dynamics.measured_levels(PROBLEM) is None


def test_the_loss_of_rows_with_heavy_tails_is_that_of_contexts_made_of_them() -> None:
    # Contexts of independent rows; averaged over white tasks E[h hᵀ] is the mean of the squared covariances.
    rng, x = np.random.default_rng(0), rows(400, tails=6.0)
    x = x - x.mean(axis=0)
    problem = quiet(x, 4)
    own = dynamics.measured_levels(problem)
    assert own is not None
    context, inputs = x[rng.integers(400, size=(200_000, 4))], x.T @ x / 400
    covariances = np.einsum("pni,pnj->pij", context, context) / 4
    second, cross = np.einsum("pij,pjk->ik", covariances, covariances) / len(context), inputs @ inputs
    least = np.trace(inputs) - np.trace(cross @ np.linalg.solve(second, cross) @ np.linalg.inv(inputs))
    assert_allclose(least, own[-1], rtol=4e-3)  # of 200 000 contexts, and of 399 rows in 400
    assert abs(own[-1] / dynamics.level_band(problem).value[-1] - 1) > 0.04


def test_rows_of_normal_inputs_are_said_nothing_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Regression.from_inputs(rows(500), 31)


def test_a_mean_that_stays_is_said() -> None:
    with pytest.warns(UserWarning, match="the mean of the inputs makes .* of their second moment"):
        Regression.from_inputs(rows(500) + 1, centered=False)


def test_many_rows_are_resampled_in_groups_with_the_same_scatter() -> None:
    x = rows(60_000)
    sample = measured_inputs(x)
    assert sample.spectra is not None
    # A variance of normal inputs is known to √(2/n).
    assert_allclose(np.std(np.log(sample.spectra), axis=0), np.sqrt(2 / 60_000), rtol=0.25)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((1, 4)), r"two rows or more; got shape \(1, 4\). One row has no covariance"),
        (np.ones(4), r"got shape \(4,\)"),
        (np.ones((5, 2)), "inputs must vary; got rows that are all the same"),
        ([[1.0, np.nan], [0, 1]], "inputs must be finite numbers; got NaN"),
        ([["a", "b"], ["c", "d"]], "inputs must be a number or an array of numbers"),
    ],
)
def test_rows_without_a_covariance_are_refused(x: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Regression.from_inputs(x)
    with pytest.raises(ValueError, match="shrinkage must be one of none, linear; got 'ridge'"):
        Regression.from_inputs(rows(50), shrinkage="ridge")


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "covariance must be symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "covariance must be positive semidefinite; got the eigenvalue -1"),
        ([[1.0, np.nan], [np.nan, 1.0]], "covariance must be finite"),
        ([[1.0, 2.0, 3.0]], r"covariance must be a square matrix; got shape \(1, 3\)"),
        (np.array([[1, 2], [2, 1]], dtype=np.float32), "covariance must be positive semidefinite"),
    ],
)
def test_a_matrix_that_is_no_covariance_is_refused(matrix: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Regression.from_covariance(matrix)


def test_a_covariance_in_single_precision_is_one() -> None:
    x = rows(6, variances=np.ones(9))
    matrix = np.cov(x.T).astype(np.float32)
    matrix[0, 1] *= np.float32(1 + 2e-7)
    sample = given_covariance(matrix)
    assert np.all(sample.eigenvalues >= 0)
    assert_allclose(np.sum(sample.eigenvalues), np.trace(np.cov(x.T)), rtol=1e-5)


class TestFiles:
    """Rows in the formats that data come in."""

    X = np.arange(12.0).reshape(4, 3)

    def test_all_formats_hold_the_same_rows(self, tmp_path: Path) -> None:
        import pandas as pd
        from safetensors.numpy import save_file

        np.save(tmp_path / "x.npy", self.X)
        np.savez(tmp_path / "x.npz", a=self.X, b=self.X[:2])
        np.savetxt(tmp_path / "bare.csv", self.X, delimiter=",")
        pd.DataFrame(self.X, columns=["u", "v", "w"]).to_csv(tmp_path / "named.csv", index=False, sep=";")
        pd.DataFrame(self.X, columns=["u", "v", "w"]).to_parquet(tmp_path / "x.parquet")
        save_file({"a": self.X, "b": self.X[:1]}, tmp_path / "x.safetensors")
        for name in ("x.npy", "x.npz:a", "bare.csv", "named.csv", "x.parquet", "x.safetensors:a"):
            assert_allclose(read_inputs(f"{tmp_path}/{name}"), self.X, err_msg=name)

    def test_an_image_is_a_row(self, tmp_path: Path) -> None:
        np.save(tmp_path / "images.npy", np.zeros((5, 2, 3), dtype=np.uint8))
        with pytest.warns(UserWarning, match=r"of shape \(5, 2, 3\) is read as 5 rows of 6"):
            assert read_inputs(tmp_path / "images.npy").shape == (5, 6)
        np.save(tmp_path / "large.npy", np.diag([1e200, 1.0, 2.0]))
        with pytest.raises(ValueError, match="squares that double precision holds"):
            measured_inputs(read_inputs(tmp_path / "large.npy"))

    def test_what_cannot_be_read_is_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        np.savez(tmp_path / "x.npz", a=self.X, b=self.X)
        (tmp_path / "text.csv").write_text("u,v\n1,one\n2,two\n")
        (tmp_path / "broken.npy").write_bytes(b"no array")
        (tmp_path / "rows.mat").write_bytes(b"")
        for name, message in {
            "pickled.npy": "must be a NumPy array of numbers; got a pickle, which could run code and is not opened",
            "broken.npy": "broken.npy must be a NumPy array of numbers",
            "x.npz": r"must name an array of x.npz, as x.npz:NAME; got None. There are 'a', 'b'",
            "x.npz:c": "got c. There are 'a', 'b'",
            "text.csv": "must hold numbers alone; columns v do not",
            "rows.mat": "inputs must be a file .npy, .npz:NAME, .csv, .parquet, .safetensors:NAME; got rows.mat",
        }.items():
            with pytest.raises(ValueError, match=message):
                read_inputs(f"{tmp_path}/{name}")
        with pytest.raises(FileNotFoundError, match="inputs must be a file that exists"):
            read_inputs(tmp_path / "none.npy")
