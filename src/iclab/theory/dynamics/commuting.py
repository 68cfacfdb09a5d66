"""Modes of laws whose covariances commute: orthogonal directions, with a signal and a curvature each."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, instance, require
from iclab.theory.population import Moments, significant

__all__ = ["CommutingModes", "commuting_modes"]


@dataclass(frozen=True)
class CommutingModes:
    """Directions in which B, C and Λ are diagonal at once, largest contribution first.

    Along direction d the loss of Γ = Σ A_d e_d e_dᵀ is −2 g A_d + h A_d²: the signal g = B_dd makes a mode
    grow, the curvature h = C_dd λ_d stops it at g/h, where it has contributed g²/h to the fall of the loss.
    """

    directions: Float[np.ndarray, "D mode"]
    signal: Float[np.ndarray, "mode"]
    curvature: Float[np.ndarray, "mode"]

    @property
    def best(self) -> Float[np.ndarray, "mode"]:
        """g/h, the strength of a learned mode; 0 in directions without inputs."""
        return np.divide(self.signal, self.curvature, out=np.zeros_like(self.signal), where=self.curvature > 0)


def commuting_modes(moments: Validated[Moments]) -> CommutingModes:
    """Common directions of the moments.

    Raises ValueError where input and task covariance do not commute, so that there are none.

    Source: derived in docs/derivations/dynamics.
    """
    instance("moments", moments, Moments)
    matrices = [moments.input_covariance, moments.second, moments.cross]
    # Unequal parts of each, so that directions equal in one are told apart by the others.
    mixture = sum(
        part * matrix / (np.max(np.abs(matrix)) or 1.0)
        for part, matrix in zip((1.0, 0.618, 0.237), matrices, strict=True)
    )
    directions = np.linalg.eigh(mixture)[1]
    rotated = [directions.T @ matrix @ directions for matrix in matrices]
    stray = max(
        float(np.max(np.abs(matrix - np.diag(np.diag(matrix))))) / (np.max(np.abs(matrix)) or 1.0)
        for matrix in rotated
    )
    require(
        stray <= 1e-9,  # rounding of rotated covariances, far below any intended misalignment
        "input and task covariance must commute for this prediction; theirs share no directions. "
        "Integrate merged_flow or separate_flow instead.",
    )
    inputs, second, cross = (np.diag(matrix) for matrix in rotated)
    present = inputs > len(inputs) * np.finfo(float).eps * np.max(inputs)
    signal, curvature = np.where(present, cross, 0.0), np.where(present, second * inputs, 0.0)
    contribution = np.divide(signal**2, curvature, out=np.zeros_like(signal), where=curvature > 0)
    signal = np.where(significant(np.sqrt(contribution)), signal, 0.0)
    order = np.argsort(-contribution, kind="stable")
    return CommutingModes(directions[:, order], signal[order], curvature[order])
