"""The logs of N agents, each trained on its own task, and their files.

A user's own logs enter here: build ``TaskLogs`` from arrays of these shapes. On disk,
rollouts lie in shards: files that hold the same number of rollouts of every task.
"""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from borelax import files, store
from borelax.errors import DataError
from borelax.files import RESTORE
from borelax.learn import read_rollouts, write_rollouts
from borelax.types import Episodes

SHARD_BYTES = 2**26
"""How much a shard holds at most; but at least one rollout of each task."""


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
        return _nbytes(self.episodes)


class Collecting(eqx.Module):
    """Logs in the making: all N agents and everything they have seen so far."""

    agents: Any
    episodes: Episodes
    """Preallocated for the whole phase: [N, R, E, …]."""
    filled: Int[Array, ""]
    """How many rollouts of each task have happened. They never change again."""

    def without_shards(self) -> "Collecting":
        """What a checkpoint needs beside the shards: the rollouts that fill none."""
        size = rollouts_per_shard(self.episodes)
        first = self.filled // size * size
        return replace(self, episodes=read_rollouts(self.episodes, first, size))

    def with_shards(
        self, folder: Path, shards: dict[str, str], room: Episodes
    ) -> "Collecting":
        """The state of which ``without_shards`` left this; its rollouts fill ``room``.

        Args:
            folder: Where the shards are.
            shards: The SHA-256 of each by its name, in their order.
            room: Rollouts of the whole phase, to be written over.
        """
        remedy = f"Restore it from a copy, or delete {folder} to start the phase over."
        size = rollouts_per_shard(room)
        for number, (name, sha) in enumerate(shards.items()):
            shard, _ = _read_shard(folder / name, sha, remedy)
            room = _place(shard, number * size, room)
        first = self.filled // size * size
        return replace(self, episodes=write_rollouts((self.episodes, first), room))


def write_logs(folder: Path, logs: TaskLogs) -> list[str]:
    """Write everything; returns the names of the files."""
    shards = write_shards(folder, logs.episodes, logs.num_rollouts, {})
    return [*shards, *write_makers(folder, logs)]


def write_makers(folder: Path, logs: TaskLogs) -> list[str]:
    """Write what made the rollouts, the tasks and the policies; returns the names."""
    store.save_tree(folder / "tasks.safetensors", logs.tasks)
    if logs.policies is None:
        return ["tasks.safetensors"]
    store.save_tree(folder / "policies.safetensors", logs.policies)
    return ["tasks.safetensors", "policies.safetensors"]


def read_logs(folder: Path, tasks_like: Any, policies_like: Any | None) -> TaskLogs:
    """Read what ``write_logs`` wrote; the ``like`` trees give the shapes."""
    tasks = store.load_tree(folder / "tasks.safetensors", tasks_like)
    episodes = read_shards(folder)
    if policies_like is None:
        return TaskLogs(tasks, episodes)
    policies = store.load_tree(folder / "policies.safetensors", policies_like)
    return TaskLogs(tasks, episodes, policies)


def read_shards(folder: Path) -> Episodes:
    """All rollouts of ``write_logs``; memory is taken once, and filled in parts."""
    shard, total = _read_shard(folder / _shard(0))
    size = shard.reward.shape[1]
    episodes = jax.tree.map(
        lambda x: jnp.zeros((x.shape[0], total, *x.shape[2:]), x.dtype), shard
    )
    for number, first in enumerate(range(0, total, size)):
        if number > 0:
            shard, _ = _read_shard(folder / _shard(number))
        episodes = _place(shard, first, episodes)
    return episodes


def rollouts_per_shard(episodes: Episodes) -> int:
    """How many of the rollouts [N, R, …] one shard holds; a function of shapes."""
    total = episodes.reward.shape[1]
    return min(total, max(1, SHARD_BYTES * total // _nbytes(episodes)))


def write_shards(
    folder: Path, episodes: Episodes, filled: int, written: dict[str, str]
) -> dict[str, str]:
    """Write the shards that are full, each of them once.

    Args:
        folder: Where to.
        episodes: All rollouts [N, R, …].
        filled: How many of the R have happened. When all have, the last shard is full.
        written: Shards that are there already.

    Returns:
        The SHA-256 of every full shard by its name, in their order.
    """
    total, size = episodes.reward.shape[1], rollouts_per_shard(episodes)
    shards = dict(written)
    for first in range(len(shards) * size, filled, size):
        count = min(size, total - first)
        if first + count > filled:
            break
        name = _shard(len(shards))
        arrays = _arrays(read_rollouts(episodes, jnp.asarray(first), count))
        arrays["total"] = np.asarray(total)
        # floats hardly shrink, and shrinking them would take longer than making them
        store.save_arrays(folder / name, arrays, compress=False)
        shards[name] = files.sha_of_file(folder / name)
    return shards


def write_episodes(path: Path, episodes: Episodes) -> None:
    """Write episodes to one ``.npz`` file."""
    store.save_arrays(path, _arrays(episodes))


def read_episodes(path: Path) -> Episodes:
    """Read episodes from one ``.npz`` file."""
    return _episodes(path, store.load_arrays(path))


def _place(shard: Episodes, first: int, room: Episodes) -> Episodes:
    """Write a shard into its place, and wait: reading must not run ahead of it."""
    return jax.block_until_ready(write_rollouts((shard, jnp.asarray(first)), room))


def _read_shard(
    path: Path, sha: str | None = None, remedy: str = RESTORE
) -> tuple[Episodes, int]:
    """Some rollouts of each task, and how many there are in all shards together."""
    arrays = store.load_arrays(path, sha, remedy)
    return _episodes(path, arrays, "total"), int(arrays["total"])


def _arrays(episodes: Episodes) -> dict[str, np.ndarray]:
    arrays = {f.name: getattr(episodes, f.name) for f in fields(episodes)}
    return {name: np.asarray(x) for name, x in arrays.items() if x is not None}


def _episodes(path: Path, arrays: dict[str, np.ndarray], *beside: str) -> Episodes:
    missing = {"obs", "action", "reward", *beside} - set(arrays)
    if missing:
        raise DataError(f"{path} has no {', '.join(sorted(missing))}: not a log file.")
    known = {f.name for f in fields(Episodes)}
    rollouts = {name: x for name, x in arrays.items() if name in known}
    _check_shapes(path, rollouts)
    return Episodes(**{name: jnp.asarray(x) for name, x in rollouts.items()})


def _check_shapes(path: Path, rollouts: dict[str, np.ndarray]) -> None:
    """Refuse arrays that are not [*batch, E, H+1, obs], [*batch, E, H, …] and so on."""
    shapes = {name: x.shape for name, x in rollouts.items()}
    steps = shapes["reward"]
    fits = {
        "reward": len(steps) >= 2,
        "obs": shapes["obs"][:-2] == steps[:-1]
        and shapes["obs"][-2:-1] == tuple(h + 1 for h in steps[-1:]),
        "action": shapes["action"][: len(steps)] == steps,
    }
    for name in ("length", "ended", "cut"):
        fits[name] = shapes.get(name, steps[:-1]) == steps[:-1]
    for name, right in fits.items():
        if not right:
            raise DataError(
                f"{path} has reward {list(steps)}, which must be [tasks, rollouts, "
                f"episodes, steps], and {name} {list(shapes[name])}, which does not "
                "fit: observations are one more than steps, the rest as many."
            )


def _nbytes(episodes: Episodes) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(episodes))


def _shard(number: int) -> str:
    return f"rollouts-{number:03d}.npz"
