"""Circuits of attention heads, kept as two factors, and the balance between the factors of attention."""

from iclab.spectra.circuits.balance import Balance, Imbalance, balance, imbalance
from iclab.spectra.circuits.products import (
    HeadSpectra,
    averaged_query_key,
    head_spectra,
    leading_spectrum,
    output_value,
    product_singular_values,
    query_key,
    query_key_at,
    spectrum,
)
from iclab.spectra.circuits.weights import AttentionWeights, InputNorm, QueryKeyNorm, Rotary

__all__ = [
    "AttentionWeights",
    "Balance",
    "HeadSpectra",
    "Imbalance",
    "InputNorm",
    "QueryKeyNorm",
    "Rotary",
    "averaged_query_key",
    "balance",
    "head_spectra",
    "imbalance",
    "leading_spectrum",
    "output_value",
    "product_singular_values",
    "query_key",
    "query_key_at",
    "spectrum",
]  # fmt: skip
