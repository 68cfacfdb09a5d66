"""Pools for a planned spectrum: chosen tasks, files of them, and what runs of finite size will show."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.files import written_whole
from iclab.numerics import FIXED_STREAM, Validated, instance, require, whole_number
from iclab.problem import ContextLaw, Pool, Pretraining, SphereTasks, Tasks, orthogonal_pool
from iclab.theory.finite_size import pool_errors
from iclab.theory.pretraining.alignment import checked_spectrum

__all__ = ["FORMATS", "DrawnForecast", "chosen_pool", "spectrum_forecast", "write_pool"]

FORMATS = ("npy", "csv", "safetensors")


@dataclass(frozen=True)
class DrawnForecast:
    """The expected ICL error of runs of finite dimension, and its standard deviation between pools."""

    error: float
    deviation: float


def chosen_pool(tasks: Validated[int], *, task_eigenvalues: Validated[Float[ArrayLike, "D"]]) -> np.ndarray:
    """The (K, D) vectors of K tasks, orthogonal in the basis of a spectrum, with (1/K) Σ w wᵀ = diag(spectrum).

    To train on for the errors of infinitely many drawn tasks, but for a term of order 1/D; for new axes multiply by
    an orthogonal (D, D) matrix from the right.

    Raises ValueError for tasks below 1, a spectrum that is negative or all zero, and one that is positive on more
    directions than there are tasks.
    """
    return orthogonal_pool(tasks, task_eigenvalues=task_eigenvalues).vectors


def write_pool(path: Validated[Path], vectors: Float[np.ndarray, "K D"]) -> None:
    """Write task vectors, one a row, as npy, csv or safetensors by the ending of the name; whole or not at all.

    Raises ValueError for another ending, OSError where it cannot be written.
    """
    kind = path.suffix.removeprefix(".")
    require(kind in FORMATS, f"out must end in .npy, .csv or .safetensors; got {path.name!r}.")
    with written_whole(path) as temporary:
        if kind == "npy":
            with temporary.open("wb") as file:
                np.save(file, vectors)
        elif kind == "csv":
            np.savetxt(temporary, vectors, delimiter=",", fmt="%.17g")
        else:
            from safetensors.numpy import save_file

            save_file({"tasks": np.ascontiguousarray(vectors)}, temporary)


def spectrum_forecast(
    size: Validated[Pretraining],
    *,
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    ridge: Validated[float],
    new: Validated[ContextLaw | None] = None,
    chosen: bool = False,
    pools: Validated[int] = 16,
) -> DrawnForecast:
    """The ICL error that runs of a size will show: the pool prediction, a mean over drawn pools or of the chosen one.

    Tests are in the contexts of pretraining unless a law `new` is given, whose tasks are then replaced. It lies above
    the limit by a term of order 1/D; runs lie above it by the leverage of their sequences, some percent for N >= D.

    Raises ValueError for spectra that are not D numbers >= 0, for a negative ridge, and for tasks=None with a chosen
    pool.

    Source: derived in docs/derivations/finite_size.
    """
    instance("size", size, Pretraining)
    c = checked_spectrum("task_eigenvalues", task_eigenvalues)
    tests = checked_spectrum("test_task_eigenvalues", test_task_eigenvalues)
    for name, spectrum in (("task_eigenvalues", c), ("test_task_eigenvalues", tests)):
        require(
            len(spectrum) == size.dimension,
            f"{name} must be as many as the dimension, {size.dimension}; got {len(spectrum)}.",
        )
    require(
        not chosen or size.tasks is not None, "size must have tasks for a chosen pool; got None. Give their number."
    )
    law = ContextLaw(SphereTasks(size.dimension, np.diag(c)), size.context_length, size.noise)
    test = replace(law if new is None else new, tasks=SphereTasks(size.dimension, np.diag(tests)))
    if size.tasks is None:
        drawn: list[Tasks] = [law.tasks]
    elif chosen:
        drawn = [orthogonal_pool(size.tasks, task_eigenvalues=c)]
    else:
        streams = [np.random.default_rng((FIXED_STREAM, number)) for number in range(whole_number("pools", pools))]
        drawn = [Pool(law.tasks.draw(size.tasks, stream)) for stream in streams]
    errors = [
        float(pool_errors(replace(law, tasks=tasks), size.sequences, ridge=ridge, new=test).icl) for tasks in drawn
    ]
    return DrawnForecast(float(np.mean(errors)), float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0)
