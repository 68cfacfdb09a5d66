"""From names and shapes of stored tensors to the attention weights of each layer."""

from collections.abc import Mapping
from dataclasses import replace

from iclab.numerics import require
from iclab.spectra.checkpoints.content import Content
from iclab.spectra.checkpoints.series import Contents
from iclab.spectra.layouts.adapters import adapted
from iclab.spectra.layouts.families import FAMILIES, Layout, from_config
from iclab.spectra.layouts.geometry import Geometry
from iclab.spectra.layouts.mapping import from_mapping
from iclab.spectra.layouts.plan import Matrix, Plan, plan
from iclab.spectra.layouts.rules import Rule
from iclab.spectra.tensors import Tensor

__all__ = [
    "FAMILIES",
    "Geometry",
    "Layout",
    "Matrix",
    "Plan",
    "Rule",
    "from_config",
    "from_mapping",
    "plan",
    "planned",
]


def planned(
    contents: Contents,
    layout: Layout | None = None,
    *,
    base: Mapping[str, Tensor] | None = None,
    known: Mapping[str, Content] | None = None,
) -> Plan:
    """The plan for an opened checkpoint, its adapters applied to the tensors of `base` or read alone.

    Without a layout the family is what the checkpoint's own config says; `known` contents tell tied embeddings
    that are stored twice. Raises ValueError where it says none.
    """
    require(
        layout is not None or "model_type" in contents.config,
        "the family of the model must be known; there is no config.json with a model_type. Give the config of the "
        "model (of the base model for an adapter) or a mapping of its tensors.",
    )
    read = layout or from_config(contents.config)
    applied = adapted(contents.tensors, contents.adapter, read, base=base)
    made = plan(applied.tensors, read, known=known)
    return replace(
        made,
        skipped=(*contents.skipped, *made.skipped),
        notes=(*contents.notes, *applied.notes, *made.notes),
    )
