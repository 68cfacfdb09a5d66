"""All studies by name, each in its own module; third parties add theirs through the entry points `iclab.studies`."""

import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points

from iclab.study import Study

__all__ = ["GROUPS", "HOMES", "STUDIES"]

GROUPS = {
    "dynamics": (
        "abrupt_drop", "staircase", "white_drop", "rank_staircase", "initial_scale", "context_lengths",
        "drop_times", "principal_components", "in_weight", "softmax_dynamics", "fixed_points",
    ),
    "modes": ("mode_staging", "finite_context", "sgd_noise", "conservation", "phase_portrait", "alignment"),
    "pretraining": (
        "double_descent", "context_length", "non_monotone_context", "task_diversity", "ridge", "structured",
        "finite_size", "forecast",
    ),
    "depth": (
        "depth_landscape", "depth_plateau", "depth_staircase", "depth_noise", "depth_spectrum", "depth_free",
        "depth_softmax",
    ),
    "design": ("task_alignment", "task_design", "rank_transition", "chosen_pool"),
    "related": ("rank_robustness", "softmax_window", "low_rank_tasks", "separate_tokens", "pattern_selection"),
    "strategies": ("strategy_gap", "markov_stages"),
    "networks": (
        "icl_emergence", "grokking", "transformer_double_descent", "transformer_task_diversity",
        "regression_training",
    ),
}  # fmt: skip
"""The studies of this library, by the folder that holds them, in the order of the report."""

HOMES = {name: f"iclab.studies.{group}.{name}" for group, names in GROUPS.items() for name in names}
"""The module of each study."""


class _Studies(Mapping[str, Study]):
    """Studies that load when they are first asked for."""

    def __getitem__(self, name: str) -> Study:
        module = name.replace("-", "_")
        if module in HOMES:
            return importlib.import_module(HOMES[module]).STUDY
        for point in entry_points(group="iclab.studies", name=name):
            return point.load()
        raise KeyError(f"no study is called {name!r}; the studies are {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        yield from (module.replace("_", "-") for module in HOMES)
        yield from (point.name for point in entry_points(group="iclab.studies"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        groups = {group: [name.replace("_", "-") for name in names] for group, names in GROUPS.items()}
        others = [point.name for point in entry_points(group="iclab.studies")]
        listed = {**groups, "others": others} if others else groups
        return "\n".join(f"{group}: {', '.join(names)}" for group, names in listed.items())


STUDIES: Mapping[str, Study] = _Studies()
