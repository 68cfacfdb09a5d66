"""Sequences of symbols and of states: urns and Markov chains, what predicts them, and the gap of a pool of them."""

from iclab.theory.sequences.markov_losses import (
    PREDICTORS,
    SampledLoss,
    markov_chi_square,
    markov_information,
    markov_limit,
    markov_loss,
    sampled_markov_loss,
)
from iclab.theory.sequences.markov_predictors import (
    bigram_law,
    markov_gap,
    pool_bigram_law,
    pool_unigram_law,
    stationary_law,
    unigram_law,
)
from iclab.theory.sequences.urns import UrnLosses, urn_chi_square, urn_gap, urn_information, urn_losses

__all__ = [
    "PREDICTORS", "SampledLoss", "UrnLosses", "bigram_law", "markov_chi_square", "markov_gap", "markov_information",
    "markov_limit", "markov_loss", "pool_bigram_law", "pool_unigram_law", "sampled_markov_loss", "stationary_law",
    "unigram_law", "urn_chi_square", "urn_gap", "urn_information", "urn_losses",
]  # fmt: skip
