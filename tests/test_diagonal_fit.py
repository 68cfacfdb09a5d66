"""Diagonal weights fitted to drawn contexts."""

import numpy as np
import pytest

from iclab import Regression
from iclab.simulation.keys import key_of
from iclab.simulation.linear.diagonal_fit import least_weights
from iclab.theory import modes

PROBLEM = Regression(eigenvalues=(1.0, 0.5), context_length=6, noise=0.3)


def test_fitted_weights_have_the_least_exact_loss_up_to_the_sample() -> None:
    # the excess of a fit of four numbers is about (4/P) times the residual variances: .02 % here
    p, q = least_weights(PROBLEM, (20_000,), key=key_of(0))
    tasks = modes.DiagonalTasks((1.0, 0.5), 6, noise=0.3)
    excess = modes.exact_loss(tasks, p[0], q[0]) / modes.exact_least_loss(tasks) - 1
    assert 0 < excess < 2e-3


def test_fewer_contexts_are_the_first_of_more() -> None:
    alone, both = (least_weights(PROBLEM, sizes, key=key_of(1)) for sizes in ((900,), (900, 300)))
    np.testing.assert_allclose(both[0][0], alone[0][0], rtol=1e-12)
    assert both[0].shape == (2, 2)


def test_impossible_fits_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="sequences must be a whole number"):
        least_weights(PROBLEM, (0,), key=key_of(0))
    with pytest.raises(ValueError, match="context_length must be one number"):
        least_weights(Regression((1.0,), (4, 8)), (10,), key=key_of(0))
