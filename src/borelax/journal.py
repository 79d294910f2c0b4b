"""A journal that keeps checkpoints and metrics in a phase's folder."""

import time
from pathlib import Path
from typing import TypeVar

import numpy as np

from borelax import files, store
from borelax.learn import Journal
from borelax.progress import ProgressDisplay

State = TypeVar("State")


class FolderJournal(Journal):
    """Reports to the progress display, ``metrics.jsonl`` and ``checkpoints/``.

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
        self._last_save = time.monotonic()

    def resume(self, state: State) -> tuple[State, int]:
        """Continue from the newest checkpoint; drop metrics that came after it."""
        found = store.load_checkpoint(self.folder / "checkpoints", state)
        state, done = (state, 0) if found is None else (found[0], found[1]["done"])
        store.truncate_lines(self._metrics, lambda row: row["done"] <= done)
        return state, done

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
        """Keep the newest state."""
        store.save_checkpoint(self.folder / "checkpoints", state, {"done": done})
        self._last_save = time.monotonic()

    def end(self) -> None:
        """Stop showing."""
        self.display.end()

    def files(self) -> list[str]:
        """The names of the files that stay when the phase is done."""
        return [self._metrics.name] if files.exists(self._metrics) else []
