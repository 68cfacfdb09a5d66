"""Provenance of a result: versions, device and commit, as text for its attributes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from iclab import __version__

__all__ = ["LIBRARIES", "device", "environment", "simulating"]

LIBRARIES = ("numpy", "scipy", "xarray", "jax", "jaxlib", "optax")


@cache
def environment() -> dict[str, str]:
    """Package version, commit, Python and library versions, and the device that simulation runs on."""
    versions = {"python": sys.version.split()[0]}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            versions[library] = "absent"
    return {
        "iclab": __version__,
        "commit": _commit(),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "precision": "float64",
    }


def device() -> str:
    """The kind of device that JAX computes on, or "none" while JAX is not in use."""
    jax = sys.modules.get("jax")
    return jax.devices()[0].platform if jax else "none"


@contextmanager
def simulating(otherwise: str) -> Iterator[None]:
    """Context for imports of simulation. Raises ImportError, with the alternative, where JAX is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("jax"):
            raise
        raise ImportError(
            f"simulation needs JAX; got {error}. Install it with pip install 'iclab[sim]', or {otherwise}."
        ) from error


def _commit() -> str:
    """The commit of the checkout that holds this package, "unknown" for an installed copy."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return "unknown"
    try:
        finished = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return finished.stdout.strip() or "unknown"
