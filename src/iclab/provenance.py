"""Provenance of a result: versions, device and commit, as text for its attributes, of each seed where they differ."""

import ctypes
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from iclab import __version__
from iclab.files import installing

__all__ = [
    "LIBRARIES", "ORIGIN", "computing", "cores", "device", "environment", "kernel", "machine_memory",
    "origin_attributes", "origins", "peak_memory", "ranges", "simulating",
]  # fmt: skip

LIBRARIES = ("numpy", "scipy", "xarray", "jax", "jaxlib", "optax")

ORIGIN = ("iclab", "commit", "versions", "precision", "kernel", "device")
"""Attributes that say what made a result."""


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
        "kernel": kernel(),
    }


def computing() -> str:
    """The versions of iclab, Python, NumPy and JAX, and the device that JAX computes on, in a line each."""
    whole = environment()
    try:
        import jax

        jax_there = f"JAX {jax.__version__} on {jax.devices()[0].platform}"
    except (ImportError, RuntimeError, AssertionError) as error:
        absent = isinstance(error, ModuleNotFoundError)
        jax_there = f"JAX absent: {installing('sim')} adds it" if absent else f"JAX without a device ({error})"
    commit = "" if whole["commit"] == "unknown" else f" (commit {whole['commit'][:12]})"
    return "\n".join(
        [f"iclab {__version__}{commit}", f"Python {sys.version.split()[0]}", f"NumPy {np.__version__}", jax_there]
    )


def device() -> str:
    """The kind of device that JAX computes on, or "none" while JAX is not in use."""
    jax = sys.modules.get("jax")
    return jax.devices()[0].platform if jax else "none"


@cache
def kernel() -> str:
    """The processor, and the kernel that its linear algebra takes: other kernels round otherwise."""
    for library in (Path(np.__file__).parents[1] / "numpy.libs").glob("libscipy_openblas*"):
        with suppress(OSError, AttributeError):
            name = ctypes.CDLL(str(library)).scipy_openblas_get_corename64_
            name.restype = ctypes.c_char_p
            return f"{platform.machine()} {name().decode()}"
    return f"{platform.machine()} unknown"


def cores() -> int:
    """The number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # of systems other than Linux
        return os.cpu_count() or 1


def machine_memory() -> float:
    """Bytes of memory of this machine; infinite on a system that does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def peak_memory() -> float:
    """The most bytes of memory that this process has held; nan on a system that does not count them."""
    try:
        import resource
    except ImportError:
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most if sys.platform == "darwin" else 1024 * most)


def origins(attributes: Mapping[Any, Any], seeds: Sequence[int]) -> list[dict[str, str]]:
    """The origin of each seed of a result with these attributes."""
    noted = json.loads(attributes.get("origins", "[]"))
    known = {seed: entry["origin"] for entry in noted for seed in entry["seeds"]}
    whole = {name: str(attributes[name]) for name in ORIGIN if name in attributes}
    return [known.get(seed, whole) for seed in seeds]


def origin_attributes(made: Sequence[Mapping[str, str]], seeds: Sequence[int]) -> dict[str, str]:
    """The attributes of a result whose seeds have these origins, one each.

    Where all agree, each is their text. Where they differ, it names all texts, each with its seeds, and `origins`
    says the same as JSON.
    """
    if all(origin == made[0] for origin in made):
        return dict(made[0]) if made else {}
    texts = {name: _by_seed([origin.get(name, "unknown") for origin in made], seeds) for name in ORIGIN}
    whole = _grouped([json.dumps(dict(origin), sort_keys=True) for origin in made], seeds)
    noted = [{"seeds": of, "origin": json.loads(origin)} for origin, of in whole.items()]
    return {**texts, "origins": json.dumps(noted)}


@contextmanager
def simulating(otherwise: str) -> Iterator[None]:
    """Context for imports of simulation, with a device that JAX can use.

    Raises ImportError, with the alternative, where JAX is not installed, and ValueError where JAX_PLATFORMS names
    devices of which there is none.
    """
    try:
        yield
        _require_device()
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("jax"):
            raise
        raise ImportError(
            f"simulation needs JAX; got {error}. Install it with {installing('sim')}, or {otherwise}."
        ) from error


def _require_device() -> None:
    import jax

    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # the latter where another thread has failed before
        asked = os.environ.get("JAX_PLATFORMS", "")
        raise ValueError(
            f"JAX_PLATFORMS must name devices of this machine; got {asked!r}, of which JAX finds none. Unset it, or "
            "set it to cpu."
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


def _by_seed(texts: Sequence[str], seeds: Sequence[int]) -> str:
    """One text where all agree; else each with the seeds that it holds for."""
    grouped = _grouped(texts, seeds)
    if len(grouped) == 1:
        return texts[0]
    return "; ".join(f"{text} (seeds {ranges(of)})" for text, of in grouped.items())


def _grouped(texts: Sequence[str], seeds: Sequence[int]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for text, seed in zip(texts, seeds, strict=True):
        grouped.setdefault(text, []).append(seed)
    return grouped


def ranges(seeds: Sequence[int]) -> str:
    """Sorted seeds in few words: 0-3, 7."""
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][1] + 1:
            runs[-1][1] = seed
        else:
            runs.append([seed, seed])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
