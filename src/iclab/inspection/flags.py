"""Flags of `iclab inspect`, in a module of their own, so that help is quick."""

from dataclasses import dataclass
from pathlib import Path

import tyro

__all__ = ["Inspect"]


@dataclass(frozen=True)
class Inspect:
    """Spectra of the checkpoints in a folder: integrity of the series, circuits of its heads, and their changes.

    PATH holds checkpoints of any trainer: folders or files named step1000, checkpoint-1000, epoch=3-step=400.ckpt;
    .safetensors (also sharded), .pt, .bin, .ckpt, .npz; a hub cache; one file. No code in them is run. Printed are
    the integrity of the series; ranks and subspaces of each head's query-key (QK) and output-value (OV) circuit with
    their random-matrix baselines; changes; and what was skipped, with reasons.

    Start with:     iclab inspect runs/pythia --every 10
    Custom model:   iclab inspect runs/mine --map map.toml         (docs/checkpoints.md has an example)
    With behavior:  iclab inspect runs/mine --behavior accuracy.csv --out report

    Exit code 0: done; 1: nothing could be analyzed, or --strict and the series is not sound; 2: unusable input.
    """

    path: tyro.conf.Positional[Path]  # folder of checkpoints, or one file
    config: Path | None = None  # config.json of the model; default: the one next to the weights
    map: Path | None = None  # TOML file with the roles of the tensors of a custom model
    base: Path | None = None  # model that LoRA adapters in PATH change, one checkpoint; default: the changes alone
    every: int = 1  # read every n-th checkpoint, and the last
    layers: tuple[int, ...] = ()  # layers to inspect; default: all, and the embeddings
    heads: tuple[int, ...] = ()  # query heads to inspect; default: all
    measures: tuple[str, ...] = ("ranks", "overlaps")  # names, or the groups ranks, overlaps, distances, balance
    leading: int = 4  # number of leading directions of an overlap
    against: Path | None = None  # a second run, measured in the same way
    force: bool = False  # compare runs by step even where their samples per step differ
    samples_per_step: tuple[float, ...] = ()  # of PATH, and of --against; default: those in config.json
    behavior: Path | None = None  # CSV file: a column step and others of numbers, joined on the exact step
    fold: bool = False  # multiply the gain of attention's input norm into the circuits
    strict: bool = False  # exit 1 where the series is not sound
    allow_partial: bool = False  # read checkpoints that lack shards without them
    max_elements: int | None = None  # of a whole matrix, heads have no limit; default: below 8192 × 8192
    rehash: bool = False  # hash all contents again instead of trusting size, times and number of files
    with_paths: bool = False  # write absolute paths into the results
    json: bool = False  # print all results as JSON instead of a summary
    csv: bool = False  # also write the table as results.csv
    parquet: bool = False  # also write the table as results.parquet (needs iclab[parquet])
    page: bool = True  # write index.html, a self-contained page with figures
    out: Path = Path("inspection")  # folder of index.html, results.json and the cache of contents
    debug: bool = False  # show the traceback of an error
