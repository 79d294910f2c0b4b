"""Phase 1 writes its rollouts once, in shards, and goes on from them to the same bits.

Shards of these tests hold two rollouts of each task; the pool fills one and a half of
them, and each iteration half a one.
"""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from borelax import store
from borelax.errors import DataError, StoppedError
from borelax.journal import FolderJournal
from borelax.pipeline import Pipeline
from borelax.progress import Quiet
from tests.damage import flipped
from tests.tiny_run import EXPERIMENT, compiled_quickly, shas

COLLECT = replace(
    EXPERIMENT.collect, pool_rollouts=3, iterations=4, rollouts_per_iteration=1
)
SHARDS = [f"rollouts-{number:03d}.npz" for number in range(4)]


class Crash(BaseException):
    """What a killed process does: nothing after it runs, except ``finally``."""


@pytest.fixture(autouse=True, scope="module")
def two_rollouts_per_shard():
    spec, tasks = EXPERIMENT.family.spec, COLLECT.num_tasks
    numbers = (spec.horizon + 1) * spec.obs_size + spec.horizon * (4 + 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("borelax.logs.SHARD_BYTES", 2 * tasks * spec.episodes * numbers)
        yield


@compiled_quickly()
def collect(folder: Path) -> None:
    experiment = replace(EXPERIMENT, collect=COLLECT)
    _ = Pipeline(experiment, folder, Quiet(), checkpoint_seconds=0.0).logs


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A phase that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    collect(folder)
    return folder


def stop_after(folder: Path, done: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on the phase until ``done`` iterations are saved."""
    record = FolderJournal.record

    def press_ctrl_c(self: FolderJournal, now: int, metrics) -> None:
        record(self, now, metrics)
        if now == done:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(FolderJournal, "record", press_ctrl_c)
        with pytest.raises(StoppedError):
            collect(folder)


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "1-logs").glob("*.npz"))


def test_the_last_shard_is_shorter(whole: Path) -> None:
    counts = [
        store.load_arrays(whole / "1-logs" / name)["reward"].shape[1] for name in SHARDS
    ]
    assert counts == [2, 2, 2, 1] and there(whole) == SHARDS


@pytest.mark.parametrize("done", [1, 2, 3, 4])
def test_stopped_in_a_shard_or_between_two(
    tmp_path: Path, monkeypatch, whole: Path, done: int
) -> None:
    stop_after(tmp_path, done, monkeypatch)
    full = {1: 2, 2: 2, 3: 3, 4: 4}[done]
    assert there(tmp_path) == SHARDS[:full]
    before = {name: (tmp_path / "1-logs" / name).stat() for name in SHARDS[:full]}
    collect(tmp_path)
    assert shas(tmp_path) == shas(whole)
    after = {name: (tmp_path / "1-logs" / name).stat() for name in SHARDS[:full]}
    assert after == before, "a shard is written once"


@pytest.mark.parametrize("name", SHARDS)
def test_a_crash_after_a_shard_and_before_its_checkpoint(
    tmp_path: Path, monkeypatch, whole: Path, name: str
) -> None:
    replaced = os.replace

    def crash(old: Path, new: Path) -> None:
        replaced(old, new)
        if Path(new).name == name:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(Crash):
            collect(tmp_path)
    assert there(tmp_path)[-1] == name
    # Nothing vouches for this shard: it may be any, and is written again.
    (tmp_path / "1-logs" / name).write_bytes(b"of another run")
    collect(tmp_path)
    assert shas(tmp_path) == shas(whole)


def test_a_checkpoint_holds_no_shard(tmp_path: Path, monkeypatch) -> None:
    saved, save = [], store.save_checkpoint

    def note(folder: Path, tree, about) -> None:
        save(folder, tree, about)
        saved.append((tree.episodes.reward.shape[1], list(about["shards"])))

    monkeypatch.setattr(store, "save_checkpoint", note)
    collect(tmp_path)
    assert saved == [(2, SHARDS[:2]), (2, SHARDS[:2]), (2, SHARDS[:3])]


def test_a_damaged_missing_or_foreign_shard_is_refused(
    tmp_path: Path, monkeypatch, whole: Path
) -> None:
    stop_after(tmp_path / "run", 3, monkeypatch)
    path = tmp_path / "run" / "1-logs" / SHARDS[1]
    sound = path.read_bytes()
    foreign = (whole / "1-logs" / SHARDS[2]).read_bytes()
    for data in (flipped(sound, len(sound) // 2, 1), sound[:-9], foreign, None):
        path.unlink()
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(DataError) as refused:
            collect(tmp_path / "run")
        assert refused.value.exit_code == 3
        sentence = str(refused.value)
        assert sentence.startswith(f"{path} is {'damaged' if data else 'missing'}")
        assert f"delete {path.parent} to start the phase over" in sentence
        path.write_bytes(sound)
    collect(tmp_path / "run")
    assert shas(tmp_path / "run") == shas(whole)
