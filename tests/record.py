"""A record of all results, to hold a change against that should change none.

    python tests/record.py write FILE       # arrays and verdicts of all quick cases and of one inspection
    python tests/record.py compare FILE     # the same, computed again and compared bit by bit
    python tests/record.py compare FILE --only staircase ridge

Bits depend on the processor and its libraries: a record is kept on the machine that wrote it, and not in the
repository. Every process runs on one thread, so that the number of free cores changes nothing.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
INSPECTION = "an inspection"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "num_hidden_layers": 2,
    "rms_norm_eps": 1e-6,
}


def answers(name):
    """Arrays by path, and verdicts by claim and meaning, of one study's quick case."""
    from iclab.studies import STUDIES

    study = STUDIES[name]
    result = study.run()
    arrays = {
        f"{node.path}/{variable}": array.values
        for node in result.subtree
        for variable, array in node.to_dataset(inherit=False).variables.items()
    }
    verdicts = {
        f"{number} {verdict.claim}": {"value": verdict.value, "word": verdict.word}
        for number, verdict in enumerate(study.verdicts(result))
    }
    return arrays, verdicts


def inspected(_name):
    """The rows of an inspection of random matrices, drawn by NumPy."""
    import numpy as np
    from safetensors.numpy import save_file

    with tempfile.TemporaryDirectory() as made:
        series, out = Path(made, "series"), Path(made, "out")
        rng = np.random.default_rng(0)
        weights = rng.standard_normal((2, 4, 64, 64), dtype=np.float32)
        for step in range(0, 600, 100):
            place = series / f"step-{step}"
            place.mkdir(parents=True)
            parts = {"q_proj": 0, "k_proj": 1, "v_proj": 2, "o_proj": 3}
            tensors = {
                f"model.layers.{layer}.self_attn.{part}.weight": weights[layer, i].copy()
                for layer in range(2)
                for part, i in parts.items()
            }
            save_file(tensors, place / "model.safetensors")
            (place / "config.json").write_text(json.dumps(LLAMA))
            weights = weights + 0.3 * rng.standard_normal(weights.shape, dtype=np.float32)
        command = [sys.executable, "-m", "iclab", "inspect", str(series), "--out", str(out), "--json"]
        said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    said["runs"]["this"]["cost"].pop("seconds")  # an estimate that knows the machine
    rows = [json.dumps(row) for part in ("table", "fans") for row in said[part]]
    return {"rows": np.array(rows)}, {"runs": said["runs"]}


def record(names):
    """Answers of every study of these names, and of the inspection, as they come."""
    jobs = {name: inspected if name == INSPECTION else answers for name in names}
    os.environ.update(ONE_THREAD)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(work, name): name for name, work in jobs.items()}
        for done in as_completed(waiting):
            yield waiting[done], *done.result()


def differences(kept, arrays):
    """What differs between the arrays of a record and those computed again, a line each."""
    import numpy as np

    for path in sorted(kept.keys() | arrays.keys()):
        if path not in kept or path not in arrays:
            yield f"{path}: only in the {'new' if path in arrays else 'old'} results"
            continue
        old, new = kept[path], arrays[path]
        if old.shape != new.shape or old.dtype != new.dtype:
            yield f"{path}: {old.dtype} {old.shape} became {new.dtype} {new.shape}"
        elif old.tobytes() != new.tobytes():
            size = np.max(np.abs(old - new) / np.maximum(np.abs(old), 1e-300)) if old.dtype.kind == "f" else np.nan
            yield f"{path}: {np.sum(old != new)} of {old.size} entries differ, by {size:.2g} relative at most"


def main():
    """Write or compare; the exit code says whether anything differs."""
    import numpy as np

    from iclab.studies import STUDIES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="+", default=[*STUDIES, INSPECTION])
    asked = parser.parse_args()
    if asked.act == "write":
        whole = {name: (arrays, verdicts) for name, arrays, verdicts in record(asked.only)}
        np.savez_compressed(
            asked.file,
            verdicts=json.dumps({name: verdicts for name, (_, verdicts) in whole.items()}),
            **{f"{name}|{path}": array for name, (arrays, _) in whole.items() for path, array in arrays.items()},
        )
        return 0
    kept = np.load(asked.file)
    verdicts_kept = json.loads(str(kept["verdicts"]))
    found = 0
    for name, arrays, verdicts in record(asked.only):
        old = {key.split("|", 1)[1]: kept[key] for key in kept.files if key.startswith(f"{name}|")}
        lines = list(differences(old, arrays))
        if json.dumps(verdicts) != json.dumps(verdicts_kept[name]):
            lines.append(f"verdicts: {verdicts_kept[name]} became {verdicts}")
        print(f"{name}: {'as recorded' if not lines else ''}", *lines, sep="\n    ", flush=True)
        found += len(lines)
    print("nothing differs" if not found else f"{found} differences")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
