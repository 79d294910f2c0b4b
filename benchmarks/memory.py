"""How much memory each phase takes at its peak, in multiples of the logs.

    python benchmarks/memory.py --gigabytes 1

Logs have the shapes of Ant-Semi-circle and hold noise; only their length is chosen.
Each number is the highest resident memory of the process while something is done, less
what it held before, so the interpreter and compiled programs of earlier rows do not
count. It runs on the CPU, where the device's memory is the host's; on Linux only.
"""

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from rich.console import Console
from rich.table import Table

from borelax import manifest
from borelax.belief.view import BeliefView, LearnedBelief
from borelax.errors import StoppedError
from borelax.journal import FolderJournal
from borelax.logs import TaskLogs, read_logs, write_makers
from borelax.meta.fit import Window
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.relabel.rewards import RelabelRewards
from borelax.simulate.jax_simulator import OfFamily
from borelax.types import Episodes, Spec

PAPER = preset("ant-semicircle", "paper")
TASKS = PAPER.collect.num_tasks


@dataclass(frozen=True)
class Noise:
    """A simulator in which nothing depends on anything."""

    spec: Spec = PAPER.family.spec
    training_reward = None

    @property
    def reward(self):
        return OfFamily(PAPER.family, "reward")

    def rollouts(self, policies, tasks, *, repeats, episodes, start, key) -> Episodes:
        return _noise(self.spec, repeats, key)


@eqx.filter_jit
def _noise(spec: Spec, repeats: int, key) -> Episodes:
    shape = (TASKS, repeats, spec.episodes)
    return Episodes(
        jr.uniform(key, (*shape, spec.horizon + 1, spec.obs_size)),
        jnp.zeros((*shape, spec.horizon, spec.action.size)),
        jnp.zeros((*shape, spec.horizon)),
    )


class StopAt(FolderJournal):
    """Saves after every third iteration, and stops after ``place`` of them."""

    place = -1

    def record(self, done: int, metrics) -> None:
        self.done = done

    def save_due(self) -> bool:
        return self.done % 3 == 0

    def save(self, state: object, done: int) -> None:
        super().save(state, done)
        if done == self.place:
            raise StoppedError("as asked")


def status(name: str) -> int:
    """Bytes, as the kernel counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return 1024 * int(line.split()[1])
    raise SystemExit("This benchmark reads /proc, which Linux has.")


def growth(work: Callable[[], Any]) -> tuple[Any, int]:
    """What ``work`` returns, and by how many bytes the process grew meanwhile."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest so far
    before = status("VmRSS")
    result = jax.block_until_ready(work())
    return result, status("VmHWM") - before


def measure(gigabytes: float, folder: Path) -> tuple[int, dict[str, int]]:
    """Bytes of the logs, and by how many the process grows in each phase."""
    spec = PAPER.family.spec
    of_step = 4 * (spec.obs_size + spec.action.size + 1)
    of_rollout = TASKS * spec.episodes * (spec.horizon * of_step + 4 * spec.obs_size)
    rounds = int(gigabytes * 1e9 / of_rollout) // 40
    collect = replace(
        PAPER.collect,
        pool_rollouts=10 * rounds,
        iterations=15,
        rollouts_per_iteration=2 * rounds,
        updates_per_iteration=2,
    )
    tasks, key = jnp.zeros((TASKS, 2)), jr.key(0)
    logs_folder, simulator = folder / "1-logs", Noise()
    rows: dict[str, int] = {}

    def collecting(place: int) -> TaskLogs | None:
        journal = StopAt(logs_folder, "collect", Quiet(), 0.0)
        journal.place = place
        try:
            logs = collect(simulator, tasks, key=key, journal=journal)
        except StoppedError:
            return None
        names = [*write_makers(logs_folder, logs), *journal.files()]
        manifest.seal(logs_folder, names, {})
        return logs

    _, rows["collect, with checkpoints"] = growth(lambda: collecting(9))
    logs, rows["resume and write"] = growth(lambda: collecting(-1))
    assert logs is not None
    size = logs.nbytes
    del logs
    _, rows["--logs: adopt"] = growth(
        lambda: manifest.copy_sealed(logs_folder, folder / "copy")
    )
    like = collect.policies_like(spec)
    logs, rows["read"] = growth(lambda: read_logs(logs_folder, tasks, like))
    source = RelabelRewards()(logs, simulator, start="uniform", key=key)
    fit = replace(PAPER.belief, updates=4, updates_per_chunk=2)
    model, rows["belief, beside the logs"] = growth(
        lambda: fit(source, spec, num_seeds=PAPER.num_seeds, key=key)
    )
    beliefs = LearnedBelief(model, BeliefView(latent=True, decoded=False))
    window = Window(PAPER.meta, source, beliefs, key=key)
    _, rows["meta: window, beside the logs"] = growth(lambda: window.after(0))
    return size, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of logs")
    gigabytes = parser.parse_args().gigabytes
    with tempfile.TemporaryDirectory() as folder:
        size, rows = measure(gigabytes, Path(folder))
    table = Table("phase", "peak, GB", "multiple of the logs")
    for name, grown in rows.items():
        table.add_row(name, f"{grown / 1e9:.2f}", f"{grown / size:.2f}")
    Console().print(f"Logs of {size / 1e9:.2f} GB", table)


if __name__ == "__main__":
    main()
