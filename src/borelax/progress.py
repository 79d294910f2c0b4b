"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class ProgressDisplay:
    """One task at a time: ``begin``, many ``update``, ``end``."""

    seconds_between_lines = 10.0
    prefix = ""
    """Stands before every label: the run, where a command has several."""

    def __init__(self, console: Console | None = None):
        """``console`` defaults to standard error, so that output can be piped."""
        self.console = console or Console(stderr=True)
        self._bar: Progress | None = None
        self._label = ""
        self._total = self._first = 0
        self._started = self._last_line = 0.0

    def begin(self, label: str, total: int, done: int) -> None:
        """Start showing ``label`` at ``done`` of ``total``."""
        label = self.prefix + label
        self._label, self._total, self._first = label, total, done
        self._started = self._last_line = time.monotonic()
        if self.console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=self.console,
            )
            self._bar.start()
            self._bar.add_task(label, total=total, completed=done, rate="", note="")

    def update(self, done: int, note: Callable[[], str]) -> None:
        """Show ``done`` units; ``note`` is asked only when a line is drawn."""
        now = time.monotonic()
        rate = (done - self._first) / max(now - self._started, 1e-9)
        if self._bar is not None:
            task, wide = self._bar.task_ids[0], self.console.width >= 110
            text = note() if wide else ""  # counts and times come first
            self._bar.update(task, completed=done, rate=f"{rate:.3g}/s", note=text)
        elif now - self._last_line >= self.seconds_between_lines:
            self._last_line = now
            left = (self._total - done) / max(rate, 1e-9)
            self.console.print(
                f"{self._label}: {done}/{self._total}, {rate:.3g}/s, "
                f"{left:.0f} s left, {note()}",
                highlight=False,
                soft_wrap=True,
            )

    def end(self) -> None:
        """Stop showing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class Quiet(ProgressDisplay):
    """Shows nothing."""

    def __init__(self) -> None:
        """No console is needed."""
        super().__init__(Console(quiet=True))
