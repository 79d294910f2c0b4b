"""Half-Cheetah-Vel and Ant-Semi-circle: starts, observations, rewards by hand."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.family import ShapedFamily, TaskFamily, draw_tasks
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.tasks.mujoco_family import MujocoFamily, Physics
from borelax.tasks.semicircle import SemiCircle
from borelax.types import Transition

ANT, CHEETAH = AntSemiCircle(), HalfCheetahVel()
STANDING = Physics(jnp.zeros(15).at[2].set(0.75).at[3].set(1.0), jnp.zeros(14))
AT_REST = Physics(jnp.zeros(9), jnp.zeros(9))
KEYS = jr.split(jr.key(0), 500)
GOAL = jnp.array([0.0, 1.0])


def at(*place: float) -> Physics:
    return Physics(STANDING.qpos.at[:2].set(jnp.array(place)), STANDING.qvel)


def ant_step(place: Physics, action=None) -> Transition:
    action = jnp.zeros(8) if action is None else action
    obs = ANT.observe(STANDING, STANDING)
    return Transition(obs, action, jnp.zeros(()), ANT.observe(STANDING, place))


def test_families_are_known_by_their_contract() -> None:
    for family in (ANT, CHEETAH):
        assert isinstance(family, MujocoFamily) and not isinstance(family, TaskFamily)
        assert hash(family) == hash(type(family)())
    assert isinstance(ANT, ShapedFamily) and not isinstance(CHEETAH, ShapedFamily)
    assert not isinstance(SemiCircle(), MujocoFamily)


def test_tasks_are_those_of_the_paper() -> None:
    goals = draw_tasks(ANT, 50, key=jr.key(3))
    np.testing.assert_array_equal(goals, draw_tasks(SemiCircle(), 50, key=jr.key(3)))
    speeds = np.sort(draw_tasks(CHEETAH, 200, key=jr.key(3)))
    assert np.abs(speeds / 3 - (np.arange(200) + 0.5) / 200).max() < 0.12


@pytest.mark.parametrize("start", ANT.starts)
def test_an_ant_starts_where_a_point_would_and_stands_still(start: str) -> None:
    first = jax.vmap(lambda k: ANT.reset(GOAL, start, STANDING, key=k))(KEYS)
    points = jax.vmap(lambda k: SemiCircle().reset(GOAL, start, key=k))(KEYS)
    np.testing.assert_array_equal(first.qpos[:, :2], points)
    (pose,) = np.unique(first.qpos[:, 2:], axis=0)
    np.testing.assert_array_equal(pose, STANDING.qpos[2:])
    assert not first.qvel.any()


def test_a_cheetah_starts_with_gymnasiums_noise() -> None:
    task = jnp.zeros(())
    first = jax.vmap(lambda k: CHEETAH.reset(task, "fixed", AT_REST, key=k))(KEYS)
    assert jnp.abs(first.qpos).max() <= 0.1 and float(first.qpos.std()) > 0.055
    np.testing.assert_allclose(first.qvel.std(), 0.1, rtol=0.05)


@pytest.mark.parametrize(("family", "default"), [(ANT, STANDING), (CHEETAH, AT_REST)])
def test_unknown_starts_are_refused(family, default) -> None:
    with pytest.raises(ConfigError, match="has no start called 'moon'"):
        family.reset(family.sample_task(key=KEYS[0]), "moon", default, key=KEYS[0])


def test_an_ant_sees_everything() -> None:
    after = Physics(jnp.arange(15.0), 100 + jnp.arange(14.0))
    expected = [*range(15), *range(100, 114)]
    np.testing.assert_array_equal(ANT.observe(STANDING, after), expected)
    assert ANT.spec.obs_size == 29 and ANT.spec.action.size == 8


def test_a_cheetah_sees_its_speed_but_not_its_place() -> None:
    before = Physics(jnp.full(9, 7.0), jnp.zeros(9))
    after = Physics(jnp.arange(9.0) + 7.1, 20 + jnp.arange(9.0))
    seen = CHEETAH.observe(before, after)
    np.testing.assert_array_equal(seen[:8], after.qpos[1:])
    np.testing.assert_array_equal(seen[8:17], after.qvel)
    np.testing.assert_allclose(seen[17], 2.0, rtol=1e-5)
    assert CHEETAH.observe(after, after)[17] == 0 and seen.shape == (18,)


def test_an_ant_is_paid_in_the_disc_and_pays_for_torque() -> None:
    torque = jnp.array([1.0, -1, 0.5, 0, 0, 0, 0, 0])  # ‖a‖² is 2.25
    assert float(ANT.reward(GOAL, ant_step(at(0.1, 0.9)))) == 1
    assert float(ANT.reward(GOAL, ant_step(at(0.15, 0.85)))) == 0
    paid = ANT.reward(GOAL, ant_step(at(0.1, 0.9), torque))
    np.testing.assert_allclose(paid, 1 - 0.225, rtol=1e-6)


def test_an_ant_learns_from_the_distance_along_both_axes() -> None:
    torque = jnp.array([1.0, -1, 0.5, 0, 0, 0, 0, 0])
    paid = ANT.training_reward(GOAL, ant_step(at(0.5, -0.25), torque))
    np.testing.assert_allclose(paid, -0.5 - 1.25 - 0.225, rtol=1e-6)


def test_a_cheetah_is_paid_for_the_right_speed() -> None:
    seen = jnp.zeros(18).at[17].set(1.5)
    step = Transition(jnp.zeros(18), jnp.full(6, 0.5), jnp.zeros(()), seen)
    np.testing.assert_allclose(CHEETAH.reward(jnp.float32(2.5), step), -1.075)


@pytest.mark.parametrize("family", [AntSemiCircle, HalfCheetahVel])
def test_senseless_worlds_are_refused(family) -> None:
    with pytest.raises(ConfigError, match="horizon must be above zero"):
        family(horizon=0)
    with pytest.raises(ConfigError, match="torque_cost must be 0 or more"):
        family(torque_cost=-1.0)
