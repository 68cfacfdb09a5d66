"""Sweeps: grids of cases that survive anything, on one machine, on Dask, on SLURM.

The store in immutable parts is the truth; engines are interchangeable, and any number of processes may work on one
folder. `iclab.sweep` computes, `opened` finds a sweep again, `joined` makes one labeled dataset of it.
"""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.sweeps.engines.cluster import Dask as Dask
    from iclab.sweeps.engines.cluster import Jobqueue as Jobqueue
    from iclab.sweeps.engines.local import InProcess as InProcess
    from iclab.sweeps.engines.slurm import Slurm as Slurm
    from iclab.sweeps.grids.axes import Axis as Axis
    from iclab.sweeps.joining.joined import joined as joined
    from iclab.sweeps.progress import Progress as Progress
    from iclab.sweeps.sweeping import Sweep as Sweep
    from iclab.sweeps.sweeping import opened as opened
    from iclab.sweeps.sweeping import sweep as sweep

__all__ = ["Axis", "Dask", "InProcess", "Jobqueue", "Progress", "Slurm", "Sweep", "joined", "opened", "sweep"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__,
        __all__,
        {
            "Axis": "iclab.sweeps.grids.axes",
            "Dask": "iclab.sweeps.engines.cluster",
            "InProcess": "iclab.sweeps.engines.local",
            "Jobqueue": "iclab.sweeps.engines.cluster",
            "Progress": "iclab.sweeps.progress",
            "Slurm": "iclab.sweeps.engines.slurm",
            "Sweep": "iclab.sweeps.sweeping",
            "joined": "iclab.sweeps.joining.joined",
            "opened": "iclab.sweeps.sweeping",
            "sweep": "iclab.sweeps.sweeping",
        },
        unlisted=(
            "around", "body", "claims", "costs", "engines", "failures", "grids", "joining", "limits", "progress",
            "state", "sweeping",
        ),
    )  # fmt: skip
