"""Thompson sampling against a recursion over its draws, and against chance."""

from functools import cache

import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.oracles import gridworld_thompson
from borelax.oracles.gridworld_planner import plan_search
from borelax.oracles.gridworld_returns import known_task_return
from borelax.oracles.gridworld_thompson import thompson_per_episode, thompson_per_step
from borelax.tasks.gridworld import Gridworld

MOVES = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]
VARIANTS = [(thompson_per_episode, False), (thompson_per_step, True)]


def toward(size: int, cell: int, goal: int) -> int:
    """One step of the shortest route: the first move that brings the goal closer."""
    x, y, goal_x, goal_y = cell % size, cell // size, goal % size, goal // size
    for dx, dy in MOVES[1:]:
        closer = abs(x + dx - goal_x) + abs(y + dy - goal_y)
        if closer < abs(x - goal_x) + abs(y - goal_y):
            return x + dx + size * (y + dy)
    return cell


def recursion(world: Gridworld, *, redraw: bool) -> np.ndarray:
    """Return of each episode: the mean over goals and all draws, step by step."""

    def returns(goal: int) -> np.ndarray:
        @cache
        def after(time: int, cell: int, possible: frozenset, drawn: int) -> np.ndarray:
            total = np.zeros(world.episodes)
            if time == world.horizon * world.episodes:
                return total
            starts = time % world.horizon == 0
            cell = 0 if starts else cell
            if starts or (redraw and drawn not in possible):
                options = sorted(possible)
            else:
                options = [drawn]
            for option in options:
                entered = toward(world.size, cell, option)
                hit = entered == goal
                left = frozenset({goal}) if hit else possible - {entered}
                reward = world.goal_reward if hit else world.step_reward
                here = np.eye(world.episodes)[time // world.horizon] * reward
                total += here + after(time + 1, entered, left, option)
            return total / len(options)

        return after(0, 0, frozenset(world.goals().tolist()), -1)

    return np.mean([returns(goal) for goal in world.goals().tolist()], axis=0)


@pytest.mark.parametrize(("oracle", "redraw"), VARIANTS)
@pytest.mark.parametrize(
    "world",
    [
        Gridworld(3, 1, 2),
        Gridworld(3, 3, 3),
        Gridworld(3, 9, 3, 2.0, -1.0),
        Gridworld(4, 4, 3),
        Gridworld(4, 7, 2, 0.5, 0.25),
        Gridworld(9, 3, 2),
    ],
    ids=str,
)
def test_equals_the_mean_over_all_draws(world: Gridworld, oracle, redraw: bool) -> None:
    result = oracle(world)
    expected = recursion(world, redraw=redraw)
    np.testing.assert_allclose(result.per_episode, expected, rtol=1e-9, atol=1e-9)
    assert result.value == pytest.approx(expected.sum())


def sampled_returns(
    world: Gridworld, *, redraw: bool, num_rollouts: int, seed: int
) -> np.ndarray:
    """Returns [R, E] of that many rollouts with goals and draws by chance."""
    chance = np.random.default_rng(seed)
    rewards = np.zeros((num_rollouts, world.episodes))
    for rollout in range(num_rollouts):
        goal = int(chance.choice(world.goals()))
        possible = world.goals().tolist()
        for episode in range(world.episodes):
            cell, drawn = 0, int(chance.choice(possible))
            for _ in range(world.horizon):
                if redraw and drawn not in possible:
                    drawn = int(chance.choice(possible))
                cell = toward(world.size, cell, drawn)
                hit = cell == goal
                rewards[rollout, episode] += (
                    world.goal_reward if hit else world.step_reward
                )
                possible = [goal] if hit else [g for g in possible if g != cell]
    return rewards


@pytest.mark.parametrize(("oracle", "redraw"), VARIANTS)
@pytest.mark.parametrize("world", [Gridworld(4, 8, 3), Gridworld()], ids=str)
def test_agrees_with_chance(world: Gridworld, oracle, redraw: bool) -> None:
    sample = sampled_returns(world, redraw=redraw, num_rollouts=4_000, seed=7)
    totals = sample.sum(axis=1)
    result = oracle(world)
    assert abs(totals.mean() - result.value) < 4 * standard_error(totals)
    gaps = np.abs(sample.mean(axis=0) - np.array(result.per_episode))
    assert (gaps < 4 * standard_error(sample)).all()


def standard_error(sample: np.ndarray) -> np.ndarray:
    return sample.std(axis=0, ddof=1) / np.sqrt(len(sample))


@pytest.mark.parametrize(
    "world", [Gridworld(3, 5, 2), Gridworld(4, 10, 3), Gridworld(5, 8, 2)], ids=str
)
def test_lies_between_blindness_and_the_bayes_optimum(world: Gridworld) -> None:
    best = plan_search(world).value
    blind = world.horizon * world.episodes * world.step_reward
    assert blind < thompson_per_episode(world).value < best
    assert thompson_per_episode(world).value < thompson_per_step(world).value < best
    assert best < known_task_return(world)


def test_large_grids_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gridworld_thompson, "MAX_WORDS", 1_000)
    with pytest.raises(ConfigError, match="too many ruled-out sets"):
        thompson_per_step(Gridworld())
    with pytest.raises(ConfigError, match="too large"):
        thompson_per_episode(Gridworld(100))
