"""Forms in which users open a sweep: netCDF and zarr hold the dataset, parquet and CSV one row for each number."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from iclab.files import folder_written_whole, installing, reworded, written_whole
from iclab.numerics import require

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["FORMS", "LARGEST", "bytes_of", "rows", "write"]

FORMS = (".nc", ".zarr", ".parquet", ".csv")
LARGEST = 2e9  # bytes of a netCDF file, which is made in memory


def write(dataset: "xr.DataTree", path: Path) -> None:
    """Write a dataset whole or not at all, in the form that the file's name ends in.

    Raises ValueError for another ending and for a netCDF file above 2 GB, ImportError where a form needs a package
    that is not installed, and OSError where it cannot be written.
    """
    require(path.suffix in FORMS, f"-o must be a file that ends in {', '.join(FORMS)}; got {path}.")
    size = bytes_of(dataset)
    require(
        path.suffix != ".nc" or size < LARGEST,
        f"a netCDF file must hold less than 2 GB; this sweep has {size / 1e9:.1f} GB. Write "
        f"{path.with_suffix('.zarr')}.",
    )
    try:
        if path.suffix == ".zarr":
            _write_zarr(dataset, path)
            return
        with written_whole(path) as file:
            if path.suffix == ".nc":
                content = dataset.to_netcdf(engine="h5netcdf")
                assert content is not None
                file.write_bytes(content)
            elif path.suffix == ".csv":
                _write_csv(dataset, file)
            else:
                _write_parquet(dataset, file)
    except OSError as error:
        raise reworded(error, f"{path} must be writable; writing it failed ({error.strerror or error}).") from error


def bytes_of(dataset: "xr.DataTree") -> int:
    """Bytes of all arrays of a dataset."""
    return sum(node.to_dataset(inherit=False).nbytes for node in dataset.subtree)


def rows(dataset: "xr.DataTree") -> "Iterator[pd.DataFrame]":
    """Tidy tables, one for each variable of an outcome: group, variable, a column for each axis, value."""
    for node in dataset.subtree:
        if node.path in ("/", "/cells"):
            continue
        table = node.to_dataset()
        for name, array in table.data_vars.items():
            frame = array.rename("value").reset_coords(drop=True).to_dataframe().reset_index()
            frame = frame.dropna(subset="value")
            frame.insert(0, "variable", name)
            frame.insert(0, "group", node.path.lstrip("/"))
            yield frame


def _write_csv(dataset: "xr.DataTree", file: Path) -> None:
    columns = _columns(dataset)
    with open(file, "w", encoding="utf-8", newline="") as out:
        for place, frame in enumerate(rows(dataset)):
            frame.reindex(columns=columns).to_csv(out, index=False, header=place == 0, float_format="%.12g")


def _write_parquet(dataset: "xr.DataTree", file: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f"parquet needs pyarrow; got {error}. Install it with {installing('parquet')}.") from error
    columns = _columns(dataset)
    schema = pa.schema([(name, _kind(dataset, name, pa)) for name in columns])
    with pq.ParquetWriter(file, schema) as out:
        for frame in rows(dataset):
            out.write_table(pa.Table.from_pandas(frame.reindex(columns=columns), schema, preserve_index=False))


def _write_zarr(dataset: "xr.DataTree", path: Path) -> None:
    try:
        import zarr  # noqa: F401
    except ImportError as error:
        raise ImportError(f"zarr needs a package; got {error}. Install it with {installing('zarr')}.") from error
    require(not path.exists(), f"{path} must not be there yet; a folder in zarr is never replaced. Remove it first.")
    with folder_written_whole(path) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # text has no type of its own in zarr 3 yet
        dataset.to_zarr(folder, mode="w", consolidated=False)


def _columns(dataset: "xr.DataTree") -> list[str]:
    axes = {str(axis): None for node in dataset.subtree if node.path != "/cells" for axis in node.to_dataset().dims}
    return ["group", "variable", *axes, "value"]


def _kind(dataset: "xr.DataTree", name: str, pa: object) -> object:
    """The type of a column: text, or numbers as float64."""
    if name in ("group", "variable"):
        return pa.string()  # type: ignore[attr-defined]
    text = name in dataset.coords and dataset.coords[name].dtype.kind in "UO"
    return pa.string() if text else pa.float64()  # type: ignore[attr-defined]
