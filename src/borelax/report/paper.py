"""A run's figures for a paper: SVG and PDF, and a moving image of a test rollout."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from borelax.errors import DataError
from borelax.files import atomic
from borelax.report import facts
from borelax.report.drawing import (
    COLUMN,
    PAGE,
    draw_bars,
    draw_lines,
    draw_moment,
    draw_paths,
    figure_bytes,
    new_figure,
)
from borelax.report.film import film
from borelax.report.meanings import UNITS
from borelax.report.page import Pictures
from borelax.report.run_data import RunData, thinned
from borelax.report.scene_svg import moments_of, telling_task
from borelax.report.scenes import Scenes
from borelax.report.svg import Series
from borelax.report.yardstick import best_by_episode

KINDS = ("svg", "pdf")


def write_figures(run: RunData, pictures: Pictures, out: Path) -> list[Path]:
    """Write every figure that can be made of a run; returns the files.

    What cannot be made is named in ``run.problems``.

    Raises:
        DataError: if none can be made; the reasons are named.
    """
    attempt, written = run.problems.attempt, []
    for name, make in figures(run, pictures).items():
        for kind in KINDS:
            data = attempt(f"{name}.{kind}", lambda make=make, kind=kind: make(kind))
            if data is not None:
                written.append(_write(out / f"{name}.{kind}", data))
    if pictures.scenes is not None:
        scenes = pictures.scenes
        moving = attempt("search.webp", lambda: film(scenes, 0, telling_task(scenes)))
        if moving is not None:
            written.append(_write(out / "search.webp", moving))
    if not written:
        reasons = " ".join(run.problems)
        raise DataError(f"No figure of {run.folder} could be made. {reasons}")
    return written


def figures(run: RunData, pictures: Pictures) -> dict[str, Callable[[str], bytes]]:
    """The figures that there is data for, by name; each makes its bytes of a kind."""
    scenes, made = pictures.scenes, {}
    if scenes is not None:
        task = telling_task(scenes)
        made["belief"] = lambda kind: belief_figure(scenes, 0, task, kind)
        if pictures.ways_of_data is not None and pictures.ways_of_agent is not None:
            made["paths"] = lambda kind: paths_figure(pictures, kind)
    if run.results is not None:
        results = run.results
        made["returns"] = lambda kind: bars_figure(facts.bars(results), kind)
    further = pictures.further
    if further is not None:
        episodes = np.arange(1.0, further.shape[1] + 1)
        lines = [Series("borelax", episodes, further.T), best_by_episode(run)]
        series, trained = [s for s in lines if s is not None], facts.episodes_of(run)
        made["episodes"] = lambda kind: episodes_figure(series, trained, kind)
    if run.curves:
        made["curves"] = lambda kind: curves_figure(run, kind)
    return made


def belief_figure(scenes: Scenes, seed: int, task: int, kind: str) -> bytes:
    """The belief at a few moments, the learned one above the exact one."""
    beliefs = {"learned belief": scenes.learned, "exact posterior": scenes.exact}
    rows = [(name, scenes, b) for name, b in beliefs.items() if b is not None]
    if scenes.frame.kind == "winds":
        name = "path" if scenes.learned is None else "path, wind believed"
        rows = [(name, scenes, scenes.learned)]
    return beliefs_figure(rows, seed, task, kind)


def beliefs_figure(
    rows: Sequence[tuple[str, Scenes, np.ndarray | None]],
    seed: int,
    task: int,
    kind: str,
) -> bytes:
    """Beliefs of one task at the same moments, a row each: name, scenes, belief.

    The moments are those of the first row's rollout; exact posteriors have no path.
    """
    first = rows[0][1]
    moments = moments_of(first, seed, task)
    low, high = first.frame.low, first.frame.high
    ratio = (high[1] - low[1]) / (high[0] - low[0])
    height = len(rows) * (PAGE / len(moments) * ratio + 0.05) + 0.3
    with new_figure(PAGE, height) as figure:
        grid = figure.subplots(len(rows), len(moments), squeeze=False)
        for row, (name, scenes, belief) in zip(grid, rows, strict=True):
            row[0].set_ylabel(name)
            path = belief is None or belief is scenes.learned
            for axes, (episode, step) in zip(row, moments, strict=True):
                where = (seed, task, episode, step)
                draw_moment(axes, scenes, belief, where, path=path)
        for axes, (episode, step) in zip(grid[0], moments, strict=True):
            axes.set_title(f"episode {episode + 1}, step {step}")
        return figure_bytes(figure, kind)


def paths_figure(pictures: Pictures, kind: str) -> bytes:
    """Paths in the data beside the meta-agent's first episodes."""
    scenes = pictures.scenes
    data, ways = pictures.ways_of_data, pictures.ways_of_agent
    if scenes is None or data is None or ways is None:
        raise ValueError("there are no paths to draw")
    with new_figure(PAGE, 3.2) as figure:
        left, right = figure.subplots(1, 2)
        draw_paths(left, scenes, data, pictures.goals_of_data)
        draw_paths(right, scenes, ways, pictures.goals_of_agent)
        left.set_title("the data: agents that know their task")
        right.set_title("the meta-agent: it has to find out")
        return figure_bytes(figure, kind)


def bars_figure(bars: Any, kind: str) -> bytes:
    """Returns beside the oracles'."""
    with new_figure(COLUMN * 1.4, 0.5 + 0.26 * len(bars)) as figure:
        draw_bars(figure.subplots(), bars)
        return figure_bytes(figure, kind)


def episodes_figure(series: Sequence[Series], trained: int, kind: str) -> bytes:
    """Return against episode; what was not trained on lies right of a line."""
    with new_figure(COLUMN, 2.2) as figure:
        axes = figure.subplots()
        draw_lines(axes, series, dots=True)
        episodes = max((one.x for one in series), key=len)
        if 0 < trained < len(episodes):
            axes.axvline(trained + 0.5, color="#777777", linestyle=":")
        if len(series) > 1:
            axes.legend()
        axes.set(xlabel="episode", ylabel="return of the episode", xticks=episodes)
        return figure_bytes(figure, kind)


def curves_figure(run: RunData, kind: str) -> bytes:
    """Every metric of every phase, three in a row."""
    curves = [thinned(curve) for curve in run.curves]
    rows = -(-len(curves) // 3)
    with new_figure(PAGE, 1.7 * rows) as figure:
        grid = figure.subplots(rows, 3, squeeze=False).ravel()
        for axes, curve in zip(grid, curves, strict=False):
            draw_lines(axes, [Series(curve.metric, curve.done, curve.values)])
            axes.set_title(f"{curve.phase}: {curve.metric}")
            axes.set_xlabel(UNITS.get(curve.phase, "done"))
        for axes in grid[len(curves) :]:
            axes.set_axis_off()
        return figure_bytes(figure, kind)


def _write(path: Path, data: bytes) -> Path:
    with atomic(path) as file:
        file.write(data)
    return path
