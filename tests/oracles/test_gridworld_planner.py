"""The planner against exhaustive search, and against the family it plans for."""

from functools import cache

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.oracles import gridworld_planner as planner
from borelax.oracles.gridworld_plan import found_goal, plan_action, plan_of_path
from borelax.oracles.gridworld_planner import plan_search
from borelax.oracles.gridworld_posterior import goal_prior, update_posterior
from borelax.oracles.gridworld_returns import (
    distance,
    known_task_return,
    move,
    straight_action,
)
from borelax.tasks.gridworld import Gridworld
from borelax.types import Transition

SMALL = (
    Gridworld(3, 1, 3),
    Gridworld(3, 2, 1),
    Gridworld(3, 3, 2),
    Gridworld(3, 4, 3),
    Gridworld(3, 5, 2, goal_reward=2.0, step_reward=0.5),
    Gridworld(3, 7, 2, goal_reward=-0.5, step_reward=-3.0),
    Gridworld(4, 4, 3),
    Gridworld(4, 6, 2),
    Gridworld(4, 9, 2, goal_reward=10.0, step_reward=0.0),
)


def move_by_hand(size: int, cell: int, action: int) -> int:
    dx, dy = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)][action]
    x, y = cell % size + dx, cell // size + dy
    return x + size * y if 0 <= x < size and 0 <= y < size else cell


def expectimax(world: Gridworld, *, by_history: bool) -> float:
    """The best return of all policies that map histories to actions.

    ``by_history`` makes each history its own node; otherwise histories that leave the
    same goals possible in the same cell share one, which permits longer rollouts.
    """

    def value(history: tuple, cell: int, possible: frozenset) -> float:
        step = len(history)
        if step == world.horizon * world.episodes:
            return 0.0
        return max(outcome(history, cell, possible, action) for action in range(5))

    def outcome(history: tuple, cell: int, possible: frozenset, action: int) -> float:
        start = 0 if len(history) % world.horizon == 0 else cell
        entered = move_by_hand(world.size, start, action)
        total = 0.0
        for seen, reward in (
            (possible & {entered}, world.goal_reward),
            (possible - {entered}, world.step_reward),
        ):
            if seen:
                memory = (action, reward) if by_history else ()
                later = value((*history, memory), entered, frozenset(seen))
                total += len(seen) / len(possible) * (reward + later)
        return total

    if not by_history:
        value = cache(value)
    return value((), 0, frozenset(world.goals().tolist()))


@pytest.mark.parametrize("world", SMALL, ids=str)
def test_no_policy_of_the_belief_beats_the_plan(world: Gridworld) -> None:
    best = expectimax(world, by_history=False)
    assert plan_search(world).value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("world", SMALL[:3], ids=str)
def test_no_policy_of_the_history_beats_the_plan(world: Gridworld) -> None:
    best = expectimax(world, by_history=True)
    assert plan_search(world).value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    "world", [*SMALL[1:], Gridworld(), Gridworld(5, 7, 3)], ids=str
)
def test_bound_keeps_the_optimum_and_nothing_beats_it(world: Gridworld) -> None:
    per_visit = (world.goal_reward - world.step_reward) / len(world.goals())
    blind = world.horizon * world.episodes * world.step_reward
    best = round((plan_search(world).value - blind) / per_visit)
    tables = planner._tables(world)
    found = planner._search(tables, None, 10**6, to_beat=best - 1)
    assert (found.visits, found.complete) == (best, True)
    assert planner._search(tables, None, 10**6, to_beat=best).path == []


def test_beam_too_narrow_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Gridworld(5, 8, 4)
    best = plan_search(world).value
    narrow = planner._search(planner._tables(world), 1, 10**6, to_beat=-1)
    cells = planner._tables(world).cells[narrow.path].tolist()
    assert plan_of_path(world, cells).value < best, (
        "the beam must be worse to test this"
    )
    monkeypatch.setattr(planner, "BEAM_WIDTHS", (1,))
    assert plan_search(world).value == pytest.approx(best)


def returns_of_plan(world: Gridworld, act) -> np.ndarray:
    """Returns [N, E] of acting with ``act`` for every goal of the family itself."""
    no_key = jr.key(0)

    def rollout(task):
        def one_step(carry, step):
            cell, posterior = carry
            start = world.reset(task, "fixed", key=no_key)
            cell = jnp.where(step % world.horizon == 0, start, cell)
            action = act(step, cell, posterior)
            entered = world.step(task, cell, action, key=no_key)
            obs, next_obs = world.observe(cell), world.observe(entered)
            blank = jnp.zeros(())
            reward = world.reward(task, Transition(obs, action, blank, next_obs))
            return (
                entered,
                update_posterior(world, posterior, next_obs, reward),
            ), reward

        first = jnp.zeros((), jnp.int32), goal_prior(world)
        steps = jnp.arange(world.horizon * world.episodes)
        _, rewards = jax.lax.scan(one_step, first, steps)
        return rewards.reshape(world.episodes, world.horizon).sum(-1)

    return np.asarray(jax.jit(jax.vmap(rollout))(world.all_tasks()))


@pytest.mark.parametrize(
    "world", [Gridworld(), Gridworld(4, 5, 3, 2.0, -1.0), Gridworld(6, 7, 3)], ids=str
)
def test_acting_on_the_plan_earns_its_value(world: Gridworld) -> None:
    plan = plan_search(world)

    def act(step, cell, posterior):
        return plan_action(plan, world, step, cell, found_goal(posterior))

    per_episode = returns_of_plan(world, act).mean(axis=0)
    np.testing.assert_allclose(per_episode, plan.per_episode, rtol=1e-5, atol=1e-5)
    assert sum(plan.per_episode) == pytest.approx(plan.value)


def test_value_of_a_plan_that_is_not_optimal() -> None:
    world = Gridworld(3, 4, 2)
    # Goals are 2, 5, 6, 7, 8. Enters 2 at step 2 and 5 at step 3, then 6 at step 6.
    plan = plan_of_path(world, [1, 2, 5, 2, 3, 6, 3, 6])
    visits = np.array([3 + 2, 3 + 2 + 3])
    expected = 4 * -0.1 + 1.1 * visits / 5
    np.testing.assert_allclose(plan.per_episode, expected)
    assert plan.search_cells(world) == (1, 2, 5, 5, 3, 6, 6, 6)


def test_value_of_the_paper_grid() -> None:
    plan = plan_search(Gridworld())
    assert plan.value == pytest.approx(-6 + 1.1 * 825 / 21)
    assert plan.value < known_task_return(Gridworld()) == pytest.approx(44.2857142857)
    assert len(plan.search_actions) == 60


def test_rewards_change_the_return_but_not_the_plan() -> None:
    plain, scaled = Gridworld(4, 8, 3), Gridworld(4, 8, 3, 7.0, 2.0)
    one, other = plan_search(plain), plan_search(scaled)
    visits = (one.value + 0.1 * 24) / 1.1
    assert one.search_actions == other.search_actions
    assert other.value == pytest.approx(2.0 * 24 + 5.0 * visits)


def test_goals_that_need_more_than_one_word() -> None:
    assert len(Gridworld(12, 12, 1).goals()) > 64
    walk = plan_search(Gridworld(12, 12, 1, 1.0, 0.0))
    # From step 2 on each of 11 steps can enter a new goal: 11 + 10 + … + 1 visits.
    assert walk.value == pytest.approx(66 / 140)


def test_large_grids_are_refused() -> None:
    with pytest.raises(ConfigError, match="too large"):
        plan_search(Gridworld(7, 15, 4), max_states=10_000)
    with pytest.raises(ConfigError, match="too large"):
        plan_search(Gridworld(200, 400, 4))


def test_moves_agree_with_the_family() -> None:
    world = Gridworld(4)
    cells, actions = np.meshgrid(np.arange(16), np.arange(5))
    step = jax.vmap(lambda s, a: world.step(jnp.int32(0), s, a, key=jr.key(0)))
    entered = step(jnp.asarray(cells.ravel()), jnp.asarray(actions.ravel()))
    for cell, action, after in zip(
        cells.ravel(), actions.ravel(), entered, strict=True
    ):
        assert move(4, int(cell), int(action)) == after
        assert move_by_hand(4, int(cell), int(action)) == after


def test_straight_action_is_the_lowest_that_shortens_the_distance() -> None:
    for cell in range(16):
        for goal in range(16):
            away = [
                distance(4, move_by_hand(4, cell, action), goal) for action in range(5)
            ]
            shorter = [a for a in range(5) if away[a] < away[0]]
            assert straight_action(4, cell, goal) == min(shorter, default=0)
