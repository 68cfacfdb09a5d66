"""The deterministic equivalent of ridge regression on n sequences, at finite dimension and for a given pool.

The features x_q gᵀ have covariance S ⊗ B up to scale. In the eigenvectors of the inputs' S and of the summary's
exact B, ridge regression at ridge λ is on average the solution at a larger effective ridge ξ on infinitely many
sequences, and fluctuates about it.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.numerics import Validated, increasing_root, magnitude_number, whole_number
from iclab.problem import ContextLaw
from iclab.problem.readouts import FeatureMoments, feature_moments
from iclab.theory.pretraining.resolvent import STRONG, flat_ridge, unspent

__all__ = ["SPENT", "Equivalent"]

SPENT = 1e-6  # 1 − df/τ that is a difference to ten digits; below it λ/ξ says the same without one


@dataclass(frozen=True, eq=False)
class Equivalent:
    """Pretraining on n sequences, in the eigenvectors of S and B. Directions without data are left out.

    Raises ValueError for sequences that are not a whole number >= 1 and for a negative ridge.
    """

    moments: FeatureMoments
    tau: float  # n/D²
    ridge: float  # λ, infinity replaced
    input_values: Float[np.ndarray, "a"]  # eigenvalues of S
    inputs: Float[np.ndarray, "D a"]  # eigenvectors of S
    summaries: Float[np.ndarray, "feature b"]  # eigenvectors of B
    values: Float[np.ndarray, "a b"]  # products of eigenvalues

    @classmethod
    def of(cls, law: ContextLaw, sequences: Validated[int], ridge: Validated[float]) -> "Equivalent":
        """The equivalent of ridge regression on that many sequences."""
        count = whole_number("sequences", sequences)
        penalty = min(magnitude_number("ridge", ridge, zero=True, infinite=True), STRONG)
        return cls._of(feature_moments(law), count / law.dimension**2, penalty)

    def with_moments(self, moments: FeatureMoments) -> "Equivalent":
        """The equivalent of as many sequences, at the same ridge, of features of other moments."""
        return Equivalent._of(moments, self.tau, self.ridge)

    @classmethod
    def _of(cls, moments: FeatureMoments, tau: float, ridge: float) -> "Equivalent":
        s, inputs = _eigen(moments.inputs)
        b, summaries = _eigen(moments.second)
        return cls(moments, tau, ridge, s, inputs, summaries, np.outer(s, b))

    @property
    def dimension(self) -> int:
        """D, the number of input entries."""
        return len(self.moments.inputs)

    @property
    def rank(self) -> float:
        """Weights that data determine, for each squared dimension: (D+1)/D unless S is singular."""
        return self.values.size / self.dimension**2

    def effective_ridge(self) -> float:
        """ξ, the root of 1 − df/τ = λ/ξ; without ridge its limit, 0 where sequences outnumber weights."""
        if self.ridge == 0 and self.tau >= self.rank:
            return 0.0

        def equation(xi: float) -> tuple[float, float]:
            return self.slack(xi) - self.ridge / xi, self.ridge / xi + self.spread(xi) / self.tau

        each = self.tau / self.rank
        lower = flat_ridge(np.min(self.values), each, self.ridge)
        return float(increasing_root(equation, lower, flat_ridge(np.mean(self.values), each, self.ridge)))

    def slack(self, xi: float) -> float:
        """1 − df/τ."""
        kept = self.values / (self.values + xi)
        lost = xi / (self.values + xi)
        return float(unspent(self._trace(kept), self._trace(lost), self.rank, self.tau))

    def share(self, xi: float) -> float:
        """1 − df/τ at the effective ridge, sharp also at a ridge near zero and without one."""
        if self.ridge == 0:
            return max(0.0, (self.tau - self.rank) / self.tau)
        slack = self.slack(xi)
        return slack if slack > SPENT else self.ridge / xi

    def freedom(self, xi: float) -> float:
        """df, the degrees of freedom for each squared dimension."""
        return self._trace(self.values / (self.values + xi))

    def spread(self, xi: float) -> float:
        """df − df₂, the derivative of −df in log ξ."""
        return self._trace(self.values * xi / (self.values + xi) ** 2)

    def readout(self, xi: float) -> Float[np.ndarray, "D feature"]:
        """The mean solution."""
        target = self.inputs.T @ self.moments.inputs @ self.moments.cross.T @ self.summaries
        return self.inputs @ (target / (self.values + xi)) @ self.summaries.T

    def response(self, xi: float, test: FeatureMoments) -> float:
        """tr[Σ_test Σ (Σ + ξ)^-2]/D², the error under the test law of a fluctuation of unit size."""
        inputs = np.einsum("ia,ij,ja->a", self.inputs, test.inputs, self.inputs)
        summaries = np.einsum("ib,ij,jb->b", self.summaries, test.second, self.summaries)
        return self._trace(np.outer(inputs, summaries) * self.values / (self.values + xi) ** 2)

    def _trace(self, values: Float[np.ndarray, "a b"]) -> float:
        return float(np.sum(values)) / self.dimension**2


def _eigen(matrix: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, "r"], Float[np.ndarray, "n r"]]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    return values[kept], vectors[:, kept]
