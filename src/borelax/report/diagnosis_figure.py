"""The picture of a diagnosis: tasks against tasks, and where the steps lie.

In: a ``Diagnosis``. Out: a PNG, SVG or PDF, by the file's name, with the same bytes for
the same diagnosis.
"""

import math
from pathlib import Path

import numpy as np

from borelax.ambiguity.diagnose import Diagnosis
from borelax.files import atomic
from borelax.report.drawing import INK, MUTED, figure_bytes, new_figure
from borelax.report.oracle_figure import PALE, check_suffix

MOST_POINTS = 4_000
TELLING = 0.5
"""A step is drawn in colour if it tells its task from more than this share."""


def draw_diagnosis(diagnosis: Diagnosis, path: Path) -> None:
    """Draw both panels and write the picture."""
    check_suffix(path)
    with new_figure(8.6, 4.0) as figure:
        left, right = figure.subplots(1, 2)
        shown = _draw_pairs(left, diagnosis)
        _draw_places(right, diagnosis)
        bar = figure.colorbar(shown, ax=right, shrink=0.8)
        bar.set_label("telling steps with a counterpart", color=INK)
        data = figure_bytes(figure, path.suffix.lower().removeprefix("."))
    with atomic(path) as file:
        file.write(data)


def _draw_pairs(axes, diagnosis: Diagnosis):
    """Dark where tasks are ambiguous; grey where nothing tells them."""
    share = np.array(diagnosis.pairs.share)
    np.fill_diagonal(share, np.nan)
    axes.set_facecolor(PALE)
    shown = axes.imshow(share, vmin=0, vmax=1, cmap="cividis", interpolation="nearest")
    axes.set_title(f"pairs of tasks: {diagnosis.as_logged.verdict}", color=INK)
    for axis, name in ((axes.xaxis, "task"), (axes.yaxis, "task")):
        axis.set_label_text(name)
        axis.get_major_locator().set_params(integer=True)
    return shown


def _draw_places(axes, diagnosis: Diagnosis) -> None:
    """Where steps end, in two dimensions; those that tell a task are coloured."""
    steps, pairs = diagnosis.sample.asked, diagnosis.pairs
    where, names = _flat(steps.next_obs.reshape(-1, steps.next_obs.shape[-1]))
    rng = np.random.default_rng(0)
    some = rng.permutation(len(where))[:MOST_POINTS]
    tells = pairs.step_telling.ravel()[some] > TELLING
    places = where[some]
    axes.scatter(*places[~tells].T, s=4, color=MUTED, alpha=0.4, linewidths=0)
    axes.scatter(
        *places[tells].T,
        s=7,
        c=pairs.step_counterparts.ravel()[some][tells],
        vmin=0,
        vmax=1,
        cmap="cividis",
        linewidths=0,
    )
    axes.set_title("coverage: steps that tell a task, in colour", color=INK)
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])


def _flat(obs: np.ndarray) -> tuple[np.ndarray, tuple[str, str]]:
    """States in the plane: as they are, as cells of a grid, or by their main axes."""
    size = obs.shape[1]
    side = math.isqrt(size)
    one_hot = ((obs == 0) | (obs == 1)).all() and (obs.sum(axis=1) == 1).all()
    if one_hot and side * side == size and size > 1:
        cell = obs.argmax(axis=1)
        jitter = np.random.default_rng(1).uniform(-0.4, 0.4, (len(obs), 2))
        return np.stack([cell % side, cell // side], axis=1) + jitter, ("x", "y")
    if size == 1:
        return np.stack([obs[:, 0], np.zeros(len(obs))], axis=1), ("state", "")
    if size == 2:
        return obs, ("first coordinate", "second coordinate")
    spread = obs.std(axis=0)
    rows = (obs - obs.mean(axis=0)) / np.where(spread > 1e-6, spread, 1)
    main = np.linalg.svd(rows.T @ rows)[0][:, :2]
    return rows @ main, ("first principal axis", "second principal axis")
