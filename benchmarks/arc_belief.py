"""What a run believes along the half circle, step by step, against the posterior.

    python benchmarks/arc_belief.py RUN --out arc.png

For runs of Semi-circle and Ant-Semi-circle, also without their logs. For each seed the
test task with the worst return and one of middling return: reward expected at each
angle, learned and exact, over the steps of the rollout, with the agent's own angle
where it is near the arc, and the training goals.
"""

import argparse
from pathlib import Path

import numpy as np

from borelax.files import atomic
from borelax.report.decoded import exact_along, learned_along
from borelax.report.drawing import figure_bytes, new_figure
from borelax.report.frames import Frame
from borelax.report.trained import Trained, at, of_seed
from borelax.run_folder import read_experiment

DEGREES = 180
NEAR = 0.7
"""Distance from the centre from which on an agent is near the arc."""


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
    angle = np.degrees(np.arctan2(places[:, 1], places[:, 0]))
    return np.where(np.linalg.norm(places, axis=1) > NEAR, angle, np.nan)


def draw(trained: Trained) -> bytes:
    """A row for each seed."""
    returns = np.asarray(trained.tested.paid()).sum(axis=(2, 3))
    goals = np.asarray(trained.trained_on())
    trained_on = np.degrees(np.arctan2(goals[:, 1], goals[:, 0]))
    with new_figure(9.0, 1.9 * len(returns)) as figure:
        rows = figure.subplots(len(returns), 4, sharex=True, sharey=True, squeeze=False)
        for seed, row in enumerate(rows):
            ranked = np.argsort(returns[seed])
            for pair, task in enumerate((ranked[0], ranked[len(ranked) // 2])):
                places = np.asarray(trained.tested.obs[seed, task, :, 1:, :2])
                path = own_angle(places.reshape(-1, 2))
                maps = beliefs(trained, seed, int(task))
                for axes, (name, values) in zip(
                    row[2 * pair :], maps.items(), strict=False
                ):
                    extent = (0, len(values), 0, DEGREES)
                    axes.imshow(
                        values.T,
                        aspect="auto",
                        origin="lower",
                        extent=extent,
                        vmin=0,
                        vmax=1,
                    )
                    axes.plot(np.arange(1, len(path) + 1), path, color="#ff5555", lw=1)
                    axes.plot(np.full(len(goals), 3.0), trained_on, "w.", ms=2)
                    earned = returns[seed, task]
                    axes.set_title(f"{name}, seed {seed}, return {earned:.0f}")
            row[0].set_ylabel("angle")
        for axes in rows[-1]:
            axes.set_xlabel("step")
        return figure_bytes(figure, "png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, default=Path("arc.png"))
    args = parser.parse_args()
    trained = Trained(args.run, read_experiment(args.run))
    with atomic(args.out) as file:
        file.write(draw(trained))
    print(args.out)


if __name__ == "__main__":
    main()
