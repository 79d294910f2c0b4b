"""Pictures of the best agents: where they look, and in which order.

In: a family and its solution. Out: a PNG, SVG or PDF, by the file's name, with the same
bytes for the same solution.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.errors import ConfigError, require
from borelax.files import atomic
from borelax.oracles.gridworld import GridworldOracle
from borelax.oracles.oracle import Solved
from borelax.oracles.search import first_step, margins, midpoints, path_of
from borelax.oracles.search_oracle import SearchOracle, search_world
from borelax.oracles.wind import WindOracle, WindPolicy
from borelax.report.drawing import (
    COLOURS,
    INK,
    MUTED,
    PAGE,
    figure_bytes,
    new_figure,
)
from borelax.simulate.rollout import rollout
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.wind import GOAL, Wind

SUFFIXES = (".png", ".svg", ".pdf")
PALE = "#e4e4e4"
WORTH_DRAWING = 0.01
"""An episode is drawn if its search finds at least this share of the tasks."""
EPISODES = COLOURS[:4]


def check_suffix(path: Path) -> None:
    """Refuse a file whose name says no known kind of picture."""
    require(
        path.suffix.lower() in SUFFIXES,
        f"A picture's name ends in {', '.join(SUFFIXES)}; {str(path)!r} does not.",
    )


def draw_oracle(family: Any, solved: Solved, path: Path) -> None:
    """Draw the best agent's ways and write the picture."""
    check_suffix(path)
    with new_figure(PAGE, 4.8) as figure:
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        if isinstance(solved, SearchOracle):
            _draw_search(axes, solved)
        elif isinstance(solved, WindOracle):
            _draw_wind(axes, family, solved)
        else:
            _draw_grid(axes, family, solved)
        data = figure_bytes(figure, path.suffix.lower().removeprefix("."))
    with atomic(path) as file:
        file.write(data)


def _draw_search(axes, solved: SearchOracle) -> None:
    """The path until nothing is left to find, each step a numbered dot."""
    family = solved.family
    world = search_world(family)
    actions = solved.actions.reshape(family.episodes, family.horizon, 2)
    angles = jnp.asarray(midpoints(1_024), jnp.float32)
    first = np.asarray(first_step(margins(world, actions, angles)))
    places = np.asarray(path_of(world, actions))
    _draw_surroundings(axes, family)
    for episode in range(family.episodes):
        start = episode * family.horizon
        here = first[(first >= start) & (first < start + family.horizon)]
        if len(here) >= WORTH_DRAWING * len(first):
            last = int(here.max()) - start + 1
            finds = np.unique(here) - start + 1
            way = places[episode, : last + 1]
            _draw_way(axes, way, finds, EPISODES[episode % len(EPISODES)], episode)
    total = sum(solved.bayes_optimal)
    share = float((first < len(solved.actions)).mean())
    axes.set_title(
        f"{family.name}: the search that returns {total:.2f} in "
        f"{family.episodes} × {family.horizon} steps",
        color=INK,
    )
    axes.set_xlabel(f"finds {share:.1%} of the tasks", color=MUTED)
    place = (0.5, 0.3) if isinstance(family, EscapeRoom) else (0.34, 0.2)
    axes.legend(frameon=False, loc="center", bbox_to_anchor=place)


def _draw_way(axes, way: np.ndarray, finds: np.ndarray, colour: str, episode: int):
    label = f"episode {episode + 1}, {len(way) - 1} steps"
    axes.plot(*way.T, "-", color=colour, linewidth=1.5, label=label, zorder=3)
    axes.plot(*way[finds].T, "o", color=colour, markersize=5, zorder=4)
    blank = np.setdiff1d(np.arange(len(way)), finds)
    axes.plot(
        *way[blank].T,
        "o",
        color=colour,
        markersize=5,
        markerfacecolor="white",
        zorder=4,
    )
    for number in range(2, len(way), 2):
        axes.annotate(
            str(number),
            way[number],
            xytext=tuple(9 * _inward(way, number)),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            color=MUTED,
        )


def _inward(way: np.ndarray, number: int) -> np.ndarray:
    """The direction across the way that points to the centre."""
    x, y = way[min(number + 1, len(way) - 1)] - way[number - 1]
    across = np.array([-y, x]) / max(float(np.hypot(x, y)), 1e-6)
    return -across if across @ way[number] > 0 else across


def _draw_surroundings(axes, family) -> None:
    """The ring of discs, or the wall and the doors' part of it."""
    whole, upper = np.linspace(0, 2 * np.pi, 361), np.linspace(0, np.pi, 181)
    circle = np.stack([np.cos(whole), np.sin(whole)])
    arc = np.stack([np.cos(upper), np.sin(upper)])
    if isinstance(family, EscapeRoom):
        axes.plot(*circle, color=MUTED, linewidth=2)
        label = "centres of doors"
    else:
        for angle in np.linspace(0, np.pi, 17):
            x, y = np.cos(angle), np.sin(angle)
            disc = np.array([[x], [y]]) + family.goal_radius * circle
            axes.fill(*disc, color=PALE, alpha=0.5, linewidth=0)
        label = "goals"
    axes.plot(*arc, color=INK, linewidth=2, linestyle="--", label=label, zorder=2)
    axes.plot(0, 0, "s", color=INK, markersize=6, zorder=5)


def _draw_wind(axes, wind: Wind, solved: WindOracle) -> None:
    """Five winds, each with an arrow of what it adds to a step."""
    strong = 0.9 * wind.strongest
    winds = np.array([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]]) * strong
    policy = WindPolicy(jnp.asarray(solved.first_action), wind)
    ways = jax.vmap(
        lambda w: rollout(wind, policy, w, episodes=1, start="fixed", key=jr.key(0)).obs
    )(jnp.asarray(winds, jnp.float32))
    turn = np.linspace(0, 2 * np.pi, 181)
    disc = np.array([[GOAL[0]], [GOAL[1]]]) + wind.goal_radius * np.stack(
        [np.cos(turn), np.sin(turn)]
    )
    axes.fill(*disc, color=PALE, linewidth=0, label="goal")
    styles = zip(ways[:, 0], winds, (MUTED, *EPISODES), strict=True)
    rose = np.array([0.55, 0.35])
    for way, blowing, colour in styles:
        label = f"wind ({blowing[0]:+.3f}, {blowing[1]:+.3f})"
        axes.plot(*np.asarray(way).T, "o-", color=colour, markersize=3, label=label)
        arrow = {"arrowstyle": "->", "color": colour, "linewidth": 2}
        end = rose + 0.15 * blowing / wind.strongest
        axes.annotate("", end, rose, arrowprops=arrow)
    axes.plot(0, 0, "s", color=INK, markersize=6, zorder=5)
    axes.set_xlim(-0.5, 1.5)
    total = sum(solved.bayes_optimal)
    axes.set_title(f"{wind.name}: one step tells the wind; {total:.2f}", color=INK)
    axes.legend(frameon=False, loc="upper right")


def _draw_grid(axes, grid: Gridworld, solved: GridworldOracle) -> None:
    """The order in which cells are entered, one path per episode."""
    if solved.plan is None:
        raise ConfigError(
            f"There is no search to draw: the {grid.size}×{grid.size} grid is too "
            "large to solve. Leave out --plot, or choose a smaller grid."
        )
    cells = np.asarray(solved.plan.search_cells(grid)).reshape(-1, grid.horizon)
    possible = np.zeros(grid.num_cells)
    possible[grid.goals()] = 1
    board = possible.reshape(grid.size, grid.size)
    axes.imshow(board, origin="lower", cmap="Greys", vmin=0, vmax=8)
    axes.set_xticks(np.arange(grid.size + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(grid.size + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    seen: set[int] = set()
    for episode, row in enumerate(cells):
        colour = EPISODES[episode % len(EPISODES)]
        entered = zip(*np.unique(row, return_index=True), strict=True)
        new = [step for cell, step in entered if possible[cell] and cell not in seen]
        seen |= set(row.tolist())
        if new:
            _draw_cells(axes, grid, row[: max(new) + 1], colour, episode)
    title = f"{grid.name}: the search that returns {solved.bayes_optimal:.2f}"
    axes.set_title(title, color=INK)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_cells(axes, grid: Gridworld, row: np.ndarray, colour: str, episode: int):
    """One episode's path, a little beside the others'."""
    path = np.concatenate([[0], row])
    x, y = path % grid.size + 0.1 * episode, path // grid.size + 0.1 * episode
    label = f"episode {episode + 1}, {len(row)} steps"
    axes.plot(x, y, "o-", color=colour, linewidth=2, markersize=5, label=label)
    for number in range(1, len(path)):
        axes.annotate(
            str(number),
            (x[number], y[number]),
            xytext=(7, 7),
            textcoords="offset points",
            fontsize=8,
            color=colour,
        )
