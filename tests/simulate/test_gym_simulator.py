"""Gymnasium environments through the same seam as JAX families."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from borelax.errors import ConfigError, SimulationError
from borelax.simulate.gym_simulator import GymSimulator
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.of_family import simulator_of
from borelax.simulate.policy import RandomPolicy
from borelax.simulate.simulator import Simulator
from borelax.tasks.family import draw_tasks
from borelax.types import Box
from tests.simulate.gym_worlds import FALL, FAMILY, TWIN, Fall, SemiCircleEnv


class Seeker(eqx.Module):
    """Walks a way of its own, longer and longer, and turns when it was paid."""

    way: jax.Array

    def start(self):
        return jnp.ones(())

    def act(self, memory, obs, *, key):
        return jnp.tanh(memory * self.way + 0.1 * obs)

    def remember(self, memory, step):
        return 0.9 * memory + step.reward + 0.01 * jnp.abs(step.action).sum()


class Count(eqx.Module):
    """Acts at random, and counts its steps."""

    def start(self):
        return jnp.zeros((), jnp.int32)

    def act(self, memory, obs, *, key):
        return jr.randint(key, (), 0, 3)

    def remember(self, memory, step):
        return memory + 1


TASKS = draw_tasks(TWIN, 3, key=jr.key(0))
SIDES = draw_tasks(FALL, 4, key=jr.key(1))


def run(simulator, policies, tasks, *, repeats=2, start="fixed", seed=0):
    return simulator.rollouts(
        policies, tasks, repeats=repeats, episodes=2, start=start, key=jr.key(seed)
    )


@pytest.mark.parametrize("policy", ["deterministic", "random"])
def test_a_twin_gives_the_same_transitions(policy):
    """Also where the policy draws: its keys are the same."""
    seekers = Seeker(jr.normal(jr.key(3), (3, 2)))
    policies = (
        seekers if policy == "deterministic" else RandomPolicy(FAMILY.spec.action)
    )
    ours = run(JaxSimulator(FAMILY), policies, TASKS)
    theirs = run(GymSimulator(TWIN), policies, TASKS)
    np.testing.assert_allclose(theirs.obs, ours.obs, atol=1e-6)
    np.testing.assert_allclose(theirs.action, ours.action, atol=1e-6)
    np.testing.assert_array_equal(theirs.reward, ours.reward)
    assert 0 < np.asarray(ours.reward).mean() < 1
    assert (np.asarray(theirs.length) == FAMILY.horizon).all()
    assert (
        theirs.obs.dtype == ours.obs.dtype and theirs.reward.dtype == ours.reward.dtype
    )


def test_tasks_are_the_twins_own():
    np.testing.assert_array_equal(draw_tasks(FAMILY, 3, key=jr.key(0)), TASKS)


def test_it_is_a_simulator_and_families_find_it():
    found = simulator_of(TWIN)
    assert isinstance(found, GymSimulator) and isinstance(found, Simulator)
    assert found == GymSimulator(TWIN) and found.reward == TWIN.reward
    assert simulator_of(FAMILY) == JaxSimulator(FAMILY)


def test_early_ends_are_padded():
    made = run(GymSimulator(FALL), Count(), SIDES)
    length, obs = np.asarray(made.length), np.asarray(made.obs)
    assert length.min() < FALL.spec.horizon == length.max()
    happened = np.asarray(made.happened())
    assert not made.action[~happened].any() and not made.reward[~happened].any()
    for episode, count in zip(obs.reshape(-1, 9), length.reshape(-1), strict=True):
        assert (episode[count:] == episode[count]).all()
        assert (np.abs(episode[:count]) <= 1).all(), "no step after the fall"
        assert count == 8 or abs(episode[count]) > 1, "the true successor is kept"
    steps = made.transitions()
    np.testing.assert_allclose(
        np.asarray(steps.reward)[steps.valid],
        (np.asarray(SIDES)[:, None, None] * steps.next_obs[..., 0])[steps.valid],
        rtol=1e-6,
    )


class Remembers(eqx.Module):
    """Goes on until it has made four steps, over all episodes; then it stays."""

    def start(self):
        return jnp.zeros((), jnp.int32)

    def act(self, memory, obs, *, key):
        return jnp.where(memory < 4, 2, 1).astype(jnp.int32)

    def remember(self, memory, step):
        return memory + 1


def test_padding_is_not_remembered():
    made = run(GymSimulator(FALL), Remembers(), SIDES)
    moves = np.asarray(made.action)[np.asarray(made.happened())] == 2
    assert moves.sum() == 4 * 2 * 4, "four steps that happened, whatever ended"


def test_a_time_limits_successor_is_the_true_one():
    made = run(GymSimulator(TWIN), Seeker(jr.normal(jr.key(3), (3, 2))), TASKS)
    moved = np.asarray(made.obs[..., 1:, :] - made.obs[..., :-1, :])
    np.testing.assert_allclose(moved, 0.1 * np.asarray(made.action), atol=1e-6)
    assert not np.any(made.obs[..., 0, :])


def test_equal_keys_give_equal_bits_and_tasks_do_not_touch_each_other():
    simulator = GymSimulator(FALL)
    all_four, again = (run(simulator, Count(), SIDES) for _ in range(2))
    fresh = run(GymSimulator(FALL), Count(), SIDES)
    two = run(simulator, Count(), SIDES[:2])
    other = run(simulator, Count(), SIDES, seed=1)
    once = run(simulator, Count(), SIDES, repeats=1)
    for leaf, *same in zip(
        *map(jax.tree.leaves, (all_four, again, fresh)), strict=True
    ):
        assert all(np.array_equal(leaf, x) for x in same)
    for a, b, c in zip(*map(jax.tree.leaves, (all_four, two, once)), strict=True):
        np.testing.assert_array_equal(a[:2], b)
        np.testing.assert_array_equal(a[:, :1], c)
    assert not np.array_equal(all_four.obs, other.obs)
    firsts = np.asarray(all_four.obs[..., 0, 0]).reshape(-1)
    assert len(np.unique(firsts)) == len(firsts), "every episode has its own seed"


def test_environments_are_made_once_per_simulation():
    made = []
    tasks = replace(FALL, make_env=lambda side: made.append(side) or Fall(side))
    simulator = GymSimulator(tasks)
    run(simulator, Count(), SIDES)
    run(simulator, Count(), SIDES, repeats=1)
    assert len(made) == 8
    run(simulator, Count(), jnp.concatenate([SIDES, SIDES[:1]]))
    assert len(made) == 10, "the same task twice at once needs more"
    assert isinstance(made[0], np.floating), "a number, as NumPy has it"


def test_idle_environments_are_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(Fall, "close", lambda self: closed.append(self.side))
    monkeypatch.setattr("borelax.simulate.gym_envs.MOST_IDLE", 2)
    simulator = GymSimulator(FALL)
    run(simulator, Count(), SIDES)
    assert not closed
    run(simulator, Count(), SIDES[3:])
    assert len(closed) == 4


def test_starts_reach_the_environment():
    made = run(
        GymSimulator(TWIN), RandomPolicy(TWIN.spec.action), TASKS, start="uniform"
    )
    firsts = np.asarray(made.obs[..., 0, :]).reshape(-1, 2)
    assert len(np.unique(firsts, axis=0)) == 12
    with pytest.raises(ConfigError, match="no start called 'moon'; choose from fixed"):
        run(GymSimulator(TWIN), RandomPolicy(TWIN.spec.action), TASKS, start="moon")


class Late(SemiCircleEnv):
    """Does something it must not, at step 4 of every episode."""

    def reset(self, **given):
        self.time = 0
        return super().reset(**given)

    def step(self, action):
        self.time += 1
        result = super().step(action)
        return self.fault(*result) if self.time == 4 else result


def fault(change) -> type:
    return type("Faulty", (Late,), {"fault": lambda self, *result: change(*result)})


def fails(*result):
    raise KeyError("left_knee")


FAULTS = {
    "an error": (fails, "the environment failed. KeyError: 'left_knee'"),
    "nan seen": (lambda o, *x: (o * np.nan, *x), "gave an observation with NaN"),
    "nan paid": (lambda o, r, *x: (o, np.inf, *x), "gave a reward with NaN"),
    "cut off": (
        lambda o, r, t, u, i: (o, r, t, True, i),
        "cut the episode off, before",
    ),
    "shape": (lambda o, *x: (o[:1], *x), r"observation of shape \(1,\), not \(2,\)"),
    "a dictionary": (
        lambda o, *x: ({"place": o}, *x),
        "the environment failed. TypeError",
    ),
    "many ends": (
        lambda o, r, t, u, i: (o, r, np.zeros(2, bool), u, i),
        "the environment failed. ValueError",
    ),
    "four": (lambda o, r, t, u, i: (o, r, t, i), "the environment failed. ValueError"),
}


@pytest.mark.parametrize(("change", "sentence"), FAULTS.values(), ids=FAULTS)
def test_what_breaks_on_the_way_is_named_with_its_place(change, sentence):
    simulator = GymSimulator(replace(TWIN, make_env=fault(change)))
    place = "semicircle-gym, task 0, rollout 0, episode 1, step 4: "
    with pytest.raises(SimulationError, match=f"{place}.*{sentence}"):
        run(simulator, RandomPolicy(TWIN.spec.action), TASKS)


def test_rewards_that_disagree_are_noticed_on_the_way():
    wrong = replace(TWIN, make_env=lambda goal: SemiCircleEnv(goal, radius=1.5))
    with pytest.raises(ConfigError, match="disagrees with the environment on"):
        run(GymSimulator(wrong), RandomPolicy(TWIN.spec.action), TASKS)


def test_rewards_that_disagree_only_at_the_end_are_noticed():
    """Nothing of the padding counts, which would make them few."""

    class Bonus(Fall):
        def step(self, action):
            obs, paid, ended, *rest = super().step(action)
            return obs, paid + ended, ended, *rest

    wrong = replace(FALL, make_env=Bonus, spec=replace(FALL.spec, horizon=4_000))
    with pytest.raises(ConfigError, match=r"on 16 of \d{3} steps: the first"):
        run(GymSimulator(wrong), Count(), SIDES)


def test_a_reward_that_is_no_number_is_noticed_on_the_way():
    broken = replace(
        TWIN, reward=lambda goal, step: jnp.sqrt(TWIN.reward(goal, step) - 0.5)
    )
    with pytest.raises(ConfigError, match=r"it says nan where 0 was paid"):
        run(GymSimulator(broken), RandomPolicy(TWIN.spec.action), TASKS)


def test_every_tasks_environment_must_be_of_the_right_kind():
    class Wide(SemiCircleEnv):
        action_space = spaces.Box(-1, 1, (3,), np.float32)

    def make(goal):
        return (Wide if goal[0] < 0 else SemiCircleEnv)(goal)

    assert 0 < (np.asarray(TASKS)[:, 0] < 0).sum() < len(TASKS)
    with pytest.raises(ConfigError, match=r"spec says Box\(2\) for actions"):
        run(GymSimulator(replace(TWIN, make_env=make)), RandomPolicy(Box(2)), TASKS)


def test_a_time_limit_of_exactly_the_horizon_is_met():
    def limited(goal):
        return TimeLimit(SemiCircleEnv(goal), FAMILY.horizon)

    policies = Seeker(jr.normal(jr.key(3), (3, 2)))
    made = run(GymSimulator(replace(TWIN, make_env=limited)), policies, TASKS)
    assert eqx.tree_equal(made, run(GymSimulator(TWIN), policies, TASKS))


def test_without_a_reward_function_logs_hold_what_was_paid():
    bare = GymSimulator(replace(TWIN, reward=None))
    policies = Seeker(jr.normal(jr.key(3), (3, 2)))
    assert bare.reward is None
    theirs = run(bare, policies, TASKS)
    np.testing.assert_array_equal(
        theirs.reward, run(GymSimulator(TWIN), policies, TASKS).reward
    )
