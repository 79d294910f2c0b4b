"""Yardsticks of Semi-circle and Escape-Room: a search path, a bound, the known task.

``python -m borelax.oracles.search_oracle`` solves the families listed here and writes
``searched.json``, so that later calls need not.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from borelax.oracles.escape_room import EscapeRoomSearch
from borelax.oracles.search import (
    SearchWorld,
    known_returns,
    midpoints,
    path_value,
    walks_to_landmarks,
)
from borelax.oracles.search_bound import NUM_ANGLES, upper_bound
from borelax.oracles.search_optimise import Effort, best_path
from borelax.oracles.search_policy import SearchPolicy
from borelax.oracles.search_thompson import thompson_returns
from borelax.oracles.semicircle import SemiCircleSearch
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle

SOLVED = Path(__file__).with_name("searched.json")
SOLVED_FAMILIES = (SemiCircle(), EscapeRoom())
NUM_LANDMARKS = 512
AGENTS = (
    "bayes_optimal",
    "upper_bound",
    "known_task",
    "thompson_per_episode",
    "thompson_per_step",
)


@dataclass(frozen=True, eq=False)
class SearchOracle:
    """Expected undiscounted returns, and the path that earns the first of them."""

    family: SemiCircle | EscapeRoom
    bayes_optimal: tuple[float, ...]
    """Of the best search path known, episode by episode: a lower bound."""
    upper_bound: tuple[float, ...]
    """Of no agent that does not know the task."""
    known_task: tuple[float, ...]
    """Of the best agent that does."""
    thompson_per_episode: tuple[float, ...]
    """Of drawing an angle from the posterior at the start of each episode."""
    thompson_per_step: tuple[float, ...]
    """Of drawing again as soon as the angle drawn is ruled out."""
    actions: Float[Array, "T 2"]
    """The path, while nothing is found."""
    targets: Float[Array, "T 2"]
    """Where to walk in later episodes, by the step that found the task."""

    @property
    def per_episode(self) -> dict[str, tuple[float, ...]]:
        """Every agent's return, episode by episode."""
        return {name: getattr(self, name) for name in AGENTS}

    def policy(self) -> SearchPolicy:
        """The searcher, ready to be simulated."""
        family = self.family
        return SearchPolicy(
            self.actions, self.targets, family.horizon, family.step_size
        )

    def to_json(self) -> dict[str, Any]:
        """The summed returns."""
        totals = {name: sum(each) for name, each in self.per_episode.items()}
        return totals | {"exact": False}


def search_world(family: SemiCircle | EscapeRoom) -> SearchWorld:
    """The family as the searcher meets it."""
    if isinstance(family, SemiCircle):
        return SemiCircleSearch(family)
    return EscapeRoomSearch(family)


def search_oracle(
    family: SemiCircle | EscapeRoom,
    recompute: bool = False,
    effort: Effort | None = None,
) -> SearchOracle:
    """The oracle of a family: read if it was solved before, else computed."""
    if not recompute:
        for entry in json.loads(SOLVED.read_text()):
            if entry["family"] == _settings(family):
                return _read(family, entry["oracle"])
    return _compute(family, effort or Effort())


def solve_and_save() -> None:
    """Solve ``SOLVED_FAMILIES`` and write ``searched.json``."""
    entries = [
        {"family": _settings(family), "oracle": _plain(_compute(family, Effort()))}
        for family in SOLVED_FAMILIES
    ]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    SOLVED.write_text(f"[\n{lines}\n]\n")


def _compute(family: SemiCircle | EscapeRoom, effort: Effort) -> SearchOracle:
    world = search_world(family)
    # rounded to what is stored, so that the stored path has the stored value
    actions = jnp.asarray(np.round(best_path(world, effort), 5))
    walks = walks_to_landmarks(world, NUM_LANDMARKS, NUM_ANGLES)
    value = path_value(world, actions, walks)
    known = float(known_returns(world, midpoints(NUM_ANGLES)).mean())
    return SearchOracle(
        family=family,
        bayes_optimal=tuple(value.per_episode.tolist()),
        upper_bound=upper_bound(world, effort.bound_tasks, effort.bound_slices),
        known_task=(known,) * family.episodes,
        thompson_per_episode=thompson_returns(family, redraw=False),
        thompson_per_step=thompson_returns(family, redraw=True),
        actions=actions.reshape(-1, 2),
        targets=jnp.asarray(np.round(value.targets, 5)),
    )


def _settings(family: SemiCircle | EscapeRoom) -> dict[str, Any]:
    return {"name": type(family).__name__} | asdict(family)


def _plain(oracle: SearchOracle) -> dict[str, Any]:
    """Numbers that JSON can hold, coordinates to five digits."""

    def rows(places: Float[Array, "T 2"]) -> list[list[float]]:
        return [[round(x, 5) for x in row] for row in places.tolist()]

    paths = {"actions": rows(oracle.actions), "targets": rows(oracle.targets)}
    return oracle.per_episode | paths


def _read(family: SemiCircle | EscapeRoom, oracle: dict[str, Any]) -> SearchOracle:
    return SearchOracle(
        family=family,
        **{name: tuple(oracle[name]) for name in AGENTS},
        actions=jnp.asarray(oracle["actions"]),
        targets=jnp.asarray(oracle["targets"]),
    )


if __name__ == "__main__":
    solve_and_save()
