"""Untrusted zip archives: sizes are checked before anything is unpacked."""

import lzma
import struct
import zipfile
import zlib
from pathlib import Path

from iclab.numerics import require
from iclab.spectra.checkpoints.names import quoted

__all__ = ["BROKEN", "MEMORY", "RATIO", "checked_members", "is_zip"]

RATIO = 100  # unpacked size over packed size of one member
BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
    RuntimeError, ValueError, OSError, EOFError, KeyError, TypeError,
)  # fmt: skip
"""Errors that reading a damaged zip can raise."""
MEMORY = 2**34  # bytes of all members when unpacked


def is_zip(path: Path) -> bool:
    """True where a file begins as zip files do."""
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def checked_members(path: Path, *, memory_limit: int = MEMORY) -> list[zipfile.ZipInfo]:
    """Members of the zip, by its directory.

    Raises ValueError for a broken zip, a member that unpacks to more than 100 times its size and for members
    that take more than the file itself and more than `memory_limit`.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except BROKEN as error:
        raise ValueError(
            f"{quoted(path.name)} must be a whole zip file; it is not: {type(error).__name__}."
        ) from None
    for member in members:
        require(
            member.file_size <= RATIO * max(member.compress_size, 1),
            f"{quoted(member.filename)} in {quoted(path.name)} would unpack from {member.compress_size:,} to "
            f"{member.file_size:,} bytes, more than {RATIO} times. Refused as a zip bomb.",
        )
    total, size = sum(member.file_size for member in members), path.stat().st_size
    require(
        total <= max(size, memory_limit),
        f"{quoted(path.name)} would unpack to {total:,} bytes, above the limit of {memory_limit:,}. Unpack it.",
    )
    return members
