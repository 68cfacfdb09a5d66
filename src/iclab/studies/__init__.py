"""Studies: each puts one question to theory and simulation. `STUDIES` has them by name, and each is an attribute."""

from typing import TYPE_CHECKING

from iclab.lazy import door
from iclab.studies.registry import GROUPS, HOMES, STUDIES

if TYPE_CHECKING:
    from iclab.studies import depth as depth
    from iclab.studies import design as design
    from iclab.studies import dynamics as dynamics
    from iclab.studies import modes as modes
    from iclab.studies import networks as networks
    from iclab.studies import pretraining as pretraining
    from iclab.studies import related as related
    from iclab.studies import strategies as strategies
    from iclab.studies.depth.depth_free import STUDY as depth_free
    from iclab.studies.depth.depth_landscape import STUDY as depth_landscape
    from iclab.studies.depth.depth_noise import STUDY as depth_noise
    from iclab.studies.depth.depth_plateau import STUDY as depth_plateau
    from iclab.studies.depth.depth_softmax import STUDY as depth_softmax
    from iclab.studies.depth.depth_spectrum import STUDY as depth_spectrum
    from iclab.studies.depth.depth_staircase import STUDY as depth_staircase
    from iclab.studies.design.chosen_pool import STUDY as chosen_pool
    from iclab.studies.design.rank_transition import STUDY as rank_transition
    from iclab.studies.design.task_alignment import STUDY as task_alignment
    from iclab.studies.design.task_design import STUDY as task_design
    from iclab.studies.dynamics.abrupt_drop import STUDY as abrupt_drop
    from iclab.studies.dynamics.context_lengths import STUDY as context_lengths
    from iclab.studies.dynamics.drop_times import STUDY as drop_times
    from iclab.studies.dynamics.fixed_points import STUDY as fixed_points
    from iclab.studies.dynamics.in_weight import STUDY as in_weight
    from iclab.studies.dynamics.initial_scale import STUDY as initial_scale
    from iclab.studies.dynamics.principal_components import STUDY as principal_components
    from iclab.studies.dynamics.rank_staircase import STUDY as rank_staircase
    from iclab.studies.dynamics.softmax_dynamics import STUDY as softmax_dynamics
    from iclab.studies.dynamics.staircase import STUDY as staircase
    from iclab.studies.dynamics.white_drop import STUDY as white_drop
    from iclab.studies.modes.alignment import STUDY as alignment
    from iclab.studies.modes.conservation import STUDY as conservation
    from iclab.studies.modes.finite_context import STUDY as finite_context
    from iclab.studies.modes.mode_staging import STUDY as mode_staging
    from iclab.studies.modes.phase_portrait import STUDY as phase_portrait
    from iclab.studies.modes.sgd_noise import STUDY as sgd_noise
    from iclab.studies.networks.grokking import STUDY as grokking
    from iclab.studies.networks.icl_emergence import STUDY as icl_emergence
    from iclab.studies.networks.regression_training import STUDY as regression_training
    from iclab.studies.networks.transformer_double_descent import STUDY as transformer_double_descent
    from iclab.studies.networks.transformer_task_diversity import STUDY as transformer_task_diversity
    from iclab.studies.pretraining.context_length import STUDY as context_length
    from iclab.studies.pretraining.double_descent import STUDY as double_descent
    from iclab.studies.pretraining.finite_size import STUDY as finite_size
    from iclab.studies.pretraining.forecast import STUDY as forecast
    from iclab.studies.pretraining.non_monotone_context import STUDY as non_monotone_context
    from iclab.studies.pretraining.ridge import STUDY as ridge
    from iclab.studies.pretraining.structured import STUDY as structured
    from iclab.studies.pretraining.task_diversity import STUDY as task_diversity
    from iclab.studies.related.low_rank_tasks import STUDY as low_rank_tasks
    from iclab.studies.related.pattern_selection import STUDY as pattern_selection
    from iclab.studies.related.rank_robustness import STUDY as rank_robustness
    from iclab.studies.related.separate_tokens import STUDY as separate_tokens
    from iclab.studies.related.softmax_window import STUDY as softmax_window
    from iclab.studies.strategies.markov_stages import STUDY as markov_stages
    from iclab.studies.strategies.strategy_gap import STUDY as strategy_gap

__all__ = [
    "STUDIES", "abrupt_drop", "alignment", "chosen_pool", "conservation", "context_length", "context_lengths",
    "depth", "depth_free", "depth_landscape", "depth_noise", "depth_plateau", "depth_softmax", "depth_spectrum",
    "depth_staircase", "design", "double_descent", "drop_times", "dynamics", "finite_context", "finite_size",
    "fixed_points", "forecast", "grokking", "icl_emergence", "in_weight", "initial_scale", "low_rank_tasks",
    "markov_stages", "mode_staging", "modes", "networks", "non_monotone_context", "pattern_selection",
    "phase_portrait", "pretraining", "principal_components", "rank_robustness", "rank_staircase",
    "rank_transition", "regression_training", "related", "ridge", "separate_tokens", "sgd_noise",
    "softmax_dynamics", "softmax_window", "staircase", "strategies", "strategy_gap", "structured",
    "task_alignment", "task_design", "task_diversity", "transformer_double_descent", "transformer_task_diversity",
    "white_drop",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = door(
        __name__, ["STUDIES", *GROUPS, *HOMES], {name: f"{home}:STUDY" for name, home in HOMES.items()}
    )
