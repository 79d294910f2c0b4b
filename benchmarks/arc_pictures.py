"""Searches on the half circle: where agents went, and what they believed meanwhile.

    python benchmarks/arc_pictures.py RUN --out FOLDER

For runs of Semi-circle and Ant-Semi-circle, also without their logs.
``paths.png``: some test tasks, in six colours that repeat, both episodes, a row for
each seed.
``beliefs.png``: for each seed the test task with the worst return and one of middling
return: reward expected at each angle, learned and exact, over the steps of the rollout,
with the agent's own angle where it is near the arc, and the training goals.
"""

import argparse
from pathlib import Path

import numpy as np

from borelax.files import atomic
from borelax.report.decoded import exact_along, learned_along
from borelax.report.drawing import (
    COLOURS,
    INK,
    ORANGE,
    blues,
    figure_bytes,
    new_figure,
)
from borelax.report.frames import Frame
from borelax.report.trained import Trained, at, of_seed
from borelax.run_folder import read_experiment
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.semicircle import SemiCircle

DEGREES = 180
NEAR = 0.3
"""An agent this close to the arc is near it."""


def beliefs(trained: Trained, seed: int, task: int) -> dict[str, np.ndarray]:
    """Reward expected at every degree [T+1, 180]."""
    circle = Frame("ring", (-1.0, -1.0), (1.0, 1.0), (2 * DEGREES, 1), "")
    few = at(trained.tested, np.s_[seed : seed + 1, task : task + 1])
    model = of_seed(trained.model, seed)
    learned = learned_along(circle, trained.family, model, of_seed(few, 0))[0]
    exact = exact_along(circle, trained.family, few)[0, 0]
    return {
        "learned": np.asarray(learned)[:, :DEGREES],
        "exact": np.asarray(exact)[:, :DEGREES],
    }


def own_angle(places: np.ndarray) -> np.ndarray:
    """The agent's angle in degrees after each step; NaN far from the arc."""
    angle, radius = np.arctan2(*places.T[::-1]), np.linalg.norm(places, axis=1)
    near = (np.abs(radius - 1) < NEAR) & (angle >= 0)
    return np.where(near, np.degrees(angle), np.nan)


def draw_beliefs(trained: Trained) -> bytes:
    """A row for each seed."""
    returns = np.asarray(trained.tested.paid()).sum(axis=(2, 3))
    with new_figure(9.0, 1.9 * len(returns)) as figure:
        rows = figure.subplots(len(returns), 4, sharex=True, sharey=True, squeeze=False)
        for seed, row in enumerate(rows):
            ranked = np.argsort(returns[seed])
            worst, middling = ranked[0], ranked[(len(ranked) - 1) // 2]
            for panels, task in ((row[:2], worst), (row[2:], middling)):
                title = f"seed {seed}, return {returns[seed, task]:.0f}"
                draw_task(panels, trained, seed, int(task), title)
            row[0].set_ylabel("angle")
        for axes in rows[-1]:
            axes.set_xlabel("step")
        return figure_bytes(figure, "png")


def draw_task(panels, trained: Trained, seed: int, task: int, title: str) -> None:
    """The learned belief and the posterior of one rollout, side by side."""
    goals = np.asarray(trained.trained_on())
    trained_on = np.degrees(np.arctan2(goals[:, 1], goals[:, 0]))
    path = own_angle(
        np.asarray(trained.tested.obs[seed, task, :, 1:, :2]).reshape(-1, 2)
    )
    for axes, (name, values) in zip(
        panels, beliefs(trained, seed, task).items(), strict=True
    ):
        extent = (0, len(values), 0, DEGREES)
        shades = {"origin": "lower", "vmin": 0, "vmax": 1, "cmap": blues()}
        axes.imshow(values.T, aspect="auto", extent=extent, **shades)
        axes.plot(np.arange(1, len(path) + 1), path, color=ORANGE, lw=1)
        axes.plot(np.full(len(goals), 3.0), trained_on, ".", color=INK, ms=2)
        axes.set(ylim=(0, DEGREES), title=f"{name}, {title}")


def draw_paths(trained: Trained, count: int = 15) -> bytes:
    """Test tasks evenly by angle, from right to left."""
    from matplotlib.patches import Circle

    returns = np.asarray(trained.tested.paid()).sum(axis=3)
    goals, places = np.asarray(trained.tasks), np.asarray(trained.tested.obs)[..., :2]
    angles = np.arctan2(goals[:, 1], goals[:, 0])
    some = np.argsort(angles)[:: max(1, len(goals) // count)]
    seeds, _, episodes = returns.shape
    with new_figure(3.4 * episodes, 2.3 * seeds) as figure:
        rows = figure.subplots(seeds, episodes, squeeze=False)
        for (seed, episode), axes in np.ndenumerate(rows):
            for n, task in enumerate(some):
                colour = COLOURS[n % 6]
                disc = Circle(goals[task], trained.family.goal_radius, lw=0)
                disc.set(color=colour, alpha=0.25)
                axes.add_patch(disc)
                axes.plot(*places[seed, task, episode].T, color=colour, lw=1.0)
            earned = returns[seed, :, episode].mean()
            title = f"seed {seed}, episode {episode + 1}: return {earned:.0f}"
            axes.set(aspect="equal", xlim=(-1.4, 1.4), ylim=(-0.3, 1.35), title=title)
            axes.set_axis_off()
        return figure_bytes(figure, "png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path())
    args = parser.parse_args()
    trained = Trained(args.run, read_experiment(args.run))
    if not isinstance(trained.family, SemiCircle | AntSemiCircle) or not trained.model:
        parser.error("the run must be of a semi-circle, with a learned belief")
    pictures = {"paths.png": draw_paths, "beliefs.png": draw_beliefs}
    for name, picture in pictures.items():
        with atomic(args.out / name) as file:
            file.write(picture(trained))
        print(args.out / name)


if __name__ == "__main__":
    main()
