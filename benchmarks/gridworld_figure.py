"""Draw a Gridworld run: the search, the belief beside the exact posterior.

    python benchmarks/gridworld_figure.py runs/gridworld-quick-rewards docs/figures

Writes search.png (one goal, the belief at five moments above the exact posterior) and,
with --raw, relabelling.png (distance to the posterior along the rollout and return per
episode, with and without relabelling).
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import PowerNorm

from borelax import store
from borelax.experiment import Experiment
from borelax.oracles.gridworld import gridworld_oracle
from borelax.oracles.gridworld_belief import goal_distribution, posterior_errors
from borelax.oracles.gridworld_posterior import exact_posterior
from borelax.pipeline import Pipeline
from borelax.progress import Quiet

INK, MUTED = "#222222", "#777777"


def open_run(folder: Path) -> Pipeline:
    experiment = Experiment.from_json(store.read_json(folder / "experiment.json"))
    return Pipeline(experiment, folder, Quiet())


def first_seed(tree):
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[0], arrays), rest)


def draw_map(ax, values, size, path=None, goal=None):
    # a cell of twenty suspects must be seen beside a certain one
    shade = PowerNorm(0.4, vmin=0, vmax=1)
    ax.imshow(values.reshape(size, size), origin="lower", cmap="Blues", norm=shade)
    ax.set_xticks(np.arange(size) - 0.5, minor=True)
    ax.set_yticks(np.arange(size) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    if path is not None:
        x, y = path % size, path // size
        ax.plot(x, y, color="#d95f02", linewidth=2, solid_capstyle="round")
        ax.plot(x[-1], y[-1], "o", color="#d95f02", markersize=8)
    if goal is not None:
        ax.plot(goal % size, goal // size, "*", color="#1b7837", markersize=13)


def search_figure(run: Pipeline, task: int, out: Path) -> None:
    gridworld = run.experiment.family
    size, horizon = gridworld.size, gridworld.horizon
    model = first_seed(run.model)
    rollout = jax.tree.map(lambda x: x[0, task, 0], run.rollouts)
    steps = rollout.transitions()
    means = model.encoder.filter(steps).mean
    decoded = np.asarray(
        jax.vmap(lambda m: goal_distribution(model.decoder, gridworld, m))(means)
    )
    exact = np.asarray(exact_posterior(gridworld, steps))
    cells = np.asarray(rollout.obs.argmax(-1))
    goal = int(gridworld.goals()[task])
    moments = [0, 5, 10, horizon, horizon + 6]
    fig, axes = plt.subplots(2, 5, figsize=(10, 4.6), layout="constrained")
    for column, t in enumerate(moments):
        episode, step = divmod(t, horizon) if t else (0, 0)
        step, episode = (horizon, episode - 1) if t and step == 0 else (step, episode)
        path = cells[episode, : step + 1]
        draw_map(axes[0, column], decoded[t], size, path, goal)
        draw_map(axes[1, column], exact[t], size, None, goal)
        axes[0, column].set_title(
            f"episode {episode + 1}, step {step}", fontsize=10, color=INK
        )
    axes[0, 0].set_ylabel("learned belief", color=INK)
    axes[1, 0].set_ylabel("exact posterior", color=INK)
    fig.savefig(out / "search.png", dpi=110)


def error_figure(runs: list[Pipeline], out: Path) -> None:
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    names = {"rewards": "rewards relabelled", "none": "raw logs"}
    colours = {"rewards": "#1f78b4", "none": "#d95f02"}
    for run in runs:
        kind = run.experiment.relabel.name
        gridworld = run.experiment.family
        errors = np.asarray(posterior_errors(gridworld, run.model, run.rollouts))
        curve = errors.mean(axis=(0, 1, 2))
        left.plot(curve, color=colours[kind], linewidth=2, label=names[kind])
        rewards = np.asarray(run.rollouts.reward).sum(-1).mean(axis=(0, 1, 2))
        episodes = np.arange(1, len(rewards) + 1)
        right.plot(episodes, rewards, "o-", color=colours[kind], label=names[kind])
    family = runs[0].experiment.family
    for episode in range(1, family.episodes):
        left.axvline(episode * family.horizon, color=MUTED, linewidth=0.5)
    left.set(xlabel="step of the rollout", ylabel="total variation to the posterior")
    left.set_ylim(0, None)
    left.legend(frameon=False)
    exact = gridworld_oracle(family).per_episode
    right.plot(episodes, exact["bayes_optimal"], "k--", label="Bayes-optimal")
    thompson = exact["thompson_per_episode"]
    right.plot(episodes, thompson, ":", color=MUTED, label="Thompson sampling")
    right.set(xlabel="episode", ylabel="return", xticks=episodes)
    right.legend(frameon=False, fontsize=8, loc="lower right")
    right.set_ylim(-6, 12)
    fig.savefig(out / "relabelling.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--raw", type=Path, help="the same run with --relabel none")
    parser.add_argument("--task", type=int, default=16, help="which goal to draw")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    run = open_run(args.run)
    search_figure(run, args.task, args.out)
    if args.raw is not None:
        error_figure([run, open_run(args.raw)], args.out)


if __name__ == "__main__":
    main()
