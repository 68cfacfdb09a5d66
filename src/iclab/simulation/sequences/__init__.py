"""Data for networks: contexts of regression, periodic sequences and sums modulo a number, as batches of tokens.

Each kind is a frozen dataclass of plain numbers, with the methods of `Data`.
"""

from iclab.simulation.sequences.batches import Batch, Data
from iclab.simulation.sequences.functions import Linear, SparseLinear, TwoLayer
from iclab.simulation.sequences.regression import FixedRegression, RegressionContexts
from iclab.simulation.sequences.tokens import ModularAddition, PeriodicSequences

__all__ = [
    "Batch",
    "Data",
    "FixedRegression",
    "Linear",
    "ModularAddition",
    "PeriodicSequences",
    "RegressionContexts",
    "SparseLinear",
    "TwoLayer",
]
