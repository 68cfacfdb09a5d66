"""Files of torch.save: weights and plain values are read, anything else is refused by name and never run."""

import argparse
import collections
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from iclab.spectra import checkpoints, layouts
from tests.test_checkpoints import WEIGHTS
from tests.test_untrusted import Marker, opened


class TestTorch:
    """Files of torch.save."""

    torch: Any = None

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        TestTorch.torch = pytest.importorskip("torch")

    def state(self) -> dict[str, Any]:
        return {"w": self.torch.arange(6.0).reshape(2, 3)}

    def test_a_training_file_with_inert_values_is_read(self, tmp_path: Path) -> None:
        sizes = {"n_layer": 1, "n_head": 2, "n_embd": 4}
        self.torch.save(
            {
                "model": self.state(),
                "optimizer": {"state": {0: {"exp_avg": self.torch.zeros(2)}}},
                "model_args": sizes,
                "args": argparse.Namespace(lr=1e-3, out=Path("out")),
                "counts": collections.Counter("aab"),
                "best": np.float64(2.0),
                "iter_num": 250,
            },
            tmp_path / "ckpt.pt",
        )
        (checkpoint,) = checkpoints.read(tmp_path)
        contents = checkpoint.open()
        assert checkpoint.step == 250
        assert contents.config["model_type"] == "nanogpt"
        np.testing.assert_array_equal(contents.tensors["w"].array(), WEIGHTS["w"])
        assert {entry.name for entry in contents.skipped} >= {"optimizer", "args"}

    def test_a_class_that_could_run_is_refused_by_name_and_not_run(self, tmp_path: Path) -> None:
        Marker.ran = False
        self.torch.save({"model": self.state(), "hook": Marker()}, tmp_path / "w.pt")
        with pytest.raises(ValueError, match=r"run_it.*save_file"):
            opened(tmp_path / "w.pt")
        assert not Marker.ran

    @pytest.mark.parametrize("holder", ["state_dict", "model", "module", "weights"])
    def test_the_weights_are_found_in_their_dictionary(self, holder: str, tmp_path: Path) -> None:
        self.torch.save({holder: self.state(), "epoch": 3}, tmp_path / "w.ckpt")
        contents = opened(tmp_path / "w.ckpt")
        assert set(contents.tensors) == {"w"}
        assert contents.skipped[0].name == "epoch"

    def test_two_dictionaries_of_unknown_names_are_refused(self, tmp_path: Path) -> None:
        self.torch.save({"one": self.state(), "two": self.state()}, tmp_path / "w.pt")
        with pytest.raises(ValueError, match="'one', 'two'"):
            opened(tmp_path / "w.pt")

    @pytest.mark.parametrize("content", [3, [1, 2]])
    def test_a_file_without_a_dictionary_is_refused(self, content: Any, tmp_path: Path) -> None:
        self.torch.save(content, tmp_path / "w.pt")
        with pytest.raises(ValueError, match="dictionary of tensors"):
            opened(tmp_path / "w.pt")

    @pytest.mark.parametrize("content", [b"", b"junk", pickle.dumps({"a": 1}), b"PK\x05\x06" + bytes(18)])
    def test_a_file_that_is_none_of_torch_is_refused(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "w.pt").write_bytes(content)
        with pytest.raises(ValueError, match=r"w\.pt"):
            opened(tmp_path / "w.pt")

    def test_the_old_format_is_read_whole_and_said(self, tmp_path: Path) -> None:
        self.torch.save(self.state(), tmp_path / "w.pt", _use_new_zipfile_serialization=False)
        contents = opened(tmp_path / "w.pt")
        assert "read whole" in contents.notes[0]
        np.testing.assert_array_equal(contents.tensors["w"].array(), WEIGHTS["w"])
        with pytest.raises(ValueError, match="limit of 10"):
            opened(tmp_path / "w.pt", memory_limit=10)

    @pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float64"])
    def test_every_float_format_of_torch_is_read(self, name: str, tmp_path: Path) -> None:
        stored = self.torch.tensor([[0.5, -1.5], [2.0, 0.0]]).to(getattr(self.torch, name))
        self.torch.save({"w": stored.T}, tmp_path / "w.pt")
        tensor = opened(tmp_path / "w.pt").tensors["w"]
        assert tensor.dtype.itemsize == stored.element_size()
        np.testing.assert_array_equal(tensor.array().astype(float), [[0.5, 2.0], [-1.5, 0.0]])

    @pytest.mark.filterwarnings("ignore:.*quantized tensor creation:UserWarning")
    def test_packed_sparse_and_absent_numbers_are_skipped_with_reasons(self) -> None:
        dense = self.torch.ones(2, 2)
        state = {
            "packed": self.torch.quantize_per_tensor(dense, 0.1, 0, self.torch.qint8),
            "sparse": dense.to_sparse(),
            "meta": dense.to("meta"),
            "complex": dense.to(self.torch.complex64),
            "none": None,
            "expanded": self.torch.zeros(1).expand(10**12),
        }
        contents = checkpoints.of_states([state])[0].open()
        assert not contents.tensors
        assert {entry.name for entry in contents.skipped} == set(state)

    def test_names_that_share_a_storage_are_counted_once(self, tmp_path: Path) -> None:
        tied = self.state()["w"]
        self.torch.save({"embed": tied, "head": tied}, tmp_path / "w.pt")
        contents = opened(tmp_path / "w.pt")
        assert contents.tensors["embed"].storage == contents.tensors["head"].storage
        assert contents.nbytes == 24

    def test_a_tied_model_is_the_same_from_either_format(self, tmp_path: Path) -> None:
        embedding = self.torch.arange(6.0).reshape(3, 2)
        (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_head": 1, "n_embd": 2}')
        (tmp_path / "old").mkdir()
        save_file({"transformer.wte.weight": embedding.numpy()}, tmp_path / "model.safetensors")
        state = {"transformer.wte.weight": embedding, "lm_head.weight": embedding}
        self.torch.save(state, tmp_path / "old" / "pytorch_model.bin")
        (tmp_path / "old" / "config.json").write_text((tmp_path / "config.json").read_text())
        plans = [layouts.planned(opened(folder)) for folder in (tmp_path, tmp_path / "old")]
        for plan in plans:
            assert [matrix.name for matrix in plan.matrices] == ["transformer.wte.weight"]
            assert plan.aliases[0][0] == "transformer.wte.weight"
