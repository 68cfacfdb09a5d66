"""Rules and geometries that families share."""

from collections.abc import Mapping
from typing import Any

from iclab.numerics import Validated, require
from iclab.spectra.layouts.geometry import Geometry, rotary, sizes
from iclab.spectra.layouts.rules import Rule

__all__ = [
    "AFFINE", "NORM", "Config", "Family", "fused", "mapped_geometry", "rotary_geometry", "separate", "unembedding",
]  # fmt: skip

Config = Mapping[str, Any]
Family = tuple[list[Rule], Geometry]
AFFINE = r"\.(?:weight|bias)"
NORM = r"\.(?:weight|bias|gamma|beta)"


def fused(match: str, order: str, axis: int = 0) -> Rule:
    """Rule of a fused projection and its bias."""
    return Rule(match + AFFINE, "qkv", order, axis)


def separate(stem: str, names: str = "q_proj k_proj v_proj o_proj") -> list[Rule]:
    """Rules of query, key, value and output projections, for as many as have names."""
    return [Rule(rf"{stem}\.{name}{AFFINE}", role) for name, role in zip(names.split(), "qkvo", strict=False)]


def unembedding(*names: str) -> list[Rule]:
    """Rules of unembeddings of these names."""
    return [Rule(rf"{name}\.(?:weight|bias)", "unembed") for name in names]


def rotary_geometry(
    config: Config,
    *,
    pairing: Validated[str] = "half",
    fraction: Validated[float] = 1.0,
    theta: Validated[float] = 1e4,
    **other: Any,
) -> Geometry:
    """Geometry with the rotary embedding of the config; fraction and theta are the defaults of the family."""
    geometry = sizes(config, **other)
    require(geometry.head_dim is not None, "the config must give head_dim or hidden_size, to know what is rotated.")
    embedding = rotary(config, geometry.head_dim or 0, pairing=pairing, fraction=fraction, theta=theta)
    return sizes(config, rotaries=(embedding,), **other)


def mapped_geometry(config: Config, **other: Any) -> Geometry:
    """Geometry with the rotary embedding of the config's table rotary = {fraction, pairing, theta}, if it has one."""
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
