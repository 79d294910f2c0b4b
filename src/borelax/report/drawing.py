"""Figures for print: beliefs, paths, bars and curves on matplotlib's axes.

In: plain arrays. Out: bytes of an SVG, a PDF or a PNG, the same for the same arrays:
no clock and no chance enters them.
"""

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from borelax.report.scenes import Scenes
from borelax.report.svg import Bar, Series, spread

INK, MUTED, LINE = "#222222", "#777777", "#d5dae0"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9", "#999999")
"""Okabe and Ito's, which the colour-blind can tell apart; the last for yardsticks."""
DASHES = (
    "-",
    (5, 2),
    (1, 1.2),
    (5, 1.5, 1, 1.5),
    (2.5, 1.5),
    (8, 1, 1, 1, 1, 1),
    (8, 6),
)
"""How lines of these colours are dashed, for those who see no colours."""
COLUMN, PAGE = 3.3, 6.9
"""Widths of a paper's column and page, in inches."""
RULES = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "borelax",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


@contextlib.contextmanager
def new_figure(width: float, height: float) -> Iterator[Any]:
    """A figure in the style of a paper; no window, whatever the user's settings."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rules: Any = {**matplotlib.rcParamsDefault, **RULES}
    with matplotlib.rc_context(rules):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def figure_bytes(figure: Any, kind: str, dpi: int = 150) -> bytes:
    """The figure as ``svg``, ``pdf`` or ``png``; in the ``new_figure`` that made it."""
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=dpi, metadata=dates.get(kind))
    return file.getvalue()


def draw_moment(
    axes: Any,
    scenes: Scenes,
    belief: np.ndarray | None,
    where: tuple[int, int, int, int],
    path: bool = True,
) -> None:
    """One moment: belief, goal, the paths so far; ``where``: seed, task, episode, step.

    Args:
        axes: Where to.
        scenes: Of which run.
        belief: Learned or exact, of the scenes; None: do not draw one.
        where: Seed, task, episode and step.
        path: Whether to draw where the agent went.
    """
    seed, task, episode, step = where
    frame_axes(axes, scenes)
    if belief is not None:
        time = episode * scenes.reward.shape[-1] + step
        if scenes.frame.kind == "winds":
            _draw_wind(axes, scenes, belief[seed, task, time], task)
        else:
            _draw_belief(axes, scenes, belief[seed, task, time])
    _draw_goal(axes, scenes, task)
    if not path:
        return
    for before in scenes.place[seed, task, :episode]:
        axes.plot(*before.T, color=ORANGE, linewidth=0.7, alpha=0.45)
    way = scenes.place[seed, task, episode, : step + 1]
    axes.plot(*way.T, color=ORANGE, linewidth=1.6, solid_capstyle="round")
    axes.plot(*way[-1], "o", color=ORANGE, markersize=5, markeredgecolor="white")


def frame_axes(axes: Any, scenes: Scenes) -> None:
    """An empty world: bounds, cells, and the circle that goals or doors lie on."""
    frame = scenes.frame
    axes.set(xlim=(frame.low[0], frame.high[0]), ylim=(frame.low[1], frame.high[1]))
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set(visible=True, color=LINE)
    if frame.kind == "cells":
        for line in np.arange(frame.shape[0] + 1) - 0.5:
            axes.axhline(line, color=LINE, linewidth=0.6, zorder=1)
            axes.axvline(line, color=LINE, linewidth=0.6, zorder=1)
    elif frame.kind in ("plane", "ring"):
        turn = np.linspace(0, np.pi * (2 if frame.kind == "ring" else 1), 181)
        axes.plot(np.cos(turn), np.sin(turn), "--", color=MUTED, linewidth=0.6)


def draw_paths(axes: Any, scenes: Scenes, ways: np.ndarray, goals: np.ndarray) -> None:
    """Many paths [N, H+1, 2], each with its goal in the same colour."""
    frame_axes(axes, scenes)
    for n, way in enumerate(ways):
        colour = COLOURS[n % 6]
        beside = np.zeros(2)
        if scenes.frame.kind == "cells":
            beside = 0.22 * np.array([np.cos(n), np.sin(n)])
        axes.plot(*(way + beside).T, color=colour, linewidth=0.8, alpha=0.8)
        if scenes.frame.kind != "winds":
            axes.plot(*goals[n], "o", color=colour, markersize=2.5)


def draw_bars(axes: Any, bars: Sequence[Bar]) -> None:
    """Horizontal bars, the first on top, each with its value."""
    rows = np.arange(len(bars))[::-1]
    for row, bar in zip(rows, bars, strict=True):
        axes.barh(
            row, bar.value, color=COLOURS[bar.colour], xerr=bar.spread, height=0.7
        )
        end = max(bar.value, 0) + (bar.spread or 0)
        axes.annotate(
            f"{bar.value:.1f}",
            (end, row),
            (3, 0),
            textcoords="offset points",
            va="center",
        )
    axes.set_yticks(rows, [bar.name for bar in bars])
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.margins(x=0.15)
    axes.set_xlabel("return")


def draw_lines(axes: Any, series: Sequence[Series], dots: bool = False) -> None:
    """Means over seeds as lines, one standard deviation to each side as bands."""
    for one in series:
        mean, low, high = spread(one)
        colour, dash = COLOURS[one.colour], DASHES[one.colour]
        style = dash if isinstance(dash, str) else (0, dash)
        axes.plot(one.x, mean, linestyle=style, marker="o" if dots else "",
                  color=colour, markersize=3, label=one.name)  # fmt: skip
        if one.values.shape[1] > 1:
            axes.fill_between(one.x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.grid(axis="y", color=LINE, linewidth=0.5)


def _draw_belief(axes: Any, scenes: Scenes, values: np.ndarray) -> None:
    frame = scenes.frame
    shade = blues()
    if frame.kind == "ring":
        for k, value in enumerate(values):
            turn = np.linspace(k, k + 1, 5) * 2 * np.pi / len(values)
            way = np.stack([np.cos(turn), np.sin(turn)])
            axes.plot(*way, color=BLUE, alpha=float(value), linewidth=6, zorder=1)
        return
    board = values.reshape(frame.shape[1], frame.shape[0])
    board = np.sqrt(board) if frame.kind == "cells" else board
    bounds = (frame.low[0], frame.high[0], frame.low[1], frame.high[1])
    smooth = "nearest" if frame.kind == "cells" else "bilinear"
    shown = {"cmap": shade, "vmin": 0, "vmax": 1, "interpolation": smooth}
    axes.imshow(board, origin="lower", extent=bounds, zorder=0, **shown)


def _draw_wind(axes: Any, scenes: Scenes, believed: np.ndarray, task: int) -> None:
    """A rose in the corner: the believed wind as a dot, the true one as a star."""
    rose = axes.inset_axes((0.02, 0.02, 0.36, 0.36))
    assert scenes.learned is not None
    reach = 1.25 * max(np.abs(scenes.goals).max(), np.abs(scenes.learned).max(), 1e-6)
    rose.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    rose.set_aspect("equal")
    rose.axhline(0, color=LINE, linewidth=0.6)
    rose.axvline(0, color=LINE, linewidth=0.6)
    for side in rose.spines.values():
        side.set(visible=True, color=LINE)
    rose.plot(*scenes.goals[task], "*", color=GREEN, markersize=9, mec="white", mew=0.5)
    rose.plot(*believed, "o", color=BLUE, markersize=5, mec="white", mew=0.5)


def _draw_goal(axes: Any, scenes: Scenes, task: int) -> None:
    goal = scenes.goals[task] if scenes.fixed_goal is None else scenes.fixed_goal
    if scenes.frame.kind in ("plane", "winds"):
        turn = np.linspace(0, 2 * np.pi, 61)
        disc = np.stack([np.cos(turn), np.sin(turn)]) * scenes.radius
        axes.plot(disc[0] + goal[0], disc[1] + goal[1], color=GREEN, linewidth=0.8)
    axes.plot(*goal, "*", color=GREEN, markersize=9, mec="white", mew=0.5)


def blues() -> Any:
    """From nothing to certainty."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("belief", ["#ffffff", BLUE])
