"""Wrong theories of strategies: gaps of pools, their scale, losses of predictors."""

from iclab.theory import estimators, sequences
from tests.wrong_theories.battery import Wrong, scaled

WRONG = [
    Wrong("gap of urns", sequences.urn_gap, scaled(1.03), ("strategy-gap",)),
    Wrong("gap of chains", sequences.markov_gap, scaled(1.05), ("strategy-gap",)),
    Wrong("chi-square of urns", sequences.urn_chi_square, scaled(1.15), ("strategy-gap",)),
    Wrong("information of urns", sequences.urn_information, scaled(1.2), ("strategy-gap",)),
    Wrong("bounds of the gap", estimators.gap_bounds, lambda right: lambda i, chi, k: right(i, chi, 2 * k),
          ("strategy-gap",)),
    Wrong("loss of predictors of chains", sequences.markov_loss, scaled(1.02), ("markov-stages",)),
]  # fmt: skip
