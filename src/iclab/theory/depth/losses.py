"""Loss of a stack of scalar layers on a law of spectra, exact for any layers, with its derivatives.

Layers g in units of 1/λ give p(x) = Π (1 − g x) and q = (1 − p)/x; the excess over the noise of the query's label, in
units of the signal T = tr ΩΛ, is F = ⟨p²⟩ + s⟨x q²⟩ with s = ρ/(T α). It is of degree 2L in x: a Gauss rule with
L + 1 nodes is exact.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, numbers, require
from iclab.theory.depth.laws import GaussRule, SpectralLaw

__all__ = ["checked_layers", "excess", "excess_curvature", "excess_of", "excess_slope", "mean_of"]

Array = np.ndarray


def excess(
    law: Validated[SpectralLaw],
    layers: Validated[Float[ArrayLike, "*batch layer"]],
    *,
    noise_ratio: Validated[float] = 0.0,
) -> float | Float[Array, "*batch"]:
    """F of given layers: the loss over the noise of the query's label, in units of T; layers in units of 1/λ.

    Leading axes of the layers are kept. For inputs of any covariance Λ layers g Λ⁻¹ have this loss too.

    Raises ValueError for layers that are no list of numbers, no layer, negative noise, and noise where α is infinite.

    Source: bordelon2025theory, abstract (tied layers); untied layers and noise derived in docs/derivations/depth.
    """
    instance("law", law, SpectralLaw)
    steps = checked_layers(layers)
    return excess_of(law.rule(steps.shape[-1]), steps, noise=law.felt_noise(noise_ratio))


def checked_layers(layers: Validated[ArrayLike], *, name: str = "layers") -> Float[Array, "*batch layer"]:
    """Layers as an array. Raises ValueError, with their name, for no layer and for what are no numbers.

    Source: derived in docs/derivations/depth.
    """
    steps = numbers(name, layers)
    require(
        steps.ndim >= 1 and steps.shape[-1] >= 1,
        f"{name} must hold at least one layer; got shape {steps.shape}. Write (0.4, 1.1), for example.",
    )
    return steps


def excess_of(
    rule: GaussRule, layers: Float[Array, "*batch layer"], *, noise: float
) -> float | Float[Array, "*batch"]:
    """F from a rule, with the noise that the spectrum feels, s; infinite where it leaves the range of numbers.

    Source: derived in docs/derivations/depth.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        kept, answer, _ = _passed(rule.nodes, layers)
        found = mean_of(rule, kept**2 + noise * rule.nodes * answer**2)
    return np.where(np.isnan(found), np.inf, found)[()]


def excess_slope(
    rule: GaussRule, layers: Float[Array, "*batch layer"], *, noise: float
) -> Float[Array, "*batch layer"]:
    """∂F/∂g of every layer: 2⟨x p_l (s q − p)⟩, p_l the product over the other layers.

    Source: derived in docs/derivations/depth.
    """
    kept, answer, others = _passed(rule.nodes, layers)
    drive = 2 * rule.weights * rule.nodes * (noise * answer - kept)
    return (others @ drive[..., None])[..., 0]


def excess_curvature(
    rule: GaussRule, layers: Float[Array, "*batch layer"], *, noise: float
) -> Float[Array, "*batch layer layer"]:
    """∂²F/∂g∂g: 2⟨x p_l p_m (x + s)⟩, and for two different layers also −2⟨x² p_lm (s q − p)⟩.

    Source: derived in docs/derivations/depth.
    """
    nodes, count = rule.nodes, layers.shape[-1]
    kept, answer, others = _passed(nodes, layers)
    found = 2 * (others * (rule.weights * nodes * (nodes + noise))) @ np.swapaxes(others, -1, -2)
    bend = -2 * rule.weights * nodes**2 * (noise * answer - kept)
    for i in range(count if count > 1 else 0):
        rest = [j for j in range(count) if j != i]
        pairs = _passed(nodes, layers[..., rest])[2]
        found[..., i, rest] += (pairs @ bend[..., None])[..., 0]
    return found


def mean_of(rule: GaussRule, values: Float[Array, "*batch node"]) -> Float[Array, "*batch"]:
    """The mean of a function from its values at the nodes.

    Source: derived in docs/derivations/depth.
    """
    return np.asarray(values @ rule.weights)


def _passed(nodes: Float[Array, "node"], layers: Float[Array, "*batch layer"]) -> tuple[Array, Array, Array]:
    """p, q and, for every layer, the product over the others, at the nodes, with no division."""
    factors = 1 - layers[..., None] * nodes
    before, after = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[..., :-1, :], axis=-2, out=before[..., 1:, :])
    np.cumprod(factors[..., :0:-1, :], axis=-2, out=after[..., -2::-1, :])
    answer = (layers[..., None, :] @ before)[..., 0, :]
    return before[..., -1, :] * factors[..., -1, :], answer, before * after
