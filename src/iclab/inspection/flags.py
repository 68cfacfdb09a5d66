"""Flags of `iclab inspect`: apart from the work, so that help is quick."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Inspect:
    """Spectra of the checkpoints in a folder: is the series sound, what do heads read and write, when does it change?

    PATH holds checkpoints as other people's trainers write them: folders or files named step1000, checkpoint-1000,
    epoch=3-step=400.ckpt; .safetensors (also sharded), .pt, .bin, .ckpt, .npz; a hub cache; one file. Nothing in
    them is run. What is printed: the soundness of the series; ranks and subspaces of each head's query-key (QK) and
    output-value (OV) circuit beside what random matrices read; changes; what was left out and why.

    Start with:  iclab inspect runs/pythia --every 10
    Own model:   iclab inspect runs/mine --map map.toml         (docs/checkpoints.md has an example)
    With skill:  iclab inspect runs/mine --behavior accuracy.csv --out report

    Exit code 0: done; 1: nothing could be analysed, or --strict and the series is not sound; 2: unusable input.
    """

    path: tyro.conf.Positional[Path]  # folder of checkpoints, or one file
    config: Path | None = None  # config.json of the model; default: the one beside the weights
    map: Path | None = None  # TOML file that gives the tensors of a model of one's own their roles
    base: Path | None = None  # model that LoRA adapters in PATH change, one checkpoint; default: the changes alone
    every: int = 1  # one checkpoint in so many, and the last
    layers: tuple[int, ...] = ()  # layers to look at; default: all, and the embeddings
    heads: tuple[int, ...] = ()  # query heads to look at; default: all
    measures: tuple[str, ...] = ("ranks", "overlaps")  # names, or the groups ranks, overlaps, distances, balance
    leading: int = 4  # directions whose overlap is taken
    against: Path | None = None  # a second run, measured alike
    force: bool = False  # compare runs on steps though their samples per step differ
    samples_per_step: tuple[float, ...] = ()  # of PATH, and of --against; default: as config.json says
    behavior: Path | None = None  # CSV file: a column step and others of numbers, joined on the exact step
    fold: bool = False  # take the gain of the norm in front of attention into the circuits
    strict: bool = False  # exit 1 where the series is not sound
    allow_partial: bool = False  # read checkpoints that lack shards as far as they go
    max_elements: int | None = None  # largest whole matrix measured, heads have no limit; default: below 8192 × 8192
    rehash: bool = False  # read all contents again instead of trusting size and time of files
    with_paths: bool = False  # let results hold absolute paths
    json: bool = False  # print all results as JSON instead of a summary
    csv: bool = False  # write the table as results.csv, too
    parquet: bool = False  # write the table as results.parquet, too (needs iclab[parquet])
    page: bool = True  # write index.html, a page with figures that needs nothing beside it
    out: Path = Path("inspection")  # folder of index.html, of results.json and of the contents that are remembered
    debug: bool = False  # show the traceback of an error
