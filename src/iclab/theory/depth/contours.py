"""Structured inputs in finite contexts: the loss of any polynomial as two contour integrals, without draws.

In the proportional limit a product of two resolvents of S has a deterministic equivalent; a contour around the
spectrum and 0 turns it into the loss ⟨p²⟩. It leaves out the 1/N of single large modes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Complex, Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from iclab.numerics import Validated, nonnegative, positive, require, whole_number
from iclab.theory.depth.losses import checked_layers

__all__ = ["FiniteContexts", "finite_contexts"]

Array = np.ndarray
_NODES = 640  # of the contour
_MARGIN = 0.03  # of the ellipse beyond the spectrum, relative to its upper edge: small, for polynomials grow outside


@dataclass(frozen=True, eq=False)
class FiniteContexts:
    """Nodes of the contour, and the kernel with which Σ p(z) p(z') kernel is the loss of a polynomial p, p(0) = 1."""

    nodes: Complex[Array, "node"]
    kernel: Complex[Array, "node node"]
    edge: float  # upper end of the spectrum

    def excess(self, layers: Validated[Float[ArrayLike, "layer"]]) -> float:
        """The loss of layers in units of T, without noise. Raises ValueError for no layer."""
        return self._loss(np.prod(1 - checked_layers(layers)[:, None] * self.nodes, axis=0))

    def best_excess(self, depth: Validated[int]) -> float:
        """The least loss of a polynomial of that degree: of the best untied layers where its roots are real.

        Raises ValueError for a depth below 1.
        """
        degree = whole_number("depth", depth)
        place = 2 * self.nodes / self.edge - 1
        basis = np.polynomial.chebyshev.chebvander(place, degree)
        square = np.real(basis.T @ self.kernel @ basis)
        at_zero = np.polynomial.chebyshev.chebvander(np.array([-1.0]), degree)[0]
        solved = np.linalg.lstsq(0.5 * (square + square.T), at_zero, rcond=1e-14)[0]
        return float(1 / (at_zero @ solved))

    def tied_excess(self, depth: Validated[int]) -> float:
        """The least loss of equal layers. Raises ValueError for a depth below 1."""
        degree = whole_number("depth", depth)

        def height(log_step: float) -> float:
            return self._loss((1 - np.exp(log_step) * self.nodes) ** degree)

        grid = np.log(np.geomspace(0.05, 8, 60) / self.edge)
        least = grid[int(np.argmin([height(one) for one in grid]))]
        width = grid[1] - grid[0]
        found: Any = minimize_scalar(height, bounds=(least - width, least + width), method="bounded")
        return float(found.fun)

    def _loss(self, values: Complex[Array, "node"]) -> float:
        return float(np.real(values @ self.kernel @ values))


def finite_contexts(
    eigenvalues: Validated[Float[ArrayLike, "D"]],
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    context_length: Validated[int],
) -> FiniteContexts:
    """The loss of polynomials for inputs of given eigenvalues, rotated in every context, at a finite context length.

    T = Σ ωλ is scaled to 1; no noise. Cost: a second at 1200 dimensions.

    Raises ValueError for lists of other length, negative numbers, and a context length below 1.

    Source: bordelon2025theory, abstract (the setting); derived in docs/derivations/depth.
    """
    inputs, tasks = nonnegative("eigenvalues", eigenvalues), nonnegative("task_eigenvalues", task_eigenvalues)
    require(
        inputs.ndim == 1 and inputs.shape == tasks.shape and len(inputs) > 0,
        f"eigenvalues and task_eigenvalues must be two lists of one length; got {inputs.shape} and {tasks.shape}.",
    )
    length, weights = whole_number("context_length", context_length), inputs * tasks
    signal = positive("the sum of eigenvalues times task_eigenvalues", float(np.sum(weights)))
    edge = _edge(inputs, length)
    angle = 2 * np.pi * np.arange(_NODES) / _NODES
    half, flat = (0.5 + _MARGIN) * edge, _MARGIN * 4 * edge
    nodes = 0.5 * edge + half * np.cos(angle) + 1j * flat * np.sin(angle)
    steps = (-half * np.sin(angle) + 1j * flat * np.cos(angle)) / (1j * _NODES)
    branch = _branch(inputs, length, nodes)
    shifted = 1 / (inputs + branch[:, None])
    spread = 1 - (shifted * inputs**2) @ shifted.T / length
    kernel = np.outer(steps * branch / nodes, steps * branch / nodes) * ((shifted * weights) @ shifted.T) / spread
    return FiniteContexts(nodes, kernel / signal, edge)


def _edge(inputs: Float[Array, "D"], length: int) -> float:
    """The upper end of the spectrum of S: the least z(κ) = κ (1 + (1/N) Σ λ/(κ − λ)) above the largest λ."""
    top = float(np.max(inputs))

    def place(log_gap: float) -> float:
        kappa = top * (1 + np.exp(log_gap))
        return float(kappa * (1 + np.sum(inputs / (kappa - inputs)) / length))

    found: Any = minimize_scalar(place, bounds=(-15.0, 5.0), method="bounded")
    return float(found.fun)


def _branch(inputs: Float[Array, "D"], length: int, nodes: Complex[Array, "node"]) -> Complex[Array, "node"]:
    """k(z) with k (1 − (1/N) Σ λ/(λ + k)) = −z and k ~ −z far out, followed along the contour by Newton."""

    def solved(point: complex, guess: complex) -> complex:
        for _ in range(60):
            shifted = inputs / (inputs + guess)
            value = guess * (1 - np.sum(shifted) / length) + point
            slope = 1 - np.sum(shifted**2) / length
            step = value / slope
            guess = guess - step
            if abs(step) <= 1e-14 * abs(guess):
                break
        return guess

    guess = -complex(100 * nodes[0].real)
    for point in np.geomspace(100, 1, 60) * nodes[0].real:
        guess = solved(complex(point), guess)
    found = np.empty(len(nodes), dtype=complex)
    for place, point in enumerate(nodes):
        guess = found[place] = solved(complex(point), guess)
    return found
