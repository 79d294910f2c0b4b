"""What ``borelax oracle`` prints, and draws if it is given a file."""

from pathlib import Path
from typing import Any

from rich.table import Table

from borelax.oracles.gridworld import GridworldOracle
from borelax.oracles.oracle import Solved, solve
from borelax.oracles.search_oracle import SearchOracle
from borelax.oracles.wind import WindOracle
from borelax.report.oracle_figure import check_suffix, draw_oracle
from borelax.report.printed import Printed
from borelax.tasks.gridworld import Gridworld

ARROWS = "·↑→↓←"
GRIDWORLD_ROWS = {
    "Bayes-optimal": "bayes_optimal",
    "Thompson sampling, redrawn when ruled out": "thompson_per_step",
    "Thompson sampling, per episode": "thompson_per_episode",
    "task known": "known_task",
}
SEARCH_ROWS = {
    "Bayes-optimal, at least": "bayes_optimal",
    "Bayes-optimal, at most": "upper_bound",
    "Thompson sampling, redrawn when ruled out": "thompson_per_step",
    "Thompson sampling, per episode": "thompson_per_episode",
    "task known": "known_task",
}
WIND_ROWS = {
    "Bayes-optimal": "bayes_optimal",
    "goal-seeker without memory": "memoryless",
    "task known": "known_task",
}


def print_oracle(
    family: Any,
    recompute: bool = False,
    plot: Path | None = None,
) -> None:
    """A table of expected returns, how they are earned, and a picture if asked for."""
    if plot is not None:
        check_suffix(plot)
    console = Printed()
    with console.status("Looking for the best possible agents"):
        solved = solve(family, recompute=recompute)
    console.print(_table(family, solved))
    for line in _lines(family, solved):
        console.print(line, highlight=False, soft_wrap=True)
    if plot is not None:
        draw_oracle(family, solved, plot)
        console.print(f"Picture: {plot}", highlight=False, soft_wrap=True)


def _table(family, solved: Solved) -> Table:
    table = Table(title=_title(family), title_style="bold")
    exact = not isinstance(solved, SearchOracle)
    table.add_column("exact expected return" if exact else "expected return")
    for number in range(family.episodes):
        table.add_column(f"episode {number + 1}", justify="right")
    table.add_column("total", justify="right")
    for title, name in _rows(solved).items():
        values = solved.per_episode.get(name)
        if values is None:
            table.add_row(title, *["too large"] * (family.episodes + 1))
        else:
            table.add_row(title, *(f"{v:.3f}" for v in (*values, sum(values))))
    return table


def _rows(solved: Solved) -> dict[str, str]:
    if isinstance(solved, GridworldOracle):
        return GRIDWORLD_ROWS
    return SEARCH_ROWS if isinstance(solved, SearchOracle) else WIND_ROWS


def _title(family) -> str:
    episodes = f"{family.episodes} episode{'s' * (family.episodes > 1)}"
    name = family.name.capitalize()
    if isinstance(family, Gridworld):
        name = f"{name} {family.size}×{family.size}"
    return f"{name}, H {family.horizon}, {episodes}"


def _lines(family, solved: Solved) -> list[str]:
    """How the best agent goes about it."""
    if isinstance(solved, SearchOracle):
        return ["Without knowing the task, the best return lies between the two."]
    if isinstance(solved, WindOracle):
        x, y = solved.first_action
        return [
            f"First action ({x:.2f}, {y:.2f}); it tells the wind.",
            f"Best gain without memory: {solved.gain:.2f}.",
        ]
    if solved.plan is None:
        return []
    horizon, actions = family.horizon, solved.plan.search_actions
    parts = [actions[i : i + horizon] for i in range(0, len(actions), horizon)]
    return [
        f"search, episode {number}: " + "".join(ARROWS[action] for action in part)
        for number, part in enumerate(parts, start=1)
    ]
