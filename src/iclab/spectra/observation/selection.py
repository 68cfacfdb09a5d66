"""The selection of what to measure: layers, heads and measures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from iclab.numerics import checks_its_fields, require, whole_number

__all__ = [
    "BALANCE",
    "DEFAULT",
    "DISTANCES",
    "GROUPS",
    "LARGEST",
    "OVERLAPS",
    "RANKS",
    "Selection",
    "refuse_loose_keywords",
]

RANKS = (
    "effective_rank", "energy_effective_rank", "marginal_effective_rank", "stable_rank", "participation_ratio",
    "nuclear_rank", "energy_rank", "numerical_rank",
)  # fmt: skip
OVERLAPS = ("overlap_with_final", "overlap_with_previous")
DISTANCES = ("distance_to_final", "procrustes_to_final")
BALANCE = ("imbalance_since_first",)
GROUPS = {"ranks": RANKS, "overlaps": OVERLAPS, "distances": DISTANCES, "balance": BALANCE}
LARGEST = 8192**2 - 1  # elements of a whole matrix that is measured by default
_T = TypeVar("_T")


@checks_its_fields
@dataclass(frozen=True)
class Selection:
    """Layers, heads and measures to inspect, with the settings of the measures.

    Sequences are kept as tuples without repeats, and `measures` by name, the groups ranks, overlaps, distances and
    balance expanded. Layers and heads are held against the model by `survey`.

    Raises ValueError for a measure that does not exist and for sizes that are no whole numbers >= 1.
    """

    layers: Sequence[int] | None = None  # None: all, and the embeddings
    heads: Sequence[int] | None = None  # query heads; None: all
    measures: Sequence[str] = ("ranks", "overlaps")  # names or groups
    leading: int = 4  # directions of a subspace whose overlap is taken
    fold: bool = False  # multiply the gain of attention's input norm into the circuits
    max_elements: int = LARGEST  # of a whole matrix; larger ones are skipped

    def __post_init__(self) -> None:
        names = _unique(name for given in self.measures for name in GROUPS.get(given, (given,)))
        known = [name for group in GROUPS.values() for name in group]
        wrong = [name for name in names if name not in known]
        require(
            not wrong and bool(names),
            f"measures must be among {', '.join((*GROUPS, *known))}; got {', '.join(map(repr, wrong)) or 'none'}.",
        )
        whole_number("leading", self.leading)
        whole_number("max_elements", self.max_elements)
        object.__setattr__(self, "measures", names)
        for name in ("layers", "heads"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else _unique(given))

    @property
    def of_subspaces(self) -> bool:
        """True where matrices of different checkpoints are compared."""
        return self.any_of(OVERLAPS + DISTANCES + BALANCE)

    @property
    def of_circuits(self) -> bool:
        """True where a measure other than balance is selected."""
        return any(name not in BALANCE for name in self.measures)

    def any_of(self, names: Sequence[str]) -> bool:
        """True where one of these measures is selected."""
        return any(name in self.measures for name in names)


def refuse_loose_keywords(call: str, keywords: Mapping[str, object]) -> None:
    """Raise TypeError, with what to write instead, for keywords that belong to the selection or the series."""
    fields = Selection.__dataclass_fields__
    for name, value in keywords.items():
        if name == "every":
            advice = f"It belongs to the series: write {call}(series.thinned({value!r}), …)."
        elif name in fields:
            chosen = ", ".join(f"{one}={keywords[one]!r}" for one in keywords if one in fields)
            advice = f"Write {call}(series, selection=Selection({chosen})), with Selection from iclab.spectra."
        else:
            advice = f"What to inspect is selection=Selection(…), with the fields {', '.join(fields)}."
        raise TypeError(f"{call}() takes no keyword {name}. {advice}")


def _unique(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))


DEFAULT = Selection()  # all layers and heads; ranks and overlaps
