"""Forms of rules and geometries that families share."""

from collections.abc import Mapping
from typing import Any

from iclab.numerics import require
from iclab.spectra.layouts.geometry import Geometry, rotary, sizes
from iclab.spectra.layouts.rules import Rule

Config = Mapping[str, Any]
Family = tuple[list[Rule], Geometry]
AFFINE = r"\.(?:weight|bias)"
NORM = r"\.(?:weight|bias|gamma|beta)"


def fused(match: str, order: str, axis: int = 0) -> Rule:
    """The rule of a fused projection and its bias."""
    return Rule(match + AFFINE, "qkv", order, axis)


def separate(stem: str, names: str = "q_proj k_proj v_proj o_proj") -> list[Rule]:
    """The rules of query, key, value and output projections, as far as they are named."""
    return [Rule(rf"{stem}\.{name}{AFFINE}", role) for name, role in zip(names.split(), "qkvo", strict=False)]


def unembedding(*names: str) -> list[Rule]:
    """The rules of unembeddings of these names."""
    return [Rule(rf"{name}\.(?:weight|bias)", "unembed") for name in names]


def rotary_geometry(
    config: Config, *, pairing: str = "half", fraction: float = 1.0, theta: float = 1e4, **other: Any
) -> Geometry:
    """Sizes with the rotation of the config; fraction and theta are the defaults of the family."""
    geometry = sizes(config, **other)
    require(geometry.head_dim is not None, "the config must give head_dim or hidden_size, to know what is rotated.")
    turn = rotary(config, geometry.head_dim or 0, pairing=pairing, fraction=fraction, theta=theta)
    return sizes(config, rotaries=(turn,), **other)


def mapped_geometry(config: Config, **other: Any) -> Geometry:
    """Sizes, and the rotation where the config states one: rotary = {fraction, pairing, theta}."""
    given = config.get("rotary")
    if not given:
        return sizes(config, **other)
    require(isinstance(given, Mapping), f"rotary must be a table such as {{fraction = 0.25}}; got {given!r}.")
    unknown = sorted(set(given) - {"fraction", "pairing", "theta"})
    require(not unknown, f"rotary has the entries fraction, pairing and theta; got {', '.join(unknown)}.")
    pairing = given.get("pairing", "half")
    require(pairing in ("half", "interleaved"), f'pairing must be "half" or "interleaved"; got {pairing!r}.')
    fraction, theta = given.get("fraction", 1.0), given.get("theta", 1e4)
    return rotary_geometry(config, pairing=pairing, fraction=fraction, theta=theta, **other)
