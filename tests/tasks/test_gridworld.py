"""Gridworld against its rules written out by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.tasks.gridworld import Gridworld
from borelax.types import Transition

GRID = Gridworld()


def move_by_hand(size: int, cell: int, action: int) -> int:
    dx, dy = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)][action]
    x, y = cell % size + dx, cell // size + dy
    return x + size * y if 0 <= x < size and 0 <= y < size else cell


def test_moves_stop_at_borders() -> None:
    cells, actions = jnp.arange(25), jnp.arange(5)
    step = partial(GRID.step, jnp.int32(24), key=jr.key(0))
    moved = jax.vmap(lambda c: jax.vmap(lambda a: step(c, a))(actions))(cells)
    by_hand = [[move_by_hand(5, c, a) for a in range(5)] for c in range(25)]
    np.testing.assert_array_equal(moved, by_hand)


@pytest.mark.parametrize(("size", "count"), [(3, 5), (4, 12), (5, 21)])
def test_goals_are_all_cells_outside_the_start_block(size: int, count: int) -> None:
    goals = Gridworld(size=size).all_tasks().tolist()
    start_block = {0, 1, size, size + 1}
    assert len(goals) == count
    assert set(goals) == set(range(size**2)) - start_block


def test_sampled_tasks_are_all_goals_equally_often() -> None:
    draws = jax.vmap(lambda k: GRID.sample_task(key=k))(jr.split(jr.key(0), 21_000))
    counts = np.bincount(draws, minlength=25)
    assert (counts[GRID.goals()] > 0).all()
    assert counts.sum() == counts[GRID.goals()].sum()
    assert abs(counts[GRID.goals()] - 1000).max() < 5 * np.sqrt(1000)


def test_fixed_start_is_the_corner() -> None:
    starts = [GRID.reset(task, "fixed", key=jr.key(7)) for task in GRID.all_tasks()]
    assert set(map(int, starts)) == {0}


def test_uniform_start_is_every_cell_but_the_goal_equally_often() -> None:
    def starts(task: jax.Array) -> jax.Array:
        keys = jr.split(jr.fold_in(jr.key(1), task), 4_800)
        return jax.vmap(lambda k: GRID.reset(task, "uniform", key=k))(keys)

    for goal, drawn in zip(
        GRID.goals(), jax.vmap(starts)(GRID.all_tasks()), strict=True
    ):
        counts = np.bincount(drawn, minlength=25)
        assert counts[goal] == 0
        assert abs(np.delete(counts, goal) - 200).max() < 5 * np.sqrt(200)


def test_unknown_start_is_refused() -> None:
    with pytest.raises(ConfigError, match="no start called 'excluding'"):
        GRID.reset(jnp.int32(24), "excluding", key=jr.key(0))


def test_observation_is_the_cell_one_hot() -> None:
    cells = jnp.arange(25)
    np.testing.assert_array_equal(jax.vmap(GRID.observe)(cells), np.eye(25))
    assert GRID.observe(jnp.int32(3)).dtype == jnp.float32


@pytest.mark.parametrize(
    "grid", [GRID, Gridworld(3, goal_reward=0.0, step_reward=-2.0)]
)
def test_reward_is_judged_at_the_next_cell_and_only_there(grid: Gridworld) -> None:
    cells = jnp.arange(grid.num_cells)

    def reward(goal: jax.Array, cell: jax.Array, entered: jax.Array) -> jax.Array:
        obs, next_obs = grid.observe(cell), grid.observe(entered)
        step = Transition(obs, jnp.int32(0), jnp.float32(99.0), next_obs)
        return grid.reward(goal, step)

    every = jax.vmap(
        jax.vmap(jax.vmap(reward, (None, None, 0)), (None, 0, None)), (0, None, None)
    )
    rewards = every(grid.all_tasks(), cells, cells)  # [goal, cell, entered]
    expected = np.where(
        grid.goals()[:, None] == np.arange(grid.num_cells),
        grid.goal_reward,
        grid.step_reward,
    ).astype(np.float32)
    expected = np.broadcast_to(expected[:, None], rewards.shape)
    np.testing.assert_array_equal(rewards, expected)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"size": 2}, "between 3 and 255, not 2"),
        ({"size": 256}, "between 3 and 255, not 256"),
        ({"horizon": 0}, "Gridworld.horizon must be above zero, not 0"),
        ({"episodes": -1}, "Gridworld.episodes must be above zero, not -1"),
        ({"goal_reward": float("nan")}, "must be finite"),
        ({"step_reward": -float("inf")}, "must be finite"),
        ({"goal_reward": -0.1}, "must be above Gridworld.step_reward"),
    ],
)
def test_impossible_grids_are_refused(values: dict, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Gridworld(**values)
