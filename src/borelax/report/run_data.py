"""What a run's folder holds, as plain values, whether the run is finished or not.

In: a folder. Out: ``RunData``. Nothing is written, and what cannot be read becomes a
sentence in ``problems`` and not an error: a report must not fail a run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from borelax import files, manifest
from borelax.experiment import Experiment
from borelax.run_folder import NAMES, read_experiment

Made = TypeVar("Made")


class Problems(list[str]):
    """Sentences about what could not be made."""

    def attempt(self, what: str, make: Callable[[], Made]) -> Made | None:
        """What ``make`` gives; None and a sentence if it fails, however it does."""
        try:
            return make()
        except Exception as error:  # a picture is never worth a run
            reason = " ".join(str(error).split()) or type(error).__name__
            self.append(f"{what} could not be made: {reason[:400]}")
            return None


@dataclass(frozen=True)
class Curve:
    """One metric of one phase over its updates; NaN where it was not a number."""

    phase: str
    metric: str
    done: np.ndarray
    """Iterations or updates at each point [K]."""
    values: np.ndarray
    """One column per seed [K, S]; phases before the belief have one."""


@dataclass(frozen=True)
class RunData:
    """Everything a report says about a run, but for its rollouts."""

    folder: Path
    name: str
    settings: dict[str, Any]
    """The experiment's JSON; empty if there is none."""
    experiment: Experiment | None
    """The same as a value; None if it cannot be read, or its family is user's code."""
    environment: dict[str, Any]
    results: dict[str, Any] | None
    seconds: dict[str, float]
    states: dict[str, str]
    """Of each phase: done, begun, or not begun."""
    curves: tuple[Curve, ...]
    problems: Problems = field(default_factory=Problems)


def read_run(folder: Path, experiment: Experiment | None = None) -> RunData:
    """Read what is there.

    Args:
        folder: The run's folder.
        experiment: What was run, where files do not say it: families of the user's own.
    """
    problems = Problems()
    settings = problems.attempt("The configuration", lambda: _settings(folder)) or {}
    if experiment is None:
        what = "What needs the experiment as a value"
        experiment = problems.attempt(what, lambda: read_experiment(folder))
    curves = [
        curve
        for phase in NAMES
        for curve in problems.attempt(
            f"Curves of {phase}", lambda phase=phase: read_curves(folder, phase)
        )
        or ()
    ]
    return RunData(
        folder=folder,
        name=folder.resolve().name,
        settings=settings,
        experiment=experiment,
        environment=_optional(folder / "environment.json", problems),
        results=_optional(folder / "results.json", problems) or None,
        seconds=_optional(folder / "status.json", problems).get("seconds", {}),
        states={phase: _state(folder / name) for phase, name in NAMES.items()},
        curves=tuple(curves),
        problems=problems,
    )


def read_curves(folder: Path, phase: str) -> list[Curve]:
    """Every metric that a phase has logged, in the order of their names."""
    path = folder / NAMES[phase] / "metrics.jsonl"
    if not path.exists():
        return []
    rows = files.read_lines(path)
    names = sorted({name for row in rows for name in row} - {"done"})
    return [_curve(phase, name, [r for r in rows if name in r]) for name in names]


def thinned(curve: Curve, most: int = 300) -> Curve:
    """The curve with at most ``most`` points, each the mean of its neighbours."""
    size = -(-len(curve.done) // most)
    if size <= 1:
        return curve
    starts = np.arange(0, len(curve.done), size)
    known = np.isfinite(curve.values)
    total = np.add.reduceat(np.where(known, curve.values, 0.0), starts, axis=0)
    count = np.add.reduceat(known.astype(float), starts, axis=0)
    values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    ends = np.append(starts[1:], len(curve.done)) - 1
    return Curve(curve.phase, curve.metric, curve.done[ends], values)


def _curve(phase: str, name: str, rows: list[dict[str, Any]]) -> Curve:
    done = np.array([row["done"] for row in rows], dtype=float)
    values = [np.atleast_1d(np.array(row[name], dtype=float)) for row in rows]
    width = max(len(value) for value in values)
    table = np.full((len(rows), width), np.nan)
    for row, value in zip(table, values, strict=True):
        row[: len(value)] = value
    return Curve(phase, name, done, np.where(np.isfinite(table), table, np.nan))


def _settings(folder: Path) -> dict[str, Any]:
    content = files.read_json(folder / "experiment.json")
    return {name: value for name, value in content.items() if name != "sha256"}


def _optional(path: Path, problems: Problems) -> dict[str, Any]:
    if not path.exists():
        return {}
    return (
        problems.attempt(f"What {path.name} says", lambda: files.read_json(path)) or {}
    )


def _state(folder: Path) -> str:
    if manifest.is_sealed(folder):
        return "done"
    return "begun" if folder.is_dir() and any(folder.iterdir()) else "not begun"
