"""The selection of what to measure."""

from dataclasses import dataclass

import numpy as np

from iclab.numerics import require, whole_number

RANKS = (
    "effective_rank", "energy_effective_rank", "marginal_effective_rank", "stable_rank", "participation_ratio",
    "nuclear_rank", "energy_rank", "numerical_rank",
)  # fmt: skip
OVERLAPS = ("overlap_with_final", "overlap_with_previous")
DISTANCES = ("distance_to_final", "procrustes_to_final")
BALANCE = ("imbalance_since_first",)
GROUPS = {"ranks": RANKS, "overlaps": OVERLAPS, "distances": DISTANCES, "balance": BALANCE}
LARGEST = 8192**2 - 1  # elements of a whole matrix that is measured unless more is asked for


@dataclass(frozen=True)
class Selection:
    """What to measure: names of measures, leading directions of overlaps, heads, the largest whole matrix.

    `budget` bounds the bytes that the values of one whole matrix may take; beyond it only leading ones are found.
    """

    measures: tuple[str, ...] = RANKS
    leading: int = 4
    heads: tuple[int, ...] | None = None
    fold: bool = False
    largest: int = LARGEST
    budget: float = np.inf

    def __post_init__(self) -> None:
        known = [name for group in GROUPS.values() for name in group]
        wrong = [name for name in self.measures if name not in known]
        require(
            not wrong and bool(self.measures),
            f"measures must be among {', '.join((*GROUPS, *known))}; got {', '.join(map(repr, wrong)) or 'none'}.",
        )
        whole_number("leading", self.leading)
        whole_number("max_elements", self.largest)

    @property
    def of_subspaces(self) -> bool:
        """Whether matrices of different checkpoints are compared."""
        return any(name in OVERLAPS + DISTANCES + BALANCE for name in self.measures)

    @property
    def of_circuits(self) -> bool:
        """Whether anything but balance is selection."""
        return any(name not in BALANCE for name in self.measures)

    def any_of(self, names: tuple[str, ...]) -> bool:
        """Whether one of these measures is selection."""
        return any(name in self.measures for name in names)


def expanded(measures: tuple[str, ...]) -> tuple[str, ...]:
    """Names of measures, with each group in place of its name."""
    return tuple(dict.fromkeys(one for name in measures for one in GROUPS.get(name, (name,))))
