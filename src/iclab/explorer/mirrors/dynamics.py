"""The dynamics of linear attention on the page: moments, plateaus, closed forms, flows, fixed points."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.attention import MergedAttention, SeparateAttention
from iclab.explorer.mirrors.mirror import FLOW, Mirror, chance, log_uniform, rounded, sizes
from iclab.problem import Regression
from iclab.theory import dynamics, population
from iclab.theory.population import Moments

__all__ = ["DYNAMICS"]

Rng = np.random.Generator
TIMES = 8  # of a curve


def _problem(rng: Rng, most: int = 6, *, zeros: bool = True) -> dict[str, Any]:
    size = int(rng.integers(1, most + 1))
    eigenvalues, tasks = sorted(sizes(rng, size, 0.02, 1), reverse=True), sizes(rng, size, 0.2, 5)
    if zeros and size > 1 and rng.random() < 0.2:
        (eigenvalues if rng.random() < 0.5 else tasks)[-1] = 0.0
    lengths = rng.integers(1, 300, rng.integers(1, 4)).tolist()
    noise = chance(rng, 0.3, 0.0, log_uniform(rng, 1e-3, 2))
    problem = {"eigenvalues": eigenvalues, "contextLengths": chance(rng, 0.05, [10**6], lengths), "noise": noise}
    return chance(rng, 0.3, problem, problem | {"taskEigenvalues": tasks})


def _white(rng: Rng) -> dict[str, Any]:
    size, variance, task = int(rng.integers(1, 17)), log_uniform(rng, 0.01, 1), log_uniform(rng, 0.2, 5)
    noise = chance(rng, 0.3, 0.0, log_uniform(rng, 1e-3, 2))
    spectra = {"eigenvalues": [variance] * size, "taskEigenvalues": [task] * size}
    return spectra | {"contextLengths": [int(rng.integers(1, 300))], "noise": noise}


def _regression(problem: Mapping[str, Any]) -> Regression:
    tasks = problem.get("taskEigenvalues")
    return Regression(
        tuple(problem["eigenvalues"]), tuple(problem["contextLengths"]), problem["noise"], tasks and tuple(tasks)
    )


def _plain(law: Moments) -> dict[str, Any]:
    matrices = {"cross": law.cross, "second": law.second, "inputCovariance": law.input_covariance}
    return {name: np.diag(matrix).tolist() for name, matrix in matrices.items()} | {"nullLoss": law.null_loss}


def _law(moments: Mapping[str, Any]) -> Moments:
    cross, second, inputs = (np.diag(moments[name]) for name in ("cross", "second", "inputCovariance"))
    return Moments(cross, second, inputs, moments["nullLoss"])


def _moments(rng: Rng, most: int = 6, *, zeros: bool = True) -> dict[str, Any]:
    problem = _problem(rng, most, zeros=zeros)
    inputs, noise = np.array(problem["eigenvalues"]), problem["noise"]
    tasks = np.array(problem.get("taskEigenvalues", np.ones_like(inputs)))
    null_loss, shortness = float(tasks @ inputs) + noise, 1 / problem["contextLengths"][0]
    cross = tasks * inputs**2
    second = cross + shortness * (cross + null_loss * inputs)
    matrices = {"cross": cross, "second": second, "inputCovariance": inputs}
    return {name: diagonal.tolist() for name, diagonal in matrices.items()} | {"nullLoss": null_loss}


def _times(rng: Rng, low: float, high: float) -> list[float]:
    return [0.0, *sorted(sizes(rng, TIMES - 1, low, high))]


def _grid(latest: float) -> list[float]:
    return [rounded(time) for time in np.linspace(0, latest, TIMES).tolist()]


def _aligned_start(rng: Rng) -> tuple[dict[str, Any], list[float], list[float]]:
    problem = _problem(rng, 2)
    law = population.moments(_regression(problem))
    g, h = np.diag(law.cross), np.diag(law.second) * np.diag(law.input_covariance)
    rest = np.where((g > 0) & (h > 0), np.cbrt(g / np.where(h > 0, h, 1)), 1.0)
    initial = [rounded(value * log_uniform(rng, 1e-3, 5)) for value in rest.tolist()]
    return problem, initial, _times(rng, 0.01, 1000)


def _white_start(rng: Rng) -> tuple[dict[str, Any], float, list[float]]:
    return _white(rng), log_uniform(rng, 1e-9, 0.1), _times(rng, 0.01, 3000)


def _white_drop(rng: Rng) -> tuple[dict[str, Any], float, float]:
    return _white(rng), log_uniform(rng, 1e-9, 0.01), rounded(rng.uniform(0.05, 0.95))


def _gamma(rng: Rng) -> tuple[dict[str, Any], list[float]]:
    law = _moments(rng)
    return law, [rounded(value) for value in rng.standard_normal(len(law["cross"]) ** 2).tolist()]


def _entries(rng: Rng, scale: float, *shape: int) -> Any:
    return np.vectorize(rounded)(scale * rng.standard_normal(shape)).tolist()


def _merged_start(rng: Rng) -> tuple[dict[str, Any], dict[str, Any]]:
    law, heads, scale = _moments(rng, 4, zeros=False), int(rng.integers(1, 5)), log_uniform(rng, 0.02, 0.2)
    size = len(law["cross"])
    return law, {"value": _entries(rng, scale, heads), "keyQuery": _entries(rng, scale / size, heads, size**2)}


def _merged(law: Mapping[str, Any], start: Mapping[str, Any]) -> MergedAttention:
    size = len(law["cross"])
    return MergedAttention(np.array(start["value"]), np.array(start["keyQuery"]).reshape(-1, size, size))


def _merged_flow(rng: Rng) -> tuple[Any, ...]:
    law, start = _merged_start(rng)
    return law, start, _grid(rng.uniform(2, 8) / float(np.linalg.norm(law["cross"]))), 1e-12


def _separate_flow(rng: Rng) -> tuple[Any, ...]:
    law, heads, scale = _moments(rng, 4, zeros=False), int(rng.integers(1, 5)), log_uniform(rng, 0.05, 0.3)
    size = len(law["cross"])
    start = {"value": _entries(rng, scale, heads)}
    start |= {part: _entries(rng, scale / size**0.5, heads, size) for part in ("key", "query")}
    return law, start, _grid(rng.uniform(0.5, 3) / scale / law["cross"][0]), 1e-12


def _reduced_flow(rng: Rng) -> tuple[Any, ...]:
    law = _moments(rng)
    return law, log_uniform(rng, 1e-6, 1e-2), _grid(12 / float(np.linalg.norm(law["cross"]))), 1e-12


def _flow(loss: np.ndarray, *parts: np.ndarray) -> dict[str, Any]:
    states = np.concatenate([part.reshape(len(loss), -1) for part in parts], axis=1)
    return {"loss": loss.tolist(), "states": states.tolist()}


def _merged_answer(moments: Any, start: Any, time: list[float], tolerance: float) -> dict[str, Any]:
    found = dynamics.merged_flow(_law(moments), _merged(moments, start), time, tolerance=tolerance)
    return _flow(found.loss, found.weights.value, found.weights.key_query)


def _separate_answer(moments: Any, start: Any, time: list[float], tolerance: float) -> dict[str, Any]:
    key, query = (np.array(start[part])[:, None] for part in ("key", "query"))
    layer = SeparateAttention(np.array(start["value"]), key, query)
    found = dynamics.separate_flow(_law(moments), layer, time, tolerance=tolerance)
    return _flow(found.loss, *vars(found.weights).values())


def _reduced_answer(moments: Any, amplitude: float, time: list[float], tolerance: float) -> dict[str, Any]:
    law = _law(moments)
    found = dynamics.reduced_merged_flow(law, amplitude, time, tolerance=tolerance)
    along = dynamics.commuting_modes(law).directions
    b = np.einsum("dm,...de,em->...m", along, found.weights.key_query[:, 0], along)
    return _flow(found.loss, found.weights.value, b)


def _learned(rng: Rng) -> tuple[dict[str, Any], list[int]]:
    law = _moments(rng)
    return law, np.flatnonzero(rng.random(len(law["cross"])) < 0.5).tolist()


def _held(rng: Rng) -> tuple[dict[str, Any], list[int], int]:
    law, heads = _moments(rng), int(rng.integers(1, 5))
    every = list(range(len(law["cross"])))
    return law, chance(rng, 0.5, [], every), heads


def _normalized(problem: Any, normalization: str) -> dict[str, Any]:
    one = _regression(problem)
    return _plain(
        population.moments_from(
            np.diag(one.eigenvalues),
            one.context_lengths,
            task_covariance=np.diag(one.task_spectrum),
            noise=one.noise,
            normalization=normalization,
        )
    )


def _modes_of(moments: Any) -> dict[str, Any]:
    found = dynamics.commuting_modes(_law(moments))
    return {
        "direction": np.argmax(np.abs(found.directions), axis=0).tolist(),
        "signal": found.signal.tolist(),
        "curvature": found.curvature.tolist(),
        "contribution": population.modes(_law(moments)).contribution.tolist(),
    }


def _mode_pair(moments: Any) -> dict[str, Any]:
    law = _law(moments)
    curvature = np.diag(law.second) * np.diag(law.input_covariance)
    return {"signal": np.diag(law.cross).tolist(), "curvature": curvature.tolist()}


DYNAMICS: Mapping[str, Mirror] = {
    "moments": Mirror(lambda rng: (_problem(rng),), lambda problem: _plain(population.moments(_regression(problem)))),
    "momentsFrom": Mirror(lambda rng: (_problem(rng), str(rng.choice(population.NORMALIZATIONS))), _normalized),
    "signalAndCurvature": Mirror(lambda rng: (_moments(rng),), _mode_pair),
    "modes": Mirror(lambda rng: (_moments(rng),), _modes_of),
    "loss": Mirror(
        _gamma,
        lambda law, gamma: float(population.loss(_law(law), np.reshape(gamma, (len(law["cross"]), -1)))),
    ),
    "plateaus": Mirror(lambda rng: (_moments(rng),), lambda law: dynamics.plateaus(_law(law)).tolist(), curve=True),
    "alignedValues": Mirror(
        _aligned_start, lambda *given: _aligned(dynamics.aligned_values, *given).T.tolist(), seconds=3e-3
    ),
    "alignedLoss": Mirror(
        _aligned_start,
        lambda *given: _aligned(dynamics.aligned_loss, *given).tolist(),
        curve=True,
        seconds=2e-3,
    ),
    "halfDropShift": Mirror(lambda rng: (_moments(rng),), lambda law: dynamics.half_drop_shift(_law(law)).tolist()),
    "whiteMergedLoss": Mirror(
        _white_start, lambda *given: _aligned(dynamics.white_merged_loss, *given).tolist(), curve=True
    ),
    "whiteDropTime": Mirror(
        _white_drop,
        lambda problem, amplitude, fraction: float(
            dynamics.white_drop_time(_regression(problem), amplitude, fraction=fraction)
        ),
    ),
    "growingAmplitude": Mirror(
        _merged_start, lambda law, start: dynamics.growing_amplitude(_law(law), _merged(law, start))
    ),
    "mergedFlow": Mirror(_merged_flow, _merged_answer, FLOW, curve=True, seconds=0.1),
    "separateFlow": Mirror(_separate_flow, _separate_answer, FLOW, curve=True, seconds=0.1),
    "reducedMergedFlow": Mirror(_reduced_flow, _reduced_answer, FLOW, curve=True, seconds=0.03),
    "fixedPoint": Mirror(
        _learned, lambda law, held: dynamics.fixed_point(_law(law), held).ravel().tolist(), curve=True
    ),
    "reachable": Mirror(
        lambda rng: (_moments(rng, 4), int(rng.integers(1, 4)), int(rng.integers(1, 3))),
        lambda law, heads, rank: [list(held) for held in dynamics.reachable(_law(law), heads, rank=rank)],
    ),
    "growth": Mirror(lambda rng: (_moments(rng),), lambda law: dynamics.growth(_law(law)).tolist()),
    "stability": Mirror(
        lambda rng: (*_learned(rng), int(rng.integers(1, 4))),
        lambda law, held, rank: vars(dynamics.stability(_law(law), held, rank=rank)),
    ),
    "mergedStability": Mirror(
        _held, lambda law, held, heads: vars(dynamics.merged_stability(_law(law), held, heads=heads))
    ),
    "rotations": Mirror(_learned, lambda law, held: [list(other) for other in dynamics.rotations(_law(law), held)]),
}


def _aligned(function: Any, problem: Any, *given: Any) -> np.ndarray:
    return np.asarray(function(_regression(problem), *given))
