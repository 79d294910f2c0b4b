"""Scenes and runs made of fixed arrays, for tests that need no training."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from borelax.report.frames import CELLS_OF_PLANE, Frame
from borelax.report.page import Pictures
from borelax.report.run_data import RunData, read_run
from borelax.report.scenes import Scenes

HORIZON, EPISODES = 3, 2


def grid_scenes(seeds: int = 1) -> Scenes:
    """Two tasks of a 3 × 3 grid; the agent walks along the bottom row, twice."""
    frame = Frame("cells", (-0.5, -0.5), (2.5, 2.5), (3, 3), "chance of the goal")
    row = np.array([[0, 0], [1, 0], [2, 0], [2, 0]], float)
    place = np.tile(row, (seeds, 2, EPISODES, 1, 1))
    reward = np.full((seeds, 2, EPISODES, HORIZON), -0.1)
    reward[:, 0, :, 1:] = 1.0  # the first task's goal is in the corner
    moments = EPISODES * HORIZON + 1
    belief = np.zeros((seeds, 2, moments, 9))
    belief[..., 2] = np.linspace(0.25, 1, moments)
    belief[..., 8] = 1 - belief[..., 2]
    return Scenes(
        frame=frame,
        labels=("goal in the corner", "goal at the top <ß>"),
        goals=np.array([[2.0, 0.0], [2.0, 2.0]]),
        radius=0.0,
        fixed_goal=None,
        place=place,
        reward=reward,
        learned=belief,
        exact=belief,
        chosen=np.arange(2),
        num_tested=2,
    )


def plane_scenes() -> Scenes:
    """One task of a half circle; the agent walks straight up."""
    frame = Frame("plane", (-1.6, -0.8), (1.6, 1.6), (4, 3), "reward expected here")
    way = np.stack([np.zeros(4), np.linspace(0, 0.9, 4)], -1)
    reward = np.zeros((1, 1, EPISODES, HORIZON))
    reward[..., -1] = 1.0
    belief = np.linspace(0, 1, 7 * 12).reshape(1, 1, 7, 12)
    return Scenes(
        frame=frame,
        labels=("goal at 90°",),
        goals=np.array([[0.0, 1.0]]),
        radius=0.2,
        fixed_goal=None,
        place=np.tile(way, (1, 1, EPISODES, 1, 1)),
        reward=reward,
        learned=belief,
        exact=belief[..., ::-1],
        chosen=np.zeros(1, int),
        num_tested=1_000,
    )


def ant_scenes(seeds: int = 1) -> Scenes:
    """As many numbers as the page of an Ant run has, all of them different."""
    rng = np.random.default_rng(0)
    episodes, horizon, columns, rows = 2, 200, *CELLS_OF_PLANE
    moments = (seeds, 6, episodes * horizon + 1, columns * rows)
    return replace(
        plane_scenes(),
        frame=Frame("plane", (-1.6, -0.8), (1.6, 1.6), CELLS_OF_PLANE, "reward"),
        labels=tuple(f"goal at {angle}°" for angle in range(6)),
        goals=rng.normal(size=(6, 2)),
        place=rng.normal(size=(seeds, 6, episodes, horizon + 1, 2)),
        reward=rng.normal(size=(seeds, 6, episodes, horizon)).astype(np.float32),
        learned=rng.random(moments, np.float32),
        exact=rng.random(moments, np.float32),
        chosen=np.arange(6),
        num_seeds=seeds,
    )


def ring_scenes() -> Scenes:
    """One room whose door is to the right; the wall has four parts."""
    frame = Frame("ring", (-2.5, -1.3), (2.5, 2.7), (4, 1), "how far through")
    belief = np.tile([1.0, 0.5, 0.0, 0.25], (1, 1, 7, 1))
    way = np.stack([np.linspace(0, 1.2, 4), np.full(4, 0.1)], -1)
    return replace(
        plane_scenes(),
        frame=frame,
        labels=("door at 5°",),
        goals=np.array([[1.0, 0.1]]),
        radius=0.4,
        place=np.tile(way, (1, 1, EPISODES, 1, 1)),
        learned=belief,
        exact=belief,
    )


def wind_scenes() -> Scenes:
    """One wind, believed to be none at first and known at the end."""
    frame = Frame("winds", (-0.8, -0.4), (0.8, 1.4), (1, 1), "wind")
    wind = np.array([0.04, -0.02])
    belief = np.linspace(0, 1, 7)[None, None, :, None] * wind
    return replace(
        plane_scenes(),
        frame=frame,
        labels=("wind (+0.040, -0.020)",),
        goals=wind[None],
        fixed_goal=(0.0, 1.0),
        learned=belief,
        exact=belief,
    )


def pictures(scenes: Scenes) -> Pictures:
    """Everything a page can show of them."""
    returns = np.array([[1.0, 2.0, 3.0, 3.0]])
    ways = scenes.place[0, :, 0]
    return Pictures(scenes, returns, 2, ways, scenes.goals, ways, scenes.goals)


def bare_run(folder: Path, rows: list[dict] | None = None) -> RunData:
    """A folder that holds little: settings without meaning, and some metrics."""
    (folder / "4-meta").mkdir(parents=True)
    (folder / "experiment.json").write_text(json.dumps({"preset": "ключ ☃"}))
    lines = "".join(json.dumps(row) + "\n" for row in rows or [])
    (folder / "4-meta" / "metrics.jsonl").write_text(lines)
    return read_run(folder)
