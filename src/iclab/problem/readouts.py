"""The exact error of a readout at finite size, under any law of contexts.

The readout G of shape (D, D+1) predicts x_qᵀ G g from the D + 1 features g = [(D/N) Σ y x ; (1/N) Σ y²], with inputs
x ~ N(0, S/D). Its error is a quadratic in G whose coefficients need only four averages over tasks, without sampling.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require
from iclab.problem.tasks import ContextLaw

__all__ = ["FeatureMoments", "error_of", "exact_error", "feature_moments", "readout_of"]


@dataclass(frozen=True)
class FeatureMoments:
    """Moments of the features g and the task, through which a law of contexts enters the error of a readout."""

    cross: Float[np.ndarray, "feature D"]  # A = E g wᵀ
    second: Float[np.ndarray, "feature feature"]  # B = E g gᵀ
    inputs: Float[np.ndarray, "D D"]  # S
    null_error: float  # E y_q²


def feature_moments(law: Validated[ContextLaw]) -> FeatureMoments:
    """Moments of the features of a law of contexts, exact at every dimension and context length.

    Source: lu2025asymptotic, theory code (gen_err_analytical, sphere tasks); any tasks and inputs derived in
    docs/derivations/finite_size.
    """
    instance("law", law, ContextLaw)
    d, n, s = law.dimension, law.context_length, np.asarray(law.input_covariance)
    tasks = law.tasks.moments(s, law.noise)
    signal = s @ tasks.second @ s
    corner = (1 + 2 / n) * (s @ tasks.skew)
    second = np.empty((d + 1, d + 1))
    second[:d, :d] = (1 + 1 / n) * signal + (d / n) * tasks.variance * s
    second[:d, d] = second[d, :d] = corner
    second[d, d] = (1 + 2 / n) * tasks.square
    return FeatureMoments(np.vstack([s @ tasks.second, tasks.skew]), second, s, tasks.variance)


def exact_error(
    readout: Validated[Float[ArrayLike, "*batch D feature"]], law: Validated[ContextLaw]
) -> float | Float[np.ndarray, "*batch"]:
    """Mean squared error of a readout under a law of contexts, target noise included: no sampling, any D and N.

    Raises ValueError for a readout whose shape does not end in (D, D+1).

    Source: lu2025asymptotic, theory code (gen_err_analytical); derived in docs/derivations/finite_size.
    """
    instance("law", law, ContextLaw)
    return error_of(readout, feature_moments(law))


def error_of(
    readout: Validated[Float[ArrayLike, "*batch D feature"]], moments: FeatureMoments
) -> float | Float[np.ndarray, "*batch"]:
    """exact_error from given moments, for many readouts under one law.

    Source: derived in docs/derivations/finite_size.
    """
    g, d = numbers("readout", readout), len(moments.inputs)
    require(g.shape[-2:] == (d, d + 1), f"readout must end in shape {(d, d + 1)}, as the law; got {g.shape}.")
    weighted = moments.inputs @ g
    gain = np.einsum("...ij,ji->...", weighted, moments.cross)
    cost = np.einsum("...ij,...ij->...", weighted @ moments.second, g)
    return moments.null_error + (cost - 2 * gain) / d


def readout_of(gamma: Validated[Float[ArrayLike, "*batch D D"]]) -> Float[np.ndarray, "*batch D feature"]:
    """The readout [Γᵀ/D, 0], whose predictions are those of linear attention with the matrix Γ.

    Raises ValueError for a matrix that is not square.

    Source: lu2025asymptotic, section 2 (reduction of the parameters); convention Γ of zhang2025training.
    """
    matrix = numbers("gamma", gamma)
    require(
        matrix.ndim >= 2 and matrix.shape[-1] == matrix.shape[-2] > 0,
        f"gamma must end in the shape (D, D); got {matrix.shape}.",
    )
    g = np.swapaxes(matrix, -1, -2) / matrix.shape[-1]
    return np.concatenate([g, np.zeros((*g.shape[:-1], 1))], axis=-1)
