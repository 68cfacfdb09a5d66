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
    pretraining with tasks on the sphere unless given. Without ridge it is inf at n = D(D + 1). Means over runs lie
    above it, by up to 5 % at D = 32 and half of that at D = 64, by more near interpolation. Cost: O(D³).

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
    call gives the same result. Within about 1 % of means over runs at D = 16 to 32 on either side of
    interpolation, 3 % within a quarter of it without ridge. Cost: some 10 × draws × D².

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
