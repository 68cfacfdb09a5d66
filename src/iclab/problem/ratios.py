"""In-context regression in the proportional limit."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from iclab.numerics import Values, checks_its_fields, magnitude

if TYPE_CHECKING:
    Ratio = Values
else:
    Ratio = float  # the type of flags: a case holds plain numbers

__all__ = ["Ratios"]


@checks_its_fields
@dataclass(frozen=True)
class Ratios:
    """In-context regression in the proportional limit: D → ∞ with N = αD, K = κD and n = τD².

    Inputs have covariance I/D and tasks I, so labels have variance 1 + ρ. Infinity is a value: α = ∞ is
    infinite context length, κ = ∞ a fresh task in every context, τ = ∞ infinite pretraining. Fields may be
    arrays that broadcast together: a grid of problems. Finite values lie between 1e-40 and 1e40, and
    noise may be 0.

    Raises ValueError for a ratio that is not positive, for negative noise and for sizes out of that range.
    """

    alpha: Ratio  # α = N/D, labeled examples for each input dimension
    kappa: Ratio  # κ = K/D, tasks of the pool for each input dimension
    tau: Ratio  # τ = n/D², sequences for each squared input dimension
    noise: Ratio  # ρ, variance of the label noise

    def __post_init__(self) -> None:
        advice = {
            "alpha": "For infinite context length write alpha=inf.",
            "kappa": "For a fresh task in every context write kappa=inf.",
            "tau": "For infinite pretraining write tau=inf.",
        }
        values = [magnitude(name, _number(getattr(self, name)), advice=text) for name, text in advice.items()]
        values.append(
            magnitude("noise", self.noise, zero=True, infinite=False, advice="Variances are never negative.")
        )
        try:
            np.broadcast_shapes(*(np.shape(value) for value in values))
        except ValueError:
            shapes = ", ".join(f"{field.name} {np.shape(v)}" for field, v in zip(fields(self), values, strict=True))
            raise ValueError(f"the fields of Ratios must broadcast together; got {shapes}.") from None
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, value.item() if np.ndim(value) == 0 else value)


def _number(ratio: Any) -> Any:
    """The ratio; "inf", the JSON form of infinity, as a number."""
    return np.inf if isinstance(ratio, str) and ratio == "inf" else ratio
