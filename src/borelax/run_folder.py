"""A run's folder: phases that are done are read, phases that are not are worked on.

A phase is a function of its settings and its inputs, known by their hashes. If its
output is there and was made from the same, it is read; if it was interrupted, it goes
on; if it was made from something else, that is an error which shows the difference.
"""

import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

import jax

import borelax
from borelax import files, manifest, store
from borelax.errors import ConfigError, DataError
from borelax.experiment import Experiment, differences, refuse_own_family
from borelax.journal import FolderJournal
from borelax.locks import alone_in
from borelax.progress import ProgressDisplay
from borelax.simulate.of_family import engine_of

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

_ABOUT = "about.json"
"""What a phase is made from; written before anything else of it."""
_RECORDED = ("numpy", "equinox", "gymnasium")
"""Further packages whose versions are recorded, where they are installed."""
_REDO = "Use those, choose another --out folder, or delete this one to redo the phase."


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
        self.engine = engine_of(experiment.family)
        for phase in NAMES:
            folder = self.folder(phase)
            begun = _begun_with(folder)
            if begun is not None:
                _refuse_change(folder, begun["settings"], self._of(phase), _REDO)
        self.seconds()  # damage is worth knowing before hours of work
        files.write_hashed_json(path / "experiment.json", self.experiment)
        engine = {} if self.engine is None else {"engine": self.engine}
        files.write_json(path / "environment.json", environment() | engine)

    def folder(self, phase: str) -> Path:
        """The folder of a phase."""
        return self.path / NAMES[phase]

    def done(self, phase: str) -> bool:
        """Whether a phase's output is complete."""
        return manifest.is_sealed(self.folder(phase))

    def run(self, phase: "Phase[Output]") -> Output:
        """Read the phase's output, or make it."""
        folder = self.folder(phase.name)
        about = {
            "settings": self._of(phase.name),
            "inputs": {n: manifest.identity(self.folder(n)) for n in phase.inputs},
        }
        begun = _begun_with(folder)
        if begun is not None:
            _refuse_change(folder, begun, about, _REDO)
        if self.done(phase.name):
            manifest.open_sealed(folder)
            output = phase.read(folder)
        else:
            with alone_in(folder):
                output = self._make(phase, about)
        store.delete_checkpoint(folder / "checkpoints")
        return output

    def adopt(self, phase: str, other: Path) -> None:
        """Use another run's output of a phase, of this run's settings and inputs."""
        if self.done(phase):
            return
        theirs = other / NAMES[phase]
        about = manifest.open_sealed(theirs, verify=False)
        remedy = "Use the settings they were made with."
        _refuse_change(theirs, about["settings"], self._of(phase), remedy)
        inputs = {n: manifest.identity(self.folder(n)) for n in about["inputs"]}
        _refuse_change(theirs, about["inputs"], inputs, "Adopt those as well.")
        manifest.copy_sealed(theirs, self.folder(phase))

    def seconds(self) -> dict[str, float]:
        """Wall-clock seconds spent in each phase, over all starts of the run."""
        path = self.path / "status.json"
        if not files.exists(path):
            return {}
        remedy = "Delete it; only the seconds spent so far are lost with it."
        return files.read_hashed_json(path, remedy)["seconds"]

    def _of(self, phase: str) -> dict[str, Any]:
        """The settings that decide a phase's output, beside its inputs."""
        settings = {part: self.experiment[part] for part in SETTINGS[phase]}
        if phase == "collect" and self.engine is not None:
            settings["engine"] = self.engine  # another one would make other logs
        return settings

    def _make(self, phase: "Phase[Output]", about: dict[str, Any]) -> Output:
        """Work on a phase, from its checkpoint if it has one, and seal its folder."""
        folder, started = self.folder(phase.name), time.monotonic()
        files.write_hashed_json(folder / _ABOUT, about)
        journal = FolderJournal(
            folder, phase.name, self.display, self.seconds_between_saves
        )
        try:
            output = phase.make(journal)
            names = [*phase.write(folder, output), *journal.files(), _ABOUT]
            manifest.seal(folder, names, about)
        finally:
            self._add_seconds(phase.name, time.monotonic() - started)
        return output

    def _add_seconds(self, phase: str, seconds: float) -> None:
        spent = self.seconds()
        spent[phase] = round(spent.get(phase, 0.0) + seconds, 3)
        files.write_hashed_json(self.path / "status.json", {"seconds": spent})


def read_experiment(path: Path) -> Experiment:
    """The experiment of the run in the folder ``path``."""
    file = path / "experiment.json"
    command = f"`borelax run DOMAIN --out {path}`"
    if not files.exists(file):
        raise DataError(
            f"{path} is not the folder of a run: {file} is missing. Start one, or give "
            f"its settings again, with {command}."
        )
    remedy = f"Give the run's settings again with {command}, which writes it anew."
    content = files.read_hashed_json(file, remedy)
    refuse_own_family(content)
    try:
        return Experiment.from_json(content)
    except ConfigError as error:
        raise DataError(
            f"{file} comes from another version. {error} {remedy}"
        ) from error


def require_done(path: Path, phases: Iterable[str], domain: str) -> None:
    """Refuse to go on in ``path`` before the named phases are complete."""
    for phase in phases:
        if not manifest.is_sealed(path / NAMES[phase]):
            target = f"{domain} --out {path}" if phase == "collect" else path
            raise DataError(
                f"{path / NAMES[phase]} is not complete: run "
                f"`borelax {phase} {target}` first."
            )


def environment() -> dict[str, Any]:
    """Versions and devices, for the record."""
    return {
        "borelax": borelax.__version__,
        "jax": jax.__version__,
        **{name: version(name) for name in _RECORDED if find_spec(name)},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "devices": [device.device_kind for device in jax.devices()],
    }


def _begun_with(folder: Path) -> dict[str, Any] | None:
    """Settings and inputs of a phase that was begun earlier."""
    if manifest.is_sealed(folder):
        return manifest.open_sealed(folder, verify=False)
    remedy = f"Delete the folder {folder} to start the phase over."
    if files.exists(folder / _ABOUT):
        return files.read_hashed_json(folder / _ABOUT, remedy)
    if store.has_checkpoint(folder / "checkpoints"):
        raise DataError(
            f"{folder / _ABOUT} is missing, so what the checkpoint beside it was made "
            f"from is not known. {remedy}"
        )
    return None


def _refuse_change(
    folder: Path, old: dict[str, Any], new: dict[str, Any], remedy: str
) -> None:
    lines = list(differences(old, new))
    if lines:
        raise ConfigError(
            f"{folder} was begun with other settings ({'; '.join(lines)}). {remedy}"
        )
