"""The logs of N agents, each trained on its own task, and their files.

A user's own logs enter here: build ``TaskLogs`` from arrays of these shapes.
"""

from dataclasses import fields
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from borelax import store
from borelax.errors import DataError
from borelax.types import Episodes


class TaskLogs(eqx.Module):
    """Everything phase 1 leaves behind.

    Learners receive rollouts drawn from ``episodes``, never the logs: they cannot see
    the tasks.
    """

    tasks: Any
    """Task parameters [N, …]."""
    episodes: Episodes
    """Every rollout in the order it happened: [N, R, E, …]."""
    policies: Any | None = None
    """The final policy of each agent [N, …], as it explored, for policy replaying."""

    @property
    def num_tasks(self) -> int:
        """N."""
        return self.episodes.reward.shape[0]

    @property
    def num_rollouts(self) -> int:
        """R, per task."""
        return self.episodes.reward.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of the stored episodes."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self.episodes))


def write_logs(folder: Path, logs: TaskLogs) -> list[str]:
    """Write one shard per task, the tasks and the policies; returns the file names."""
    names = [_shard(n) for n in range(logs.num_tasks)]
    for n, name in enumerate(names):
        own = jax.tree.map(lambda x, n=n: np.asarray(x[n]), logs.episodes)
        write_episodes(folder / name, own)
    store.save_tree(folder / "tasks.safetensors", logs.tasks)
    names.append("tasks.safetensors")
    if logs.policies is not None:
        store.save_tree(folder / "policies.safetensors", logs.policies)
        names.append("policies.safetensors")
    return names


def read_logs(folder: Path, tasks_like: Any, policies_like: Any | None) -> TaskLogs:
    """Read what ``write_logs`` wrote; the ``like`` trees give the shapes."""
    tasks = store.load_tree(folder / "tasks.safetensors", tasks_like)
    num_tasks = jax.tree.leaves(tasks)[0].shape[0]
    shards = [read_episodes(folder / _shard(n)) for n in range(num_tasks)]
    episodes = jax.tree.map(lambda *x: jnp.stack(x), *shards)
    if policies_like is None:
        return TaskLogs(tasks, episodes)
    policies = store.load_tree(folder / "policies.safetensors", policies_like)
    return TaskLogs(tasks, episodes, policies)


def write_episodes(path: Path, episodes: Episodes) -> None:
    """Write episodes to one ``.npz`` file."""
    arrays = {f.name: getattr(episodes, f.name) for f in fields(episodes)}
    store.save_arrays(
        path, {name: np.asarray(x) for name, x in arrays.items() if x is not None}
    )


def read_episodes(path: Path) -> Episodes:
    """Read episodes from one ``.npz`` file."""
    arrays = store.load_arrays(path)
    missing = {"obs", "action", "reward"} - set(arrays)
    if missing:
        raise DataError(f"{path} has no {', '.join(sorted(missing))}: not a log file.")
    known = {f.name for f in fields(Episodes)}
    return Episodes(**{k: jnp.asarray(x) for k, x in arrays.items() if k in known})


def _shard(task: int) -> str:
    return f"task-{task:03d}.npz"
