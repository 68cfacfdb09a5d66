"""Results on disk, found again by the content of their case: immutable parts, and one netCDF file of each case.

    FOLDER/STUDY-KEY.nc              the view of a case, which users open; it is remade from parts at any time
    FOLDER/parts/STUDY-vV/HASH.npz   a part: answers for some seeds of some cases, written once and never changed
    FOLDER/tmp/                      what is being written

Many processes may work on one folder. A part is written under a temporary name, synced and linked to its own, so that
it is whole or not there; a digest of all arrays and of the case stands in it. Files of 0.1.0 are read as parts.
"""

from iclab.store.buffer import Buffer
from iclab.store.folder import Store
from iclab.store.fresh import fresh
from iclab.store.keys import case_key
from iclab.store.view import digest, netcdf, read, write

__all__ = ["Buffer", "Store", "case_key", "digest", "fresh", "netcdf", "read", "write"]
