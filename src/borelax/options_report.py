"""Flags of the commands that show runs: ``borelax report`` and ``borelax compare``."""

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

import tyro

from borelax.errors import require


@dataclass(frozen=True)
class ReportOptions:
    """What to write about a run."""

    out: Path | None = None
    """The page; by default report.html in the run's folder."""
    style: Literal["page", "paper"] = "page"
    """paper: also draw figures for a paper (SVG, PDF) and a moving image (WebP)."""
    figures: Path | None = None
    """Where the figures go; by default figures/ in the run's folder."""


@dataclass(frozen=True)
class CompareOptions:
    """Where the page goes that puts runs side by side."""

    out: Path = Path("compare.html")
    """The page."""


def parse_report(command: str, argv: list[str]) -> tuple[Path, ReportOptions]:
    """The run to report on, and how."""
    folders, options = _parse(command, argv, ReportOptions())
    require(
        len(folders) == 1,
        f"`borelax {command}` needs the folder of one run: borelax {command} RUN",
    )
    return folders[0], options


def parse_compare(command: str, argv: list[str]) -> tuple[list[Path], Path]:
    """The runs to put side by side, and the page to write."""
    folders, options = _parse(command, argv, CompareOptions())
    require(
        len(folders) >= 2,
        f"`borelax {command}` needs the folders of runs: borelax {command} RUN RUN",
    )
    return folders, options.out


def _parse(command: str, argv: list[str], defaults):
    """Folders come first, flags after them; --help needs no folder."""
    words = list(takewhile(lambda word: not word.startswith("-"), argv))
    options = tyro.cli(
        type(defaults),
        prog=f"borelax {command} RUN",
        args=argv[len(words) :],
        default=defaults,
    )
    return [Path(word) for word in words], options
