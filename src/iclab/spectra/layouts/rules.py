"""Rules that give tensors their roles in a layer, by the end of their names."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from iclab.numerics import checks_its_fields, require
from iclab.spectra.checkpoints.names import quoted
from iclab.spectra.checkpoints.tensors import Tensor

__all__ = ["ATTENTION", "ORDERS", "PARTS", "ROLES", "Match", "Rule", "TowerLayer", "matched", "rule_of", "unwrapped"]

ATTENTION = ("q", "k", "v", "qkv", "kv", "o")
ROLES = (*ATTENTION, "q_norm", "k_norm", "norm", "mlp_in", "mlp_out", "embed", "unembed", "skip")
PARTS = {"qkv": ("q", "k", "v"), "kv": ("k", "v")}
ORDERS = {
    "qkv": ("part,head,dim", "head,part,dim", "group,part,dim", "part,dim,head", "head,dim,part", "dim,head,part"),
    "kv": ("part,head,dim", "head,part,dim", "part,dim,head", "head,dim,part"),
    "q": ("head,dim", "dim,head"),
    "k": ("head,dim", "dim,head"),
    "v": ("head,dim", "dim,head"),
    "o": ("head,dim", "dim,head"),
}
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")
_BIAS = re.compile("_?b_[QKVO]$")  # of TransformerLens
_LEADING = (("module",), ("base_model", "model"))
TowerLayer = tuple[str, int]
"""A stack of layers, by the module path in front of their numbers, and the number of one layer."""


@checks_its_fields
@dataclass(frozen=True)
class Rule:
    r"""A rule: tensors whose names have this form have this role.

    `match` is a regular expression for the end of the name, whole components of its path; the group `layer`
    is the layer's number (0 without it) and a group `kind` is added to the name of the tower. `order` names the
    axes of the output index, slowest first (of the input index for role o). `output_axis` is the axis of
    the stored array that is the layer's output; arrays of three axes have heads first. `shards` parts of a
    tensor-parallel layer are concatenated on the output axis, and so are `blocks` matrices of an MLP.
    """

    match: str
    role: str
    order: str = ""
    output_axis: int = 0
    shards: int = 1
    blocks: int = 1

    def __post_init__(self) -> None:
        require(self.role in ROLES, f"role must be one of {' '.join(ROLES)}; got {self.role!r}.")
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(f"match must be a regular expression; got {self.match!r}: {error}.") from None
        allowed = ORDERS.get(self.role, ("",))
        require(
            self.order in (*allowed, "") and not (self.role in PARTS and not self.order),
            f"order of role {self.role} must be one of {', '.join(allowed)}; got {self.order!r}.",
        )
        require(self.output_axis in (0, 1, 2), f"output_axis must be 0, 1 or 2; got {self.output_axis!r}.")
        require(self.shards >= 1, f"shards must be a whole number >= 1; got {self.shards!r}.")


@dataclass(frozen=True)
class Match:
    """A tensor with its role."""

    tensor: Tensor
    rule: Rule
    tower: str
    layer: int
    bias: bool  # True for the bias of its role

    @property
    def tower_layer(self) -> TowerLayer:
        """Its tower and the number of its layer."""
        return self.tower, self.layer


def unwrapped(names: Iterable[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Names without the wrappers of trainers, and the wrappers that were removed.

    Compiler and sharding wrappers are removed anywhere, `module.` and `base_model.model.` at the front, until nothing
    changes.

    Raises ValueError when two names become one.
    """
    plain: dict[str, str] = {}
    owner: dict[str, str] = {}
    removed: list[str] = []
    for name in names:
        short, taken = _stripped(name.split("."))
        removed += [wrapper for wrapper in taken if wrapper not in removed]
        require(
            short not in owner,
            f"names must differ without their wrappers; {quoted(name)} and {quoted(owner.get(short, ''))} are both "
            f"{quoted(short)}. Keep one of the two.",
        )
        plain[name], owner[short] = short, name
    return plain, tuple(removed)


def matched(tensors: Mapping[str, Tensor], rules: Iterable[Rule]) -> tuple[list[Match], list[Tensor]]:
    """Tensors with their roles, and those that no rule matches.

    Raises ValueError where two rules match one tensor.
    """
    compiled = [(_pattern(rule), rule) for rule in rules]
    found, unknown = [], []
    for name, tensor in tensors.items():
        hits = [(hit, rule) for pattern, rule in compiled if (hit := pattern.fullmatch(name))]
        require(
            len(hits) <= 1,
            f"a tensor must match one rule; {quoted(name)} matches both {hits[0][1].match!r} and "
            f"{hits[-1][1].match!r}." if len(hits) > 1 else "",
        )  # fmt: skip
        if hits:
            groups = hits[0][0].groupdict()
            tower = ".".join(part for part in (groups["tower"], groups.get("kind")) if part)
            found.append(Match(tensor, hits[0][1], tower, int(groups.get("layer") or 0), _is_bias(name)))
        else:
            unknown.append(tensor)
    return found, unknown


def rule_of(name: str, rules: Iterable[Rule]) -> Rule | None:
    """First rule that matches a name, or None."""
    return next((rule for rule in rules if _pattern(rule).fullmatch(name)), None)


def _is_bias(name: str) -> bool:
    last = name.rsplit(".", 1)[-1]
    return last in ("bias", "beta") or last.endswith("_bias") or bool(_BIAS.match(last))


def _pattern(rule: Rule) -> re.Pattern[str]:
    return re.compile(rf"(?:(?P<tower>.+?)\.)??(?:{rule.match})")


def _stripped(parts: list[str]) -> tuple[str, list[str]]:
    removed = [part for part in parts if part in _WRAPPERS]
    parts = [part for part in parts if part not in _WRAPPERS]
    while leading := next((front for front in _LEADING if tuple(parts[: len(front)]) == front), None):
        if len(parts) == len(leading):
            break
        removed.append(".".join(leading))
        parts = parts[len(leading) :]
    return ".".join(parts), removed
