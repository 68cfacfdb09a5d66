"""The document of an inspection: all but its table and its singular values, as plain values for JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from iclab import __version__
from iclab.inspection.behavior import Joined, behavior_changes
from iclab.inspection.tables import Runs, defined, json_numbers, whose
from iclab.spectra.observation.dynamics import ChangePoint, SpectralDynamics
from iclab.spectra.observation.surveying import Survey

SCHEMA = 1


def document(
    runs: Runs, surveys: Mapping[str, Survey], joined: Joined | None, *, paths: Mapping[str, Path] | None = None
) -> dict[str, Any]:
    """Integrity, what was skipped, changes and behavior; `paths` only where they are asked for."""
    first = next(iter(runs.values()))
    said = {
        "schema": SCHEMA,
        "iclab": __version__,
        "runs": {name: _run(dynamics, surveys[name]) for name, dynamics in runs.items()},
        "behavior": None if joined is None else _behavior(joined, first),
    }
    if paths is not None:
        said["paths"] = {name: str(path.resolve()) for name, path in paths.items()}
    return said


def _run(dynamics: SpectralDynamics, survey: Survey) -> dict[str, Any]:
    return {
        "family": dynamics.family,
        "steps": dynamics.steps.tolist(),
        "checkpoints": list(dynamics.labels),
        "samples_per_step": dynamics.samples_per_step,
        "leading": dynamics.leading,
        "cost": {key: defined(value) for key, value in asdict(survey.cost).items()},
        "broken": dynamics.integrity.broken,
        "integrity": [asdict(finding) for finding in dynamics.integrity.findings],
        "skipped": [asdict(one) for one in dynamics.skipped],
        "notes": list(dynamics.notes),
        "changes": [_change_point(point) for point in dynamics.changes],
        "curves_tested": dynamics.tested,
        "uncertainty": dynamics.uncertainty,
    }


def _change_point(point: ChangePoint) -> dict[str, Any]:
    found = {key: defined(value) for key, value in asdict(point.change).items() if key not in ("called", "reason")}
    return {**whose(point.series), "measure": point.measure, **found}


def _behavior(joined: Joined, dynamics: SpectralDynamics) -> dict[str, Any]:
    changes = behavior_changes(joined, dynamics.steps)
    return {
        "columns": {name: json_numbers(values) for name, values in joined.columns.items()},
        "changes": {name: defined(one.step) for name, one in changes.items() if one.called},
        "steps_without_checkpoint": list(joined.unmatched),
        "checkpoints_without_row": list(joined.absent),
    }
