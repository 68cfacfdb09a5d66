"""Networks in training on disk: weights as `iclab inspect` reads them, and all that a run needs to resume.

A run is a folder: `run.json` says which one it is, and each checkpoint is a folder `step-000123` with
`model.safetensors` (weights by name), `config.json` (the network), `optimizer.safetensors` (the state of the
optimizer, leaf by leaf) and `trainer_state.json` (step, loss and the digests of the other files). Each is
written whole or not at all.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from iclab.files import folder_written_whole, written_whole
from iclab.numerics import Validated, checks_its_fields, require, whole_number
from iclab.simulation.keys import checked_key
from iclab.simulation.networks.checks import checked_data, checked_network, checked_parameters
from iclab.simulation.networks.parts import Network
from iclab.simulation.networks.records import described, differences, network_of, stated
from iclab.simulation.networks.training import State, checked_loss
from iclab.simulation.sequences.batches import Data

__all__ = ["FILES", "Folder", "network_at", "schedule"]

FILES = (
    "config.json",
    "model.safetensors",
    "optimizer.safetensors",
)  # of a checkpoint, with trainer_state.json
_CHECKPOINT = re.compile(r"step-(\d{6,})")


@checks_its_fields
@dataclass(frozen=True, eq=False)
class Folder:
    """The checkpoints of one run, in a folder of its own.

        folder = snapshots.Folder("runs/mine", network, data, optimizer="adam 1e-3", key=key)
        networks.train(network, data, steps=..., optimizer=..., key=key,
                       checkpoints=folder.save, resume=folder.latest())

    The same lines begin a run and resume it. `optimizer` names the optimizer: functions cannot be compared.

    Raises ValueError for a folder of another run, with the differences, for one that holds something else or cannot
    be written to, and unless network, data and key are such.
    """

    path: Path
    network: Network
    data: Data
    optimizer: str
    key: Validated[PRNGKeyArray]

    def __post_init__(self) -> None:
        checked_network(self.network)
        checked_data(self.data)
        require(
            isinstance(self.optimizer, str) and bool(self.optimizer),
            f"optimizer must say in words which one it is; got {type(self.optimizer).__name__}. "
            'Write "adam 1e-3", say.',
        )
        checked_key(self.key)
        object.__setattr__(self, "path", _writable(_path("path", self.path)))
        self._require_same_run()

    @property
    def run(self) -> dict[str, Any]:
        """Description of the run, as `run.json` has it."""
        words = np.asarray(jax.random.key_data(self.key)).tolist()
        named = {"network": self.network, "data": self.data, "optimizer": self.optimizer, "key": words}
        return {name: described(name, part) for name, part in named.items()}

    def steps(self) -> tuple[int, ...]:
        """The steps whose checkpoints are here, in order."""
        found = (_CHECKPOINT.fullmatch(entry.name) for entry in self.path.iterdir() if entry.is_dir())
        return tuple(sorted(int(name[1]) for name in found if name))

    def save(self, step: int, state: State) -> None:
        """Write a checkpoint.

        Raises ValueError for a step that is here already or is not that of the state, for weights that are not
        those of the network and unless it is a state; OSError where it cannot be written.
        """
        here = self._checkpoint(whole_number("step", step, least=0))
        require(
            isinstance(state, Mapping) and state.keys() >= State.__annotations__.keys() and state["step"] == step,
            f"state must be the State of step {step}; got {_described_state(state)}.",
        )
        require(
            not here.exists(),
            f"a step must be written once; {here.name} is in {self.path} already. Go on from there with "
            "resume=folder.latest(), or take an empty folder.",
        )
        weights = checked_parameters(self.network, state["parameters"])
        memory = _plain(_leaves(state["optimizer"]))
        loss = _finite(checked_loss("the loss of state", state["loss"]))
        self._require_same_run()
        if not self._record.exists():
            with written_whole(self._record) as file:
                _write_json(file, self.run)
        with folder_written_whole(here) as folder:
            _write_tensors(folder / "model.safetensors", _plain(weights))
            _write_tensors(folder / "optimizer.safetensors", memory)
            _write_json(folder / "config.json", stated(self.network))
            digests = {name: _digest(folder / name) for name in FILES}
            _write_json(folder / "trainer_state.json", {"global_step": step, "loss": loss, "sha256": digests})

    def latest(self) -> State | None:
        """The state at the last step that is here, or None where there is none."""
        steps = self.steps()
        return self.load(steps[-1]) if steps else None

    def load(self, step: int) -> State:
        """The state at a step, as `networks.train` takes it up.

        Raises ValueError for a step that is not here, and for files that are damaged, changed or of another step.
        """
        here = self._checkpoint(whole_number("step", step, least=0))
        require(here.is_dir(), f"step must be one of {list(self.steps())}; got {step}.")
        trainer = _read_json(here / "trainer_state.json")
        require(
            trainer.get("global_step") == step,
            f"{here} must hold step {step}; its trainer_state.json says {trainer.get('global_step')!r}.",
        )
        _require_unchanged(here, trainer.get("sha256"))
        loss = trainer.get("loss")
        return State(
            step=step,
            parameters=checked_parameters(self.network, _read_tensors(here / "model.safetensors")),
            optimizer=_read_tensors(here / "optimizer.safetensors"),
            loss=float("nan") if loss is None else checked_loss(f"the loss in {here}", loss),
        )

    @property
    def _record(self) -> Path:
        return self.path / "run.json"

    def _checkpoint(self, step: int) -> Path:
        return self.path / f"step-{step:06d}"

    def _require_same_run(self) -> None:
        ours = self.run
        if self._record.exists():
            other = differences(_read_json(self._record), ours)
            require(
                not other,
                f"{self.path} must hold this run or nothing; it holds another: {'; '.join(other)}. "
                "Take another folder.",
            )
            return
        require(
            not any(_written(self.path)),
            f"{self.path} must be a folder that is empty or has a run.json; it is neither. Take another folder.",
        )
        require(
            os.access(self.path, os.W_OK | os.X_OK),
            f"path must be that of a folder that can be written to; {self.path} is not.",
        )


def network_at(checkpoint: Path | str) -> tuple[Network, dict[str, np.ndarray]]:
    """The network of a checkpoint's folder, and its weights by name.

    Raises ValueError for a folder that was not written here, and for damaged files.
    """
    folder = _path("checkpoint", checkpoint)
    network = network_of(_read_json(folder / "config.json"))
    return network, checked_parameters(network, _read_tensors(folder / "model.safetensors"))


def schedule(
    steps: Validated[int], *, per_decade: Validated[int] = 10, dense: Validated[Iterable[tuple[int, int, int]]] = ()
) -> tuple[int, ...]:
    """Steps to keep: 0 and the last, `per_decade` of each power of ten, and windows (from, to, every).

    Raises ValueError for numbers that are not whole and for windows that do not lie within the steps.
    """
    last, density = whole_number("steps", steps), whole_number("per_decade", per_decade, least=0)
    chosen = {0, last}
    power = 0
    while density and (step := round(10 ** (power / density))) < last:
        chosen.add(step)
        power += 1
    for window in dense:
        require(
            isinstance(window, tuple | list) and len(window) == 3,
            f"a dense window must be (from, to, every); got {window!r}.",
        )
        first, end = (whole_number("dense", number, least=0) for number in window[:2])
        require(first <= end <= last, f"a dense window must lie within 0 to {last}; got {first} to {end}.")
        chosen.update(range(first, end + 1, whole_number("dense", window[2])))
    return tuple(sorted(chosen))


def _described_state(state: Any) -> str:
    return f"that of step {state['step']!r}" if isinstance(state, Mapping) and "step" in state else repr(type(state))


def _path(name: str, value: Any) -> Path:
    require(
        isinstance(value, str | Path) and bool(str(value)), f"{name} must be the path of a folder; got {value!r}."
    )
    return Path(value)


def _leaves(memory: Any) -> dict[str, Any]:
    """The leaves of a tree by number and path: in the order of their names they are in that of the tree."""
    paths = jax.tree_util.tree_flatten_with_path(memory)[0]
    return {f"{index:06d}{jax.tree_util.keystr(path)}": leaf for index, (path, leaf) in enumerate(paths)}


def _plain(tensors: dict[str, Any]) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    for name, array in arrays.items():
        require(
            array.dtype.kind in "biuf" or array.dtype.name == "bfloat16",
            f"the state of an optimizer must be arrays of numbers; {name} is {array.dtype}.",
        )
    return arrays


def _finite(loss: float) -> float | None:
    return float(loss) if np.isfinite(loss) else None


def _writable(path: Path) -> Path:
    """The path of a folder, made if need be. Raises ValueError where there can be none, before a run has begun."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ValueError(f"path must be that of a folder that can be written to; it is not: {error}.") from None
    return path


def _digest(file: Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _require_unchanged(here: Path, digests: Any) -> None:
    """Raises ValueError unless the files of a checkpoint are those that were written with it."""
    require(isinstance(digests, dict), f"{here / 'trainer_state.json'} must state the sha256 of files; it does not.")
    for name in FILES:
        file = here / name
        try:
            same = _digest(file) == digests.get(name)
        except OSError as error:
            raise ValueError(f"{file} must be a file written here; reading it failed: {error}.") from None
        require(
            same,
            f"{file} must be as it was written; it is damaged or of another checkpoint. Remove {here.name} to go on "
            "from the one before.",
        )


def _written(folder: Path) -> Iterable[Path]:
    """Entries of a folder, without those that a killed process left unfinished."""
    return (entry for entry in folder.iterdir() if not entry.name.startswith(".unfinished-"))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be a JSON file written here; reading it failed: {error}.") from None
    require(isinstance(found, dict), f"{path} must hold a JSON object; it does not.")
    return found


def _write_tensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    try:
        save_file(tensors, path, {"format": "np"})
    except SafetensorError as error:
        raise OSError(f"{path.name} could not be written to {path.parent.parent}: {error}.") from None


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    try:
        return load_file(path)
    except (OSError, SafetensorError, KeyError) as error:
        raise ValueError(f"{path} must be a whole safetensors file; reading it failed: {error}.") from None
