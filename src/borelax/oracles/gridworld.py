"""Gridworld's yardsticks, all exact: Bayes-optimal, known task, Thompson sampling.

``python -m borelax.oracles.gridworld`` solves the grids listed here and writes
``solved.json``, so that later calls need not.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from borelax.errors import ConfigError
from borelax.oracles.gridworld_plan import GridworldPlan
from borelax.oracles.gridworld_planner import plan_search
from borelax.oracles.gridworld_returns import known_task
from borelax.oracles.gridworld_thompson import thompson_per_episode, thompson_per_step
from borelax.tasks.gridworld import Gridworld

Solution = TypeVar("Solution")

SOLVED = Path(__file__).with_name("solved.json")
SOLVED_GRIDS = (Gridworld(), Gridworld(size=4), Gridworld(size=3))


@dataclass(frozen=True)
class GridworldOracle:
    """Expected undiscounted returns, summed over the episodes of a rollout.

    What is too large to solve exactly is None.
    """

    bayes_optimal: float | None
    """Of the best policy that does not know the goal."""
    known_task: float
    """Of the best policy that does."""
    thompson_per_episode: float | None
    """Of a goal drawn from the posterior in each episode."""
    thompson_per_step: float | None
    """Of a goal drawn also as soon as the last one proves empty."""
    plan: GridworldPlan | None
    """How to be Bayes-optimal."""
    per_episode: dict[str, tuple[float, ...]] = field(hash=False)
    """Each of the four, episode by episode."""
    exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """The summed returns."""
        return {
            "bayes_optimal": self.bayes_optimal,
            "known_task": self.known_task,
            "thompson_per_episode": self.thompson_per_episode,
            "thompson_per_step": self.thompson_per_step,
            "exact": self.exact,
        }


def gridworld_oracle(gridworld: Gridworld, recompute: bool = False) -> GridworldOracle:
    """The oracle of a grid: read if it was solved before, else computed."""
    if not recompute:
        for entry in json.loads(SOLVED.read_text()):
            if entry["gridworld"] == asdict(gridworld):
                return _read(entry["oracle"])
    return _compute(gridworld)


def solve_and_save() -> None:
    """Solve the grids of ``SOLVED_GRIDS`` and write ``solved.json``."""
    entries = [
        {"gridworld": asdict(grid), "oracle": asdict(_compute(grid))}
        for grid in SOLVED_GRIDS
    ]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    SOLVED.write_text(f"[\n{lines}\n]\n")


def _compute(gridworld: Gridworld) -> GridworldOracle:
    plan = _if_solvable(plan_search, gridworld)
    by_step = _if_solvable(thompson_per_step, gridworld)
    by_episode = _if_solvable(thompson_per_episode, gridworld)
    known = known_task(gridworld)
    returns = {
        "bayes_optimal": plan,
        "known_task": known,
        "thompson_per_episode": by_episode,
        "thompson_per_step": by_step,
    }
    return GridworldOracle(
        bayes_optimal=plan and plan.value,
        known_task=known.value,
        thompson_per_episode=by_episode and by_episode.value,
        thompson_per_step=by_step and by_step.value,
        plan=plan,
        per_episode={name: each.per_episode for name, each in returns.items() if each},
    )


def _if_solvable(
    solve: Callable[[Gridworld], Solution], gridworld: Gridworld
) -> Solution | None:
    """The exact solution, or None where the solver refuses the grid's size."""
    try:
        return solve(gridworld)
    except ConfigError:
        return None


def _read(oracle: dict[str, Any]) -> GridworldOracle:
    """Undo ``asdict``: JSON knows no tuples."""
    plan = oracle.pop("plan")
    per_episode = oracle.pop("per_episode")
    return GridworldOracle(
        **oracle,
        plan=GridworldPlan(
            plan["value"], tuple(plan["per_episode"]), tuple(plan["search_actions"])
        ),
        per_episode={name: tuple(each) for name, each in per_episode.items()},
    )


if __name__ == "__main__":
    solve_and_save()
