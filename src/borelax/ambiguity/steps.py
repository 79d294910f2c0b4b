"""Steps of logs, drawn at random and put side by side: what ``diagnose`` compares.

In: rollouts [N, R, E, …]. Out: some steps of every task, where each was taken
(state and action) and what came of it (reward and next state).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float, Int, Num, Shaped

from borelax.errors import DataError
from borelax.types import Episodes

SMALLEST_NOISE = 1e-3
"""Outcomes closer than this share of their standard deviation are equal."""


@dataclass(frozen=True, eq=False)
class Steps:
    """S steps of each of N tasks, with the rollout that each comes from."""

    obs: Float[np.ndarray, "N S obs"]
    action: Num[np.ndarray, "N S ..."]
    reward: Float[np.ndarray, "N S"]
    next_obs: Float[np.ndarray, "N S obs"]
    rollout: Int[np.ndarray, "N S"]

    def take(self, task: Shaped[np.ndarray, "..."], step: np.ndarray) -> "Steps":
        """Step ``step`` of task ``task``, for each pair."""
        taken = {f.name: getattr(self, f.name)[task, step] for f in fields(self)}
        return Steps(**taken)

    def beside(self, other: "Steps") -> "Steps":
        """These and other steps of the same tasks."""
        both = {
            f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)], 1)
            for f in fields(self)
        }
        return Steps(**both)


@dataclass(frozen=True, eq=False)
class Sample:
    """Three draws of steps, so that nothing is compared with itself."""

    asked: Steps
    """Steps to ask about: of rollouts that are in neither of the others."""
    same_stage: Steps
    """What the agents did at the same stage: how often each is where."""
    any_stage: Steps
    """What they did at any time: what comes of it."""

    def part(self, parts: int) -> "Sample":
        """A smaller sample: one step of every ``parts``."""

        def fewer(steps: Steps) -> Steps:
            tasks, number = steps.reward.shape
            some = np.arange(0, number, parts)[None]
            return steps.take(np.arange(tasks)[:, None], some)

        return Sample(fewer(self.asked), fewer(self.same_stage), fewer(self.any_stage))


def require_numbers(episodes: Episodes) -> None:
    """Refuse logs of one task, and logs with NaN or infinity."""
    tasks, rollouts = episodes.reward.shape[:2]
    if tasks < 2:
        raise DataError(
            "These logs hold one task, so there is nothing to tell apart; give logs of "
            "at least two."
        )
    if rollouts < 2:
        raise DataError(
            "These logs hold one rollout of each task, and steps are compared between "
            "rollouts; give at least two."
        )
    for name in ("obs", "action", "reward"):
        array = np.asarray(getattr(episodes, name))
        if np.issubdtype(array.dtype, np.floating):
            _require_finite(name, array)


def draw_steps(
    episodes: Episodes, rollouts: np.ndarray, count: int, rng: np.random.Generator
) -> Steps:
    """``count`` random steps of each task, or all there are, from some rollouts."""
    _, _, num_episodes, horizon = episodes.reward.shape
    shape = (len(rollouts), num_episodes, horizon)
    happened = episodes.happened()
    rows = []
    for task in range(episodes.reward.shape[0]):
        if happened is None:
            places = np.arange(np.prod(shape))
        else:
            places = np.flatnonzero(np.asarray(happened[task])[rollouts])
        rows.append(rng.choice(places, count, replace=len(places) < count))
    rollout, episode, time = np.unravel_index(np.stack(rows), shape)
    rollout = np.asarray(rollouts)[rollout]
    where = (np.arange(len(rows))[:, None], rollout, episode)
    obs = np.asarray(episodes.obs)
    return Steps(
        obs=obs[*where, time].astype(np.float32),
        action=np.asarray(episodes.action)[*where, time],
        reward=np.asarray(episodes.reward)[*where, time].astype(np.float32),
        next_obs=obs[*where, time + 1].astype(np.float32),
        rollout=rollout,
    )


@dataclass(frozen=True, eq=False)
class Compared:
    """A draw of steps as numbers to compare."""

    place: Float[np.ndarray, "N S place"]
    """State and action, standardised."""
    reward: Float[np.ndarray, "N S 1"]
    """In units of its standard deviation."""
    change: Float[np.ndarray, "N S obs"]
    """Next state less state, in the same units, without what is linear in the place
    and common to all tasks: near places then have near changes."""


def comparable(draws: Sequence[Steps]) -> list[Compared]:
    """Draws of steps in common units."""
    actions = _encoded([draw.action for draw in draws])
    both = zip(draws, actions, strict=True)
    places = [np.concatenate([draw.obs, action], axis=-1) for draw, action in both]
    places = _standardised(places)
    changes = [draw.next_obs - draw.obs for draw in draws]
    spread = _positive(_all_rows(changes).std(axis=0))
    rest = _without_linear(places, changes)
    unit = _positive(np.concatenate([draw.reward.ravel() for draw in draws]).std())
    rewards = [(draw.reward / unit)[..., None] for draw in draws]
    return [
        Compared(*(x.astype(np.float32) for x in (place, reward, change / spread)))
        for place, reward, change in zip(places, rewards, rest, strict=True)
    ]


def _without_linear(
    places: Sequence[np.ndarray], values: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """What is left of ``values`` after the best linear function of the place."""
    rows = _all_rows(places)
    with_one = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    linear = np.linalg.lstsq(with_one, _all_rows(values), rcond=None)[0]
    return [
        value - place @ linear[:-1] - linear[-1]
        for place, value in zip(places, values, strict=True)
    ]


def _standardised(draws: Sequence[np.ndarray]) -> list[np.ndarray]:
    rows = _all_rows(draws)
    mean, spread = rows.mean(axis=0), _positive(rows.std(axis=0))
    return [(draw - mean) / spread for draw in draws]


def _encoded(actions: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Whole numbers name actions and become one-hot; other actions stay."""
    if np.issubdtype(actions[0].dtype, np.integer):
        number = 1 + max(int(action.max()) for action in actions)
        return [np.eye(number, dtype=np.float32)[action] for action in actions]
    return [action.reshape(*action.shape[:2], -1) for action in actions]


def _all_rows(draws: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([x.reshape(-1, x.shape[-1]) for x in draws])


def _positive(spread: np.ndarray | np.floating) -> np.ndarray:
    """Standard deviations to divide by; what never changes is left as it is."""
    return np.where(spread > 1e-6, spread, 1.0)


def _require_finite(name: str, array: np.ndarray) -> None:
    for task, rows in enumerate(array):
        if not np.isfinite(rows).all():
            rollout = int(np.argwhere(~np.isfinite(rows))[0][0])
            raise DataError(
                f"Task {task}, rollout {rollout} of these logs has NaN or infinity in "
                f"{name}; repair it or leave the rollout out."
            )
