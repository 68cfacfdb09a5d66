"""Modes of laws whose covariances commute: one orthogonal direction each, one force, one drag."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.numerics import instance, require
from iclab.theory.population import Moments

Array = np.ndarray


@dataclass(frozen=True)
class CommutingModes:
    """Directions in which B, C and Λ are diagonal at once, most worth first.

    Along direction d the loss of Γ = Σ A_d e_d e_dᵀ is −2 g A_d + h A_d²: `force` g = B_dd pulls a mode away from
    zero, `drag` h = C_dd λ_d stops it at g/h, where it has removed the loss g²/h.
    """

    directions: Float[Array, "D mode"]
    force: Float[Array, "mode"]
    drag: Float[Array, "mode"]

    @property
    def best(self) -> Float[Array, "mode"]:
        """g/h, the strength of a learned mode; 0 in directions without inputs."""
        return np.divide(self.force, self.drag, out=np.zeros_like(self.force), where=self.drag > 0)


def commuting_modes(moments: Moments) -> CommutingModes:
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
    turned = [directions.T @ matrix @ directions for matrix in matrices]
    stray = max(
        float(np.max(np.abs(matrix - np.diag(np.diag(matrix))))) / (np.max(np.abs(matrix)) or 1.0)
        for matrix in turned
    )
    require(
        stray <= 1e-9,  # rounding of rotated covariances, far below any intended misalignment
        "input and task covariance must commute for this prediction; theirs share no directions. "
        "Integrate merged_flow or separate_flow instead.",
    )
    inputs, second, cross = (np.diag(matrix) for matrix in turned)
    drag = second * inputs
    seen = inputs > len(inputs) * np.finfo(float).eps * np.max(inputs)
    force, drag = np.where(seen, cross, 0.0), np.where(seen, drag, 0.0)
    worth = np.divide(force**2, drag, out=np.zeros_like(force), where=drag > 0)
    order = np.argsort(-worth, kind="stable")
    return CommutingModes(directions[:, order], force[order], drag[order])
