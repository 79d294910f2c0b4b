"""Logs on disk are the logs."""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from borelax import store
from borelax.agents.dqn import DQN
from borelax.collect.collect import Collect
from borelax.errors import DataError
from borelax.logs import TaskLogs, read_episodes, read_logs, write_episodes, write_logs
from borelax.tasks.gridworld import Gridworld


def arrays(tree) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def assert_same(one, other) -> None:
    for a, b in zip(arrays(one), arrays(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_written_and_read_is_the_same(
    tmp_path: Path, logs: TaskLogs, world: Gridworld
) -> None:
    names = write_logs(tmp_path, logs)
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    collect = Collect(num_tasks=5, agent=DQN(hidden=(8,), batch_size=8))
    like = collect.policies_like(world.spec)
    read = read_logs(tmp_path, world.all_tasks(), like)
    assert_same(read, logs)
    assert jax.tree.structure(read) == jax.tree.structure(logs)
    assert read.policies.agent == logs.policies.agent


def test_logs_without_policies(tmp_path: Path, logs: TaskLogs) -> None:
    bare = TaskLogs(logs.tasks, logs.episodes)
    assert "policies.safetensors" not in write_logs(tmp_path, bare)
    read = read_logs(tmp_path, logs.tasks, None)
    assert read.policies is None
    assert_same(read, bare)


def test_shards_hold_the_rollouts_in_order(
    tmp_path: Path, logs: TaskLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("borelax.logs.SHARD_BYTES", logs.nbytes * 4 // 6 + 1)
    write_logs(tmp_path, TaskLogs(logs.tasks, logs.episodes))
    shards = sorted(tmp_path.glob("*.npz"))
    assert [path.name for path in shards] == ["rollouts-000.npz", "rollouts-001.npz"]
    for path, rows in zip(shards, (slice(0, 4), slice(4, 6)), strict=True):
        own = jax.tree.map(lambda x, rows=rows: x[:, rows], logs.episodes)
        assert_same(read_episodes(path), own)
    assert_same(read_logs(tmp_path, logs.tasks, None).episodes, logs.episodes)


def test_a_shard_holds_at_least_one_rollout(
    tmp_path: Path, logs: TaskLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("borelax.logs.SHARD_BYTES", 1)
    write_logs(tmp_path, TaskLogs(logs.tasks, logs.episodes))
    assert len(list(tmp_path.glob("rollouts-*.npz"))) == logs.num_rollouts
    assert_same(read_logs(tmp_path, logs.tasks, None).episodes, logs.episodes)


def test_a_file_of_episodes_is_no_shard(tmp_path: Path, logs: TaskLogs) -> None:
    write_logs(tmp_path, logs)
    write_episodes(tmp_path / "rollouts-000.npz", logs.episodes)
    with pytest.raises(DataError, match="has no total: not a log file"):
        read_logs(tmp_path, logs.tasks, None)


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    store.save_arrays(tmp_path / "x.npz", {"obs": np.zeros(3)})
    with pytest.raises(DataError, match="has no action, reward: not a log file"):
        read_episodes(tmp_path / "x.npz")


def test_counts_and_bytes(logs: TaskLogs) -> None:
    assert (logs.num_tasks, logs.num_rollouts) == (5, 6)
    episodes = 5 * 6 * 2
    assert logs.nbytes == episodes * (5 * 9 * 1 + 4 * 4 + 4 * 4)
    assert logs.episodes.obs.dtype == jnp.uint8


@pytest.mark.parametrize("name", ["length", "ended", "cut"])
def test_what_is_said_of_episodes_must_be_said_of_each(
    tmp_path: Path, logs: TaskLogs, name: str
) -> None:
    episodes, file = logs.episodes, tmp_path / "a.npz"
    kind = jnp.int32 if name == "length" else bool
    said = jnp.ones(episodes.reward.shape[:-1], kind)
    write_episodes(file, replace(episodes, **{name: said}))
    assert_same(getattr(read_episodes(file), name), said)
    whole = store.load_arrays(file)
    store.save_arrays(file, {**whole, name: whole[name][:, 1:]})
    with pytest.raises(DataError, match=name):
        read_episodes(file)
