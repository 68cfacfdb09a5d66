"""Data for networks, as batches of tokens: regression, periodic sequences, urns, Markov chains, sums modulo a number.

Each kind is a frozen dataclass of plain numbers, with the methods of `Data`.
"""

from iclab.simulation.sequences.batches import Batch, Data
from iclab.simulation.sequences.chains import MarkovSequences, UrnSequences, counted_laws
from iclab.simulation.sequences.functions import Linear, SparseLinear, TwoLayer
from iclab.simulation.sequences.regression import FixedRegression, RegressionContexts
from iclab.simulation.sequences.tokens import ModularAddition, PeriodicSequences

__all__ = [
    "Batch",
    "Data",
    "FixedRegression",
    "Linear",
    "MarkovSequences",
    "ModularAddition",
    "PeriodicSequences",
    "RegressionContexts",
    "SparseLinear",
    "TwoLayer",
    "UrnSequences",
    "counted_laws",
]
