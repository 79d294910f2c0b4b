"""MuJoCo itself: its models, and many simulations of one model on threads.

``mujoco`` and ``gymnasium`` are imported when a model is first loaded.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from borelax.errors import ConfigError

Rows = np.ndarray
"""Positions, then velocities, one row per simulation."""


def mujoco_version() -> str:
    """The installed MuJoCo; another one may move the same model otherwise."""
    try:
        return version("mujoco")
    except PackageNotFoundError as error:
        raise _missing("mujoco") from error


def engine(file: str) -> str:
    """What moves a model: MuJoCo's version, and the model's files by their hash."""
    path, found = model_path(file), f"MuJoCo {mujoco_version()}"
    return f"{found}, {path.name} {_sha(path)[:12]}"


def model_path(file: str) -> Path:
    """A model of Gymnasium's by its file's name, or any other by its path."""
    path = Path(file)
    if not path.is_absolute() and (_gymnasium_assets() / path).exists():
        return _gymnasium_assets() / path
    if not path.exists():
        raise ConfigError(f"There is no MuJoCo model {file}.")
    return path


def load_model(file: str) -> Any:
    """The model of a file; read once, unless the file changes."""
    path = model_path(file)
    return _load(path.resolve(), _sha(path))


def _sha(path: Path) -> str:
    """Of a model's file, and of all that it reads: meshes, textures, other models."""
    found = sha256(path.read_bytes())
    for other in _read_by(path):
        found.update(other.read_bytes())
    return found.hexdigest()


def _read_by(path: Path) -> list[Path]:
    mujoco, path = _import_mujoco(), path.resolve()
    try:
        names = mujoco.mju_getXMLDependencies(str(path))
    except mujoco.FatalError:  # no model, as loading it will say
        return []
    others = {Path(name) for name in names} - {path}
    return sorted(other for other in others if other.is_file())


@lru_cache(maxsize=8)
def _load(path: Path, sha: str) -> Any:
    mujoco = _import_mujoco()
    try:
        with _hushed(mujoco):
            return mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"MuJoCo cannot read the model {path}: {said}") from error


@runtime_checkable
class Simulations(Protocol):
    """Many simulations of one model."""

    def begin(self, rows: Rows) -> None:
        """Reset all of them, and set positions and velocities."""
        ...

    def step(self, controls: np.ndarray, num_steps: int) -> Rows:
        """Move all of them under constant controls; a new array of float32."""
        ...

    def warnings(self) -> np.ndarray:
        """How often each simulation met each of MuJoCo's warnings since it began."""
        ...


def simulations(model: Any, count: int, threads: int) -> Simulations:
    """``count`` simulations of a model; 0 threads: one for each core."""
    threads = threads or _cores()
    if find_spec("mujoco.batch") is None:  # before MuJoCo 3.17
        return ThreadedSimulations(model, count, threads)
    return BatchedSimulations(model, count, threads)


class BatchedSimulations:
    """MuJoCo's own batch: threads and loop in C."""

    def __init__(self, model: Any, count: int, threads: int):
        """Allocate the states."""
        from mujoco.batch import Batch

        self.batch = Batch(model, count, threads)
        self.qpos, self.qvel = self.batch.bind("qpos"), self.batch.bind("qvel")
        self.ctrl, self.counts = self.batch.bind("ctrl"), self.batch.warning[..., 1]

    def begin(self, rows: Rows) -> None:
        """Reset, then write into MuJoCo's state."""
        self.batch.reset(stage=0)
        self.qpos[:], self.qvel[:] = np.split(rows, [self.qpos.shape[1]], axis=1)

    def step(self, controls: np.ndarray, num_steps: int) -> Rows:
        """One call."""
        self.ctrl[:] = controls
        self.batch.step(nstep=num_steps)
        return np.concatenate([self.qpos, self.qvel], axis=1, dtype=np.float32)

    def warnings(self) -> np.ndarray:
        """As the batch counts them."""
        return self.counts


class ThreadedSimulations:
    """Python's threads over one simulation each: the same bits, for older MuJoCos."""

    def __init__(self, model: Any, count: int, threads: int):
        """Allocate the simulations."""
        self.mujoco, self.model = _import_mujoco(), model
        self.all = [self.mujoco.MjData(model) for _ in range(count)]
        self.parts = [slice(i, None, threads) for i in range(threads)]
        self.pool = ThreadPoolExecutor(threads)

    def begin(self, rows: Rows) -> None:
        """One after the other."""
        for data, row in zip(self.all, rows, strict=True):
            self.mujoco.mj_resetData(self.model, data)
            data.qpos[:], data.qvel[:] = np.split(row, [self.model.nq])

    def step(self, controls: np.ndarray, num_steps: int) -> Rows:
        """Each thread steps its part; MuJoCo lets go of Python's lock."""
        rows = np.empty((len(self.all), self.model.nq + self.model.nv), np.float32)
        step = partial(self._step_part, controls, num_steps, rows)
        list(self.pool.map(step, self.parts))
        return rows

    def warnings(self) -> np.ndarray:
        """As each simulation counts them."""
        return np.stack([data.warning.number for data in self.all])

    def _step_part(self, controls, num_steps: int, rows: Rows, part: slice) -> None:
        for data, control, row in zip(
            self.all[part], controls[part], rows[part], strict=True
        ):
            data.ctrl[:] = control
            self.mujoco.mj_step(self.model, data, num_steps)
            row[: self.model.nq], row[self.model.nq :] = data.qpos, data.qvel


def warning_name(number: int) -> str:
    """MuJoCo's own name of a warning, such as BADQACC."""
    return _import_mujoco().mjtWarning(number).name.removeprefix("mjWARN_")


def _import_mujoco() -> Any:
    try:
        return import_module("mujoco")
    except ModuleNotFoundError as error:
        raise _missing("mujoco") from error


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gymnasium_assets() -> Path:
    found = find_spec("gymnasium")
    if found is None or found.origin is None:
        raise _missing("gymnasium")
    return Path(found.origin).parent / "envs" / "mujoco" / "assets"


def _missing(package: str) -> ConfigError:
    return ConfigError(
        f"This domain needs the package {package}, which is not installed: "
        "pip install borelax[mujoco]"
    )


@contextmanager
def _hushed(mujoco: Any) -> Iterator[None]:
    """Keep what MuJoCo has to say about the age of Gymnasium's models to itself."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
