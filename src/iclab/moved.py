"""Public paths of version 0.1.0 that have moved: importing one raises an error that names its successor."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

__all__ = ["MOVED", "MovedFinder", "advice", "install", "refusal"]

MOVED = {
    "agreement": "claims (verdicts) and iclab.numerics.curves (reading a loss curve)",
    "claims.Limit": "claims (Tends)",
    "claims.Vanishes": "claims (Tends)",
    "claims.Within": "claims (Agrees)",
    "claims.WithinErrors": "claims (Agrees)",
    "cli": "commands.main",
    "contract": "testing",
    "conventions": "published",
    "crossings": "numerics",
    "error_curves": "outcomes (labeled)",
    "inspection.command": "commands.inspect",
    "inspection.summary": "commands.summary",
    "legends": "figures.legends",
    "minima": "numerics",
    "network_claims": "claims",
    "outcomes.DropCounts": "outcomes (labeled arrays)",
    "outcomes.HeadCurves": "outcomes (labeled arrays)",
    "outcomes.Levels": "outcomes (labeled arrays)",
    "outcomes.LossSample": "outcomes (labeled arrays)",
    "outcomes.Measured": "outcomes (labeled arrays)",
    "outcomes.SearchEnds": "outcomes (labeled arrays)",
    "outcomes.Table": "outcomes (labeled arrays)",
    "outcomes.ValueCurves": "outcomes (labeled arrays)",
    "outcomes.answers": "outcomes (labeled arrays)",
    "outcomes.half_drops": "outcomes (labeled arrays)",
    "outcomes.labels": "outcomes (labeled arrays)",
    "outcomes.losses": "outcomes (labeled arrays)",
    "plan": "commands.plan",
    "plan_figures": "planning.figures",
    "plan_flags": "planning.flags",
    "pretraining_claims": "claims",
    "questions": "planning.questions",
    "readouts": "problem (laws of tasks) and iclab.problem.readouts (exact errors)",
    "simulation.bands": "simulation.pretraining.bands",
    "simulation.baselines": "simulation.pretraining.baselines",
    "simulation.contexts": "simulation.linear.contexts",
    "simulation.descent": "simulation.linear.descent",
    "simulation.diagonal_fit": "simulation.linear.two_factor",
    "simulation.estimators": "simulation.pretraining.estimators",
    "simulation.loop": "simulation.linear.loop",
    "simulation.low_rank": "simulation.related.low_rank",
    "simulation.mixtures": "simulation.linear.mixtures",
    "simulation.networks.places": "simulation.networks.row_layout",
    "simulation.one_pass": "simulation.linear.one_pass",
    "simulation.patterns": "simulation.related.patterns",
    "simulation.predictions": "simulation.linear.predictions",
    "simulation.pretraining.plan": "simulation.pretraining (chosen_route)",
    "simulation.pretraining_sequences": "simulation.pretraining.sequences",
    "simulation.regression_runs": "simulation.networks.regression_runs",
    "simulation.ridge_costs": "simulation.pretraining.costs",
    "simulation.ridge_routes": "simulation.pretraining.routes",
    "simulation.routes": "simulation.linear.routes",
    "simulation.scalar_sgd": "simulation.linear.scalar_sgd",
    "simulation.snapshots": "simulation.networks.snapshots",
    "simulation.softmax": "simulation.linear.softmax",
    "simulation.softmax_windows": "simulation.related.softmax_windows",
    "simulation.stationary": "simulation.linear.stationary",
    "simulation.statistics": "simulation.linear.statistics",
    "simulation.summaries": "simulation.linear.summaries",
    "simulation.token_networks": "simulation.related.token_networks",
    "simulation.transformer_sgd": "simulation.linear.transformer_sgd",
    "spectra.balance": "spectra.circuits.balance",
    "spectra.changes": "spectra.measures.changes",
    "spectra.conserved": "spectra.observation.conserved",
    "spectra.cost": "spectra.observation.cost",
    "spectra.dynamics": "spectra.observation.dynamics",
    "spectra.eigen": "spectra.measures.eigen",
    "spectra.factors": "spectra.measures.factors",
    "spectra.heads": "spectra.circuits.grouping",
    "spectra.integrity": "spectra.observation.integrity",
    "spectra.layouts.plan": "spectra.layouts.plans",
    "spectra.measures.Balance": "spectra.circuits",
    "spectra.measures.Imbalance": "spectra.circuits",
    "spectra.measures.balance": "spectra.circuits",
    "spectra.measures.imbalance": "spectra.circuits",
    "spectra.names": "spectra.checkpoints.names",
    "spectra.null": "spectra.measures.null",
    "spectra.observe": "spectra.observation",
    "spectra.ranks": "spectra.measures.ranks",
    "spectra.readings": "spectra.observation.measurements",
    "spectra.recording": "spectra.observation.recording",
    "spectra.rounding": "spectra.measures.rounding",
    "spectra.snapshots": "spectra.observation.states",
    "spectra.spectrum": "spectra.measures.spectrum",
    "spectra.subspaces": "spectra.measures.subspaces",
    "spectra.survey": "spectra.observation.surveying",
    "spectra.tensors": "spectra.checkpoints.tensors",
    "spectra.trajectories": "spectra.observation.trajectories",
    "spectra.wanted": "spectra.observation.selection",
    "spectra.watch": "spectra.observation",
    "spectra.weights": "spectra.circuits.weights",
    "stages": "numerics.curves",
    "studies.abrupt_drop": "studies.dynamics.abrupt_drop",
    "studies.alignment": "studies.modes.alignment",
    "studies.conservation": "studies.modes.conservation",
    "studies.context_length": "studies.pretraining.context_length",
    "studies.context_lengths": "studies.dynamics.context_lengths",
    "studies.double_descent": "studies.pretraining.double_descent",
    "studies.drop_times": "studies.dynamics.drop_times",
    "studies.finite_context": "studies.modes.finite_context",
    "studies.finite_size": "studies.pretraining.finite_size",
    "studies.fixed_points": "studies.dynamics.fixed_points",
    "studies.forecast": "studies.pretraining.forecast",
    "studies.grokking": "studies.networks.grokking",
    "studies.icl_emergence": "studies.networks.icl_emergence",
    "studies.in_weight": "studies.dynamics.in_weight",
    "studies.initial_scale": "studies.dynamics.initial_scale",
    "studies.low_rank_tasks": "studies.related.low_rank_tasks",
    "studies.mode_staging": "studies.modes.mode_staging",
    "studies.network_spectra": "studies.networks.spectra",
    "studies.non_monotone_context": "studies.pretraining.non_monotone_context",
    "studies.pattern_selection": "studies.related.pattern_selection",
    "studies.phase_portrait": "studies.modes.phase_portrait",
    "studies.pretraining_runs": "studies.pretraining.runs",
    "studies.principal_components": "studies.dynamics.principal_components",
    "studies.rank_robustness": "studies.related.rank_robustness",
    "studies.rank_staircase": "studies.dynamics.rank_staircase",
    "studies.regression_networks": "outcomes (labeled)",
    "studies.regression_training": "studies.networks.regression_training",
    "studies.ridge": "studies.pretraining.ridge",
    "studies.separate_tokens": "studies.related.separate_tokens",
    "studies.sgd_noise": "studies.modes.sgd_noise",
    "studies.softmax_dynamics": "studies.dynamics.softmax_dynamics",
    "studies.softmax_window": "studies.related.softmax_window",
    "studies.staircase": "studies.dynamics.staircase",
    "studies.structured": "studies.pretraining.structured",
    "studies.task_diversity": "studies.pretraining.task_diversity",
    "studies.training": "studies.dynamics.training",
    "studies.transformer_double_descent": "studies.networks.transformer_double_descent",
    "studies.transformer_task_diversity": "studies.networks.transformer_task_diversity",
    "studies.white_drop": "studies.dynamics.white_drop",
    "studies.windows": "studies.related.softmax_window (labeled outcomes)",
    "terminal": "commands.terminal",
    "theory.aligned": "theory.dynamics.aligned",
    "theory.attention_shares": "theory.softmax.attention_weights",
    "theory.closed_forms": "theory.dynamics.closed_forms",
    "theory.commuting": "theory.dynamics.commuting",
    "theory.conservation": "theory.dynamics.conservation",
    "theory.context_estimators": "theory.estimators.one_context",
    "theory.diagonal_tasks": "theory.modes.diagonal_tasks",
    "theory.equivalent": "theory.pretraining.equivalent",
    "theory.escape": "theory.dynamics.escape",
    "theory.fixed_points": "theory.dynamics.fixed_points",
    "theory.flows": "theory.dynamics.flows",
    "theory.frozen_head": "theory.dynamics.frozen_head",
    "theory.gradient_steps": "theory.estimators.gradient_steps",
    "theory.heads": "theory.dynamics.heads",
    "theory.leverage": "theory.pretraining.leverage",
    "theory.mixture": "theory.tokens.mixture",
    "theory.modes.head_flow": "theory.modes (single_head_flow)",
    "theory.modes.head_limits": "theory.modes (single_head_limits)",
    "theory.modes.head_loss": "theory.modes (single_head_loss)",
    "theory.modes_exact": "theory.modes.exact",
    "theory.modes_head": "theory.modes.single_head",
    "theory.modes_matrix": "theory.modes.matrix",
    "theory.modes_stability": "theory.modes.stability",
    "theory.multi_output": "theory.dynamics.multi_output",
    "theory.parity_heads": "theory.related.parity_heads",
    "theory.pattern_matching": "theory.related.pattern_matching",
    "theory.rank_limited": "theory.related.rank_limited",
    "theory.resolvent": "theory.pretraining.resolvent",
    "theory.response": "theory.pretraining.response",
    "theory.sgd_dense": "theory.sgd.dense",
    "theory.sgd_diagonal": "theory.sgd.diagonal",
    "theory.sgd_moments": "theory.sgd.moments",
    "theory.sgd_small_noise": "theory.sgd.small_noise",
    "theory.softmax_laws": "theory.softmax.laws",
    "theory.softmax_window": "theory.softmax.window",
    "theory.sphere_kernels": "theory.softmax.sphere_kernels",
    "theory.stability": "theory.dynamics.stability",
    "theory.structured": "theory.pretraining.structured",
    "theory.token_mixing": "theory.tokens.mixing",
    "theory.token_moments": "theory.tokens.moments",
    "training_claims": "claims",
    "workers": "commands.workers",
}
"""Old paths and new ones, below `iclab`."""


def advice(path: str) -> str:
    """The successor of a path of 0.1.0, as the end of an error message; empty for any other path."""
    old = path.removeprefix("iclab.")
    return f"; {path} moved to iclab.{MOVED[old]}" if old in MOVED else ""


class MovedFinder(MetaPathFinder):
    """The last import finder: it finds nothing, and names the successor of a module that moved."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """No module. Raises ModuleNotFoundError, with the successor, for a path of 0.1.0."""
        if successor := advice(fullname):
            # without its name, which `from package import module` takes for a module that is merely absent
            raise ModuleNotFoundError(f"no module named {fullname!r}{successor}")
        return None


def install() -> None:
    """Add the finder of moved paths after all others, once in a process."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedFinder())


def refusal(package: str) -> Callable[[str], NoReturn]:
    """`__getattr__` of a package whose names are all loaded: an error, with the successor of a path that moved."""

    def refused(name: str) -> NoReturn:
        raise AttributeError(f"module {package!r} has no attribute {name!r}{advice(f'{package}.{name}')}")

    return refused
