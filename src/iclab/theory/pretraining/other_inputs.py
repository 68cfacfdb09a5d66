"""Tests whose inputs have another covariance than those of pretraining, in the same basis."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from iclab.numerics import Validated, instance, require
from iclab.problem import Ratios
from iclab.theory.pretraining.alignment import Design, NewContexts
from iclab.theory.pretraining.resolvent import MANY, bounded
from iclab.theory.pretraining.response import Shift
from iclab.theory.pretraining.structured import Spectra, SpectralEquivalent, eigenvalues, structured_ridge

__all__ = ["other_inputs_error"]


def other_inputs_error(
    ratios: Validated[Ratios],
    *,
    test_input_eigenvalues: Validated[Float[ArrayLike, "D"]],
    task_eigenvalues: Validated[Float[ArrayLike, "D"]],
    input_eigenvalues: Validated[Float[ArrayLike, "D"] | None] = None,
    test_task_eigenvalues: Validated[Float[ArrayLike, "D"] | None] = None,
    ridge: Validated[float] = 0.0,
    shift: Validated[Shift | None] = None,
) -> float:
    """The ICL error on tests whose contexts and queries have inputs N(0, diag(test_input_eigenvalues)/D).

    Pretraining, units, ridge and shift as in structured_errors, to whose ICL error it reduces for the same inputs.
    The error of predicting nothing is mean(t c_t) + ρ for test inputs t. Inputs may vanish at test.

    Raises ValueError as structured_errors does, for spectra of different lengths, for ratios that are not single
    numbers, an infinite α, and τ = 1 without ridge.

    Source: derived in docs/derivations/task_design.
    """
    instance("ratios", ratios, Ratios)
    design = Design.of(ratios, ridge)
    test = NewContexts.of(design, shift)
    spectra = Spectra.of(task_eigenvalues, input_eigenvalues, test_task_eigenvalues)
    t, s = eigenvalues("test_input_eigenvalues", test_input_eigenvalues), spectra.inputs
    require(
        len(t) == len(s), f"test_input_eigenvalues must be as many as task_eigenvalues; got {len(t)} and {len(s)}."
    )
    kappa, tau = float(bounded(ratios.kappa, MANY)), float(bounded(ratios.tau, MANY))
    x = (float(np.mean(spectra.pool)) + design.noise) / design.alpha
    xi = structured_ridge(spectra, x, kappa, tau, design.ridge)
    at = SpectralEquivalent.at(spectra, x, xi, kappa)
    own = at.averages(spectra, x, kappa)
    share = max(design.ridge / max(xi, 1e-300), (tau - 1) / tau)
    fluctuation = (design.noise + own.lost_pool + x * own.noisy) / (share + own.ridge_spread / tau) / tau

    tasks, ratio = test.scale * spectra.new / s, t / s  # tasks in the units of raw inputs
    noise = (float(np.mean(t * tasks)) + test.noise) / test.alpha
    summary = ratio * (t * tasks + noise)  # W, the second moment of the test summary in whitened inputs
    square, row, direction = at.green**2, spectra.row, np.arange(len(s))
    psi = at.phi / (1 + np.mean(spectra.pool * at.n * square, axis=1, keepdims=True) / kappa)
    by_test = psi * np.mean(spectra.pool * summary * square, axis=1, keepdims=True) / kappa
    by_noise = psi * np.mean(spectra.pool * square, axis=1, keepdims=True) / kappa
    kept = at.phi[row, 0] * spectra.pool * at.green[row, direction]
    lost = (at.n * at.green)[row, direction]
    bias = t * tasks * (1 - kept * ratio) ** 2 + ratio * (
        kept**2 * noise * ratio + lost**2 * by_test[row, 0] * spectra.pool
    )
    spread = square * (psi * spectra.pool + x * (1 + by_noise * spectra.pool))
    response = np.mean(ratio * np.mean(summary * spread, axis=1)[row])
    return float(test.noise + np.mean(bias) + fluctuation * response)
