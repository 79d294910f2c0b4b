"""A run's folder: phases that are done are read, phases that are not are worked on.

A phase is a function of its settings and its inputs, known by their hashes. If its
output is there and was made from the same, it is read; if it was interrupted, it goes
on; if it was made from something else, that is an error which shows the difference.
"""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax

import borelax
from borelax import store
from borelax.errors import ConfigError, DataError
from borelax.experiment import Experiment, differences
from borelax.journal import FolderJournal
from borelax.progress import ProgressDisplay

Output = TypeVar("Output")

NAMES = {
    "collect": "1-logs",
    "relabel": "2-relabelled",
    "belief": "3-belief",
    "meta": "4-meta",
    "evaluate": "5-evaluate",
}
"""Folder of each phase."""

SETTINGS = {
    "collect": ("family", "seed", "collect"),
    "relabel": ("relabel",),
    "belief": ("num_seeds", "belief"),
    "meta": ("num_seeds", "exact_belief", "meta"),
    "evaluate": ("evaluate",),
}
"""The parts of an experiment that each phase depends on, beside its inputs."""


@dataclass(frozen=True)
class Phase(Generic[Output]):
    """How to make a phase's output, and how to write and read it."""

    name: str
    inputs: tuple[str, ...]
    """Phases whose outputs this one reads."""
    make: Callable[[FolderJournal], Output]
    write: Callable[[Path, Output], list[str]]
    """Writes files into a folder and names them."""
    read: Callable[[Path], Output]


class RunFolder:
    """One folder with one experiment."""

    def __init__(
        self,
        path: Path,
        experiment: Experiment,
        display: ProgressDisplay,
        seconds_between_saves: float = 30.0,
    ):
        """Open or make the folder; refuses a changed configuration of begun phases."""
        self.path, self.display = path, display
        self.seconds_between_saves = seconds_between_saves
        self.experiment = experiment.to_json()
        for phase in NAMES:
            begun = _begun_with(self.folder(phase))
            if begun is not None:
                _refuse_change(self.folder(phase), begun["settings"], self._of(phase))
        store.write_json(path / "experiment.json", self.experiment)
        store.write_json(path / "environment.json", environment())

    def folder(self, phase: str) -> Path:
        """The folder of a phase."""
        return self.path / NAMES[phase]

    def done(self, phase: str) -> bool:
        """Whether a phase's output is complete."""
        return store.is_sealed(self.folder(phase))

    def require_done(self, phases: tuple[str, ...]) -> None:
        """Refuse to go on before the named phases are complete."""
        for phase in phases:
            self._identity(phase)

    def run(self, phase: "Phase[Output]") -> Output:
        """Read the phase's output, or make it."""
        folder = self.folder(phase.name)
        about = {
            "settings": self._of(phase.name),
            "inputs": {name: self._identity(name) for name in phase.inputs},
        }
        begun = _begun_with(folder)
        if begun is not None:
            _refuse_change(folder, begun, about)
        if self.done(phase.name):
            store.open_sealed(folder)
            return phase.read(folder)
        store.write_json(folder / "about.json", about)
        started = time.monotonic()
        journal = FolderJournal(
            folder, phase.name, self.display, self.seconds_between_saves
        )
        try:
            output = phase.make(journal)
            store.seal(folder, phase.write(folder, output), about)
        finally:
            self._add_seconds(phase.name, time.monotonic() - started)
        store.delete_checkpoint(folder / "checkpoints")
        return output

    def adopt(self, phase: str, other: Path) -> None:
        """Use another run's output of a phase; its settings must be this run's."""
        if self.done(phase):
            return
        theirs = other / NAMES[phase]
        about = store.open_sealed(theirs)
        _refuse_change(theirs, about["settings"], self._of(phase))
        store.copy_sealed(theirs, self.folder(phase))

    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds spent in each phase, over all starts of the run."""
        path = self.path / "status.json"
        if not path.exists():
            return {}
        return store.read_json(path)["seconds"]

    def _of(self, phase: str) -> dict[str, Any]:
        """The settings that decide a phase's output, beside its inputs."""
        return {part: self.experiment[part] for part in SETTINGS[phase]}

    def _identity(self, phase: str) -> str:
        if not self.done(phase):
            raise DataError(
                f"{self.folder(phase)} is not complete: run "
                f"`borelax {phase} {self.path}` first."
            )
        return store.identity(self.folder(phase))

    def _add_seconds(self, phase: str, seconds: float) -> None:
        spent = self.seconds()
        spent[phase] = round(spent.get(phase, 0.0) + seconds, 3)
        store.write_json(self.path / "status.json", {"seconds": spent})


def environment() -> dict[str, Any]:
    """Versions and devices, for the record."""
    return {
        "borelax": borelax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "devices": [device.device_kind for device in jax.devices()],
    }


def _begun_with(folder: Path) -> dict[str, Any] | None:
    """Settings and inputs of a phase that was begun earlier."""
    path = folder / "about.json"
    return store.read_json(path) if path.exists() else None


def _refuse_change(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    lines = list(differences(old, new))
    if lines:
        raise ConfigError(
            f"{folder} was begun with other settings ({'; '.join(lines)}). "
            "Use the old settings, or another --out folder."
        )
