"""Logs wherever they come from: the folder of a run, a folder of shards, one file."""

from pathlib import Path

import jax.random as jr

from borelax import files, manifest
from borelax.ambiguity.diagnose import Material
from borelax.errors import DataError
from borelax.logs import TaskLogs, read_episodes, read_logs, read_shards
from borelax.run_folder import NAMES, read_experiment, require_done
from borelax.simulate.of_family import simulator_of
from borelax.tasks.family import draw_tasks, name_of
from borelax.types import Episodes


def open_logs(path: Path) -> Material:
    """Read logs, and all else that is known of their tasks.

    Args:
        path: The folder of a run, with tasks, policies and a simulator; a folder that
            ``write_logs`` filled, or an ``.npz`` file of [N, R, E, …] arrays, with
            steps alone.
    """
    if path.suffix == ".npz":
        return _of_steps(path, read_episodes(path))
    if path.is_dir() and files.exists(path / "experiment.json"):
        return _of_run(path)
    if path.is_dir() and files.exists(path / "rollouts-000.npz"):
        return _of_steps(path, read_shards(path))
    raise DataError(
        f"{path} holds no logs: give the folder of a run, a folder with "
        "rollouts-000.npz, or an .npz file with obs, action and reward."
    )


def _of_steps(path: Path, episodes: Episodes) -> Material:
    if episodes.reward.ndim != 4:
        raise DataError(
            f"{path} has reward {list(episodes.reward.shape)}, which must be "
            "[tasks, rollouts, episodes, steps]."
        )
    return Material(TaskLogs(None, episodes))


def _of_run(path: Path) -> Material:
    experiment = read_experiment(path)
    family, collect = experiment.family, experiment.collect
    require_done(path, ("collect",), name_of(family))
    folder = path / NAMES["collect"]
    manifest.open_sealed(folder)
    tasks = draw_tasks(family, collect.num_tasks, key=jr.key(0))  # for their shapes
    logs = read_logs(folder, tasks, collect.policies_like(family.spec))
    return Material(logs, simulator_of(family), collect.start)
