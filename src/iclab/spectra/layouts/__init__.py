"""Layouts of models: from names and shapes of stored tensors to the attention weights of each layer."""

from typing import TYPE_CHECKING

from iclab.moved import refusal
from iclab.spectra.layouts.families import FAMILIES, Layout, from_config
from iclab.spectra.layouts.geometry import Geometry
from iclab.spectra.layouts.mapping import from_mapping
from iclab.spectra.layouts.plans import Matrix, TensorPlan, planned, tensor_plan
from iclab.spectra.layouts.rules import Rule

__all__ = [
    "FAMILIES",
    "Geometry",
    "Layout",
    "Matrix",
    "Rule",
    "TensorPlan",
    "from_config",
    "from_mapping",
    "planned",
    "tensor_plan",
]

if not TYPE_CHECKING:  # else every name would be one
    __getattr__ = refusal(__name__)
