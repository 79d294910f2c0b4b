"""A journal that keeps checkpoints and metrics in a phase's folder."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from borelax import files, store
from borelax.learn import Journal
from borelax.logs import Collecting, write_shards
from borelax.progress import ProgressDisplay


class FolderJournal(Journal):
    """Reports to the progress display, ``metrics.jsonl`` and ``checkpoints/``.

    Rollouts of phase 1 are written once, as shards beside these; a checkpoint holds
    only those that fill no shard yet.
    Equal runs leave equal metrics, interrupted or not: no clock is written down.
    """

    def __init__(
        self,
        folder: Path,
        label: str,
        display: ProgressDisplay,
        seconds_between_saves: float,
    ):
        """``label`` names the phase on the display."""
        self.folder, self.label, self.display = folder, label, display
        self.seconds_between_saves = seconds_between_saves
        self._metrics = folder / "metrics.jsonl"
        self._shards: dict[str, str] = {}
        self._last_save = time.monotonic()

    def resume(self, state: Any) -> tuple[Any, int]:
        """Continue from the newest checkpoint; drop metrics that came after it."""
        like = state.without_shards() if isinstance(state, Collecting) else state
        found = store.load_checkpoint(self.folder / "checkpoints", like)
        done, saved = 0, state
        if found is not None:
            saved, about = found
            done, self._shards = about["done"], about.get("shards", {})
            if isinstance(state, Collecting):
                saved = saved.with_shards(self.folder, self._shards, state.episodes)
        store.truncate_lines(self._metrics, lambda row: row["done"] <= done)
        return saved, done

    def begin(self, total: int, done: int) -> None:
        """Show the phase."""
        self._last_save = time.monotonic()
        self.display.begin(self.label, total, done)

    def record(self, done: int, metrics: dict[str, np.ndarray]) -> None:
        """Append one line: scalars, or one number per seed."""
        row = {name: value.tolist() for name, value in metrics.items()}
        store.append_lines(self._metrics, [{"done": done, **row}])
        means = ((name, float(value.mean())) for name, value in metrics.items())
        self.display.update(done, lambda: ", ".join(f"{n} {v:.3g}" for n, v in means))

    def save_due(self) -> bool:
        """Every ``seconds_between_saves``."""
        return time.monotonic() - self._last_save >= self.seconds_between_saves

    def save(self, state: object, done: int) -> None:
        """Keep the newest state; of its rollouts, those that are not kept yet."""
        if isinstance(state, Collecting):
            self._keep(state)
            state = state.without_shards()
        about = {"done": done, "shards": self._shards}
        store.save_checkpoint(self.folder / "checkpoints", state, about)
        self._last_save = time.monotonic()

    def finish(self, state: object) -> None:
        """Keep the last rollouts."""
        if isinstance(state, Collecting):
            self._keep(state)

    def end(self) -> None:
        """Stop showing."""
        self.display.end()

    def files(self) -> list[str]:
        """The names of the files that stay when the phase is done."""
        metrics = [self._metrics.name] if files.exists(self._metrics) else []
        return [*self._shards, *metrics]

    def _keep(self, state: Collecting) -> None:
        filled = int(state.filled)
        self._shards = write_shards(self.folder, state.episodes, filled, self._shards)
