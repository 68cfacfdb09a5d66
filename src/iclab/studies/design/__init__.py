"""Studies of the tasks to pretrain on: their spectrum, their rank, and pools that are chosen."""

from typing import TYPE_CHECKING

from iclab.lazy import door

if TYPE_CHECKING:
    from iclab.studies.design import chosen_pool, rank_transition, task_alignment, task_design

__all__ = ["chosen_pool", "rank_transition", "task_alignment", "task_design"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(__name__, __all__)
