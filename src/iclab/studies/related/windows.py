"""What the study of softmax windows answers: scales and errors, exact and trained."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab.outcomes import quantity

Array = np.ndarray


def _scale(*axes: str) -> Any:
    return quantity("w", *axes, words="scale of the key-query matrix")


def _error(*axes: str) -> Any:
    return quantity("L−ρ", *axes, unit="label²", words="mean squared error against clean targets")


def _anisotropy(*axes: str) -> Any:
    return quantity("|M−wI|/|M|", *axes, words="share of the matrix that is no multiple of the identity")


@dataclass(frozen=True)
class ByRatio:
    """Windows at several ratios of slope variance and noise."""

    ratio: Float[Array, "ratio"] = quantity("L²/ρ", "ratio", words="slope variance over noise")
    scale: Float[Array, "ratio"] = _scale("ratio")
    error: Float[Array, "ratio"] = _error("ratio")


@dataclass(frozen=True)
class TrainedByRatio(ByRatio):
    """Trained windows: exact errors at their scales, and errors of their matrices on drawn functions."""

    drawn: Float[Array, "ratio"] = quantity("⟨L⟩−ρ", "ratio", unit="label²", words="error on drawn functions")
    anisotropy: Float[Array, "ratio"] = _anisotropy("ratio")


@dataclass(frozen=True)
class ByLength:
    """Windows at several context lengths."""

    context_length: Int[Array, "context_length"] = quantity("n", "context_length", words="labelled examples")
    scale: Float[Array, "context_length"] = _scale("context_length")
    error: Float[Array, "context_length"] = _error("context_length")


@dataclass(frozen=True)
class TrainedByLength(ByLength):
    """Trained windows at several context lengths."""

    drawn: Float[Array, "context_length"] = quantity(
        "⟨L⟩−ρ", "context_length", unit="label²", words="error on drawn functions"
    )
    anisotropy: Float[Array, "context_length"] = _anisotropy("context_length")


@dataclass(frozen=True)
class Curves:
    """Exact error against scale."""

    ratio: Float[Array, "ratio"] = quantity("L²/ρ", "ratio", words="slope variance over noise")
    scale: Float[Array, "scale"] = quantity("w", "scale", words="scale of the key-query matrix")
    error: Float[Array, "ratio scale"] = _error("ratio", "scale")


@dataclass(frozen=True)
class Laws:
    """Best scales against the context length for three classes, and the law of the smooth one."""

    context_length: Int[Array, "context_length"] = quantity("n", "context_length", words="labelled examples")
    smooth: Float[Array, "context_length"] = quantity("w*", "context_length", words="best scale, affine functions")
    kinked: Float[Array, "context_length"] = quantity(
        "w*", "context_length", words="best scale, functions with a kink"
    )
    law: Float[Array, "context_length"] = quantity("w*", "context_length", words="law of long contexts")


@dataclass(frozen=True)
class Rivals:
    """Errors of the best linear attention and of the best softmax attention on functions with an offset."""

    offset: Float[Array, "offset"] = quantity("b²", "offset", unit="label²", words="variance of the offset")
    linear: Float[Array, "offset"] = _error("offset")
    softmax: Float[Array, "offset"] = _error("offset")


@dataclass(frozen=True)
class Kinked:
    """The window for functions with a kink."""

    scale: float = _scale()
