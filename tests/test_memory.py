"""Logs are held once: writing, resuming and reading add a few shards to them.

Measured as the kernel sees it, while shards are a thirty-second part of the logs.
"""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from borelax.journal import FolderJournal
from borelax.logs import Collecting, TaskLogs, read_logs, write_makers
from borelax.progress import Quiet
from borelax.types import Episodes

FORGET = Path("/proc/self/clear_refs")
pytestmark = pytest.mark.skipif(not FORGET.exists(), reason="asks the Linux kernel")

SHARDS = 32
SHARD = 2**23
"""Bytes of two rollouts of four tasks, which fill a shard."""
ROOM = 0.75
"""Beside the logs, in multiples of them; a second copy would be 1."""


def room() -> Episodes:
    steps = SHARD // 4 // (4 * 2 * 12)  # of 12 numbers: 8 seen, 3 done, 1 paid
    shape = (4, 2 * SHARDS, 1)
    return Episodes(
        jnp.zeros((*shape, steps + 1, 8)),
        jnp.zeros((*shape, steps, 3)),
        jnp.zeros((*shape, steps)),
    )


def status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(x for x in lines if x.startswith(name)).split()[1])


def growth(work: Callable[[], Any]) -> tuple[Any, float]:
    """What ``work`` returns, and how much memory it took, in multiples of the logs."""
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)  # what was freed counts as taken if it is taken again
    FORGET.write_text("5")  # the highest so far
    before = status("VmRSS")
    result = jax.block_until_ready(work())
    return result, (status("VmHWM") - before) / (SHARDS * SHARD)


def test_logs_are_held_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("borelax.logs.SHARD_BYTES", SHARD * 17 // 16)
    tasks = jnp.arange(4.0)

    def journal() -> FolderJournal:
        return FolderJournal(tmp_path, "collect", Quiet(), 0.0)

    def begun(filled: int) -> Collecting:
        return Collecting(jnp.zeros(3), room(), jnp.asarray(filled))

    made, taken = growth(lambda: begun(2 * SHARDS))
    assert taken > 0.9, "this test measures"
    _, taken = growth(lambda: journal().save(made, 5))
    assert taken < ROOM, "a checkpoint writes shard by shard"
    del made
    (made, done), taken = growth(lambda: journal().resume(begun(1)))
    assert done == 5 and taken < 1 + ROOM, "and is read so"
    write_makers(tmp_path, TaskLogs(tasks, made.episodes))
    del made
    logs, taken = growth(lambda: read_logs(tmp_path, tasks, None))
    assert taken < 1 + ROOM, "logs are read into their place"
    assert logs.num_rollouts == 2 * SHARDS
    assert len(list(tmp_path.glob("*.npz"))) == SHARDS
