"""Predicted errors of a pretraining run of finite dimension, for a given pool.

Two predictions of the readout that ridge regression finds on n sequences keep what the proportional limit drops.
The *pool* prediction keeps the pool itself, its exact moments
at context length N, and all D(D+1) weights. The *leverage* prediction
adds that sequences differ in leverage, which at small D they do by a lot.
"""

import numpy as np

from iclab.numerics import Validated, instance, require, whole_number
from iclab.outcomes import Errors
from iclab.problem import ContextLaw, sphere_law
from iclab.problem.readouts import FeatureMoments, error_of, feature_moments
from iclab.theory.pretraining.equivalent import Equivalent
from iclab.theory.pretraining.leverage import Leverage, drawn_sequences

__all__ = [
    "LEAST_DIMENSION", "leverage_errors", "pool_errors",
]  # fmt: skip

LEAST_DIMENSION = 5  # of the leverage prediction


def pool_errors(
    law: Validated[ContextLaw],
    sequences: Validated[int],
    *,
    ridge: Validated[float] = 0.0,
    new: Validated[ContextLaw | None] = None,
) -> Errors:
    """ICL, IDG and training error after n sequences of a law of contexts: the pool prediction.

    The deterministic equivalent at finite D, N, n for the given tasks. ICL is under the law `new`: that of
    pretraining with tasks on the sphere unless given. Without ridge it is inf at n = D(D + 1) = p. Cost: O(D³).

    Means over runs lie above it, the more the shorter the contexts: at D = 32, with n/p between ½ and 2, by 1 to 3 %
    at N = 128, 5 to 10 % at N = 32, 12 to 25 % at N = 8, 20 to 40 % at N = 4; twice that at n/p = .85 without
    ridge; a multiple of it at N = 1. Where n < p its training error is low by a fifth at N = 128, to nothing at
    N = 1.

    Raises ValueError for sequences below 1, a negative ridge, and a test law of another dimension.

    Source: derived in docs/derivations/finite_size; the limit D → ∞ is lu2025asymptotic's.
    """
    instance("law", law, ContextLaw)
    _require_laws(law, new)
    fit = Equivalent.of(law, sequences, ridge)
    xi, test = fit.effective_ridge(), _test_moments(law, new)
    readout, share = fit.readout(xi), fit.share(xi)
    with np.errstate(divide="ignore"):
        idg = np.float64(error_of(readout, fit.moments)) / (share + fit.spread(xi) / fit.tau)
        train = share * share * idg if share > 0 else 0.0
    icl = error_of(readout, test) + idg / fit.tau * fit.response(xi, test)
    return Errors(icl, idg, train, xi if np.isfinite(ridge) else np.inf)


def leverage_errors(
    law: Validated[ContextLaw],
    sequences: Validated[int],
    *,
    ridge: Validated[float] = 0.0,
    new: Validated[ContextLaw | None] = None,
    draws: Validated[int] = 6000,
) -> Errors:
    """ICL, IDG and training error after n sequences, with their unequal leverage.

    Averages over sequences are taken by a quadrature: `draws` sequences from a fixed stream, so that the same
    call gives the same result. Cost: some 10 × draws × D².

    From means over runs at D = 16 and 32 it is off by up to 1.5 % from N = 16 on, with n/p = n/D(D + 1) at most ½ or
    at least 2, by 3 % at N = 4 and 8, 6 % at N = 1; by 6 % at n/p = .85 without ridge, 9 % there at N = 4. Training
    errors are off by up to 10 %, in few dimensions by a fifth. Without ridge, with n < p and N of 1 or 2, means over
    runs are those of few runs, and nothing predicts them.

    Raises ValueError as pool_errors does, for draws below 1000 and below 5 dimensions, where means over runs
    need not exist; ArithmeticError where weights do not converge.

    Source: derived in docs/derivations/finite_size.
    """
    instance("law", law, ContextLaw)
    _require_laws(law, new)
    fit, test = Equivalent.of(law, sequences, ridge), _test_moments(law, new)
    require(
        law.dimension >= LEAST_DIMENSION,
        f"law must have at least {LEAST_DIMENSION} dimensions; got {law.dimension}. Use pool_errors.",
    )
    even = Leverage.of(fit, drawn_sequences(law, whole_number("draws", draws, least=1000)))
    return even.settled().errors(fit.moments, test, law.noise)


def _require_laws(law: Validated[ContextLaw], new: Validated[ContextLaw | None]) -> None:
    instance("law", law, ContextLaw)
    if new is not None:
        instance("new", new, ContextLaw)


def _test_moments(law: ContextLaw, new: ContextLaw | None) -> FeatureMoments:
    test = sphere_law(law) if new is None else new
    require(
        test.dimension == law.dimension,
        f"new must have the dimension of law, {law.dimension}; got {test.dimension}.",
    )
    return feature_moments(test)
