"""The families in the plane: Semi-circle, Wind, Escape-Room."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borelax.errors import ConfigError
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.family import ShapedFamily, check_family, draw_tasks
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind, WindHard
from borelax.types import Transition

FAMILIES = [SemiCircle(), Wind(), WindHard(), EscapeRoom()]
KEY = jr.key(0)
ROOM = EscapeRoom()

room_step = jax.jit(lambda task, state, action: ROOM.step(task, state, action, key=KEY))


def reward_at(family, task, point) -> float:
    point = jnp.asarray(point, jnp.float32)
    step = Transition(jnp.zeros(2), jnp.zeros(2), jnp.zeros(()), point)
    return float(family.reward(task, step))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_families_keep_their_contract(family) -> None:
    check_family(family)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_actions_beyond_the_box_are_clipped(family) -> None:
    task = family.sample_task(key=KEY)
    far = family.step(task, jnp.zeros(2), jnp.array([5.0, -9.0]), key=KEY)
    edge = family.step(task, jnp.zeros(2), jnp.array([1.0, -1.0]), key=KEY)
    np.testing.assert_array_equal(far, edge)


def test_semicircle_goals_lie_on_the_upper_half_circle() -> None:
    goals = draw_tasks(SemiCircle(), 200, key=KEY)
    np.testing.assert_allclose(jnp.linalg.norm(goals, axis=1), 1.0, rtol=1e-5)
    assert (goals[:, 1] >= 0).all()
    angles = np.sort(np.arctan2(goals[:, 1], goals[:, 0]))
    assert np.abs(angles / np.pi - (np.arange(200) + 0.5) / 200).max() < 0.12


def test_semicircle_pays_inside_the_disc() -> None:
    goal = jnp.array([0.0, 1.0])
    assert reward_at(SemiCircle(), goal, [0.0, 0.81]) == 1
    assert reward_at(SemiCircle(), goal, [0.0, 0.79]) == 0


def test_semicircle_starts() -> None:
    keys = jr.split(KEY, 500)

    def draw(start: str) -> np.ndarray:
        reset = lambda k: SemiCircle().reset(jnp.zeros(2), start, key=k)  # noqa: E731
        return np.asarray(jax.vmap(reset)(keys))

    assert (draw("fixed") == 0).all()
    for start in ("uniform", "excluding"):
        points = draw(start)
        assert (points >= [-1.5, -0.5]).all() and (points <= [1.5, 1.5]).all()
        assert np.ptp(points, axis=0).min() > 1.9
    radius = np.linalg.norm(draw("excluding"), axis=1)
    assert not ((radius >= 0.8) & (radius <= 1.2)).any()
    radius = np.linalg.norm(draw("uniform"), axis=1)
    assert ((radius >= 0.8) & (radius <= 1.2)).any()
    with pytest.raises(ConfigError, match="no start"):
        draw("anywhere")


def test_wind_is_cancelled_by_the_opposite_step() -> None:
    wind = jnp.array([0.03, -0.05])
    state = jnp.array([0.2, 0.9])
    after = Wind().step(wind, state, -wind / 0.1, key=KEY)
    np.testing.assert_allclose(after, state, atol=1e-7)


def test_wind_pays_at_the_same_place_in_every_task() -> None:
    for wind in draw_tasks(Wind(), 5, key=KEY):
        assert reward_at(Wind(), wind, [0.1, 1.1]) == 1
        assert reward_at(WindHard(), wind, [0.1, 1.1]) == 0


@pytest.mark.parametrize("family", [Wind(), WindHard()], ids=lambda f: f.name)
def test_agents_of_wind_learn_from_the_distance(family) -> None:
    assert isinstance(family, ShapedFamily) and not isinstance(ROOM, ShapedFamily)
    wind = family.sample_task(key=KEY)
    for point, distance in {(0.0, 0.0): 1, (0.3, 0.6): 0.5, (0.0, 1.0): 0}.items():
        step = Transition(jnp.ones(2), jnp.ones(2), jnp.ones(()), jnp.asarray(point))
        found = family.training_reward(wind, step)
        assert float(found) == pytest.approx(-distance, abs=1e-6)


def test_the_hard_wind_is_a_wind_in_which_adapting_pays() -> None:
    """Longer, stronger, and with a goal that no still agent stays in."""
    hard = WindHard()
    assert isinstance(hard, Wind) and hard.name == "wind-hard" != Wind.name
    assert hard == WindHard(75, 1, 0.03, 0.08, 0.1) and hard != Wind(75, 1, 0.03, 0.08)
    assert hard.goal_radius < hard.strongest < hard.step_size
    winds = draw_tasks(hard, 200, key=KEY)
    assert 0.07 < np.abs(winds).max() <= 0.08


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_tasks_differ_in_what_they_say(family) -> None:
    """One step from everywhere: where it ends, and what another end would pay."""
    one, other = draw_tasks(family, 2, key=KEY)
    states = 1.3 * jr.normal(KEY, (500, 2))
    actions = jr.uniform(KEY, (500, 2), minval=-1)
    step = lambda t: jax.vmap(lambda s, a: family.step(t, s, a, key=KEY))  # noqa: E731
    ends = step(one)(states, actions)
    moves_alike = np.array_equal(ends, step(other)(states, actions))
    blank = jnp.zeros(500)
    steps = Transition(states, actions, blank, ends)
    pay = lambda t: jax.vmap(lambda s: family.reward(t, s))(steps)  # noqa: E731
    pays_alike = np.array_equal(pay(one), pay(other))
    assert (moves_alike, pays_alike) == {
        "rewards": (True, False),
        "transitions": (False, True),
    }[family.differs_in]


def test_a_wind_that_nobody_can_stand_is_refused() -> None:
    with pytest.raises(ConfigError, match="hold out"):
        Wind(strongest=0.1)


angles = st.floats(0, 6.28)


@settings(deadline=None, max_examples=200)
@given(
    task=st.floats(0, 3.14),
    angle=angles,
    radius=st.floats(0, 0.9899),
    action=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_nobody_leaves_the_room_but_through_the_door(
    task, angle, radius, action
) -> None:
    state = radius * np.array([np.cos(angle), np.sin(angle)], np.float32)
    after = np.asarray(room_step(jnp.float32(task), state, jnp.asarray(action)))
    target = state + 0.1 * np.asarray(action, np.float32)
    if np.linalg.norm(after) > 1:
        np.testing.assert_allclose(after, target, atol=1e-6)
        # it crossed within half the door's angle, give or take one step's length
        crossing = np.arctan2(*after[::-1]) - task
        off = np.abs((crossing + np.pi) % (2 * np.pi) - np.pi)
        assert off <= ROOM.door_angle / 2 + 0.15
    elif np.linalg.norm(target) > 1.001:
        assert np.linalg.norm(after) == pytest.approx(0.99, abs=1e-5)


def test_the_door_wraps_around() -> None:
    """A door centred at angle 0 reaches below the axis as far as above it."""
    door = jnp.zeros(())
    for angle in (0.15, -0.15):
        direction = jnp.array([np.cos(angle), np.sin(angle)], jnp.float32)
        after = room_step(door, 0.95 * direction, direction)
        assert np.linalg.norm(after) > 1
    for angle in (0.25, -0.25, np.pi):
        direction = jnp.array([np.cos(angle), np.sin(angle)], jnp.float32)
        after = room_step(door, 0.95 * direction, direction)
        assert np.linalg.norm(after) == pytest.approx(0.99, abs=1e-5)


def test_the_wall_also_keeps_one_out() -> None:
    """From outside, a step back in is stopped by the wall unless it is at the door."""
    outside = jnp.array([0.0, -1.05])
    after = room_step(jnp.float32(np.pi / 2), outside, jnp.array([0.0, 1.0]))
    assert np.linalg.norm(after) == pytest.approx(0.99, abs=1e-5)
    through = room_step(
        jnp.float32(0.0), jnp.array([1.05, 0.0]), jnp.array([-1.0, 0.0])
    )
    np.testing.assert_allclose(through, [0.95, 0.0], atol=1e-6)


def test_no_reward_leaks_at_the_wall() -> None:
    """Leaning on the wall anywhere but at the door never pays."""
    around = np.linspace(0.5, 2 * np.pi - 0.5, 500)
    directions = jnp.asarray(np.stack([np.cos(around), np.sin(around)], 1), jnp.float32)

    def lean(direction):
        step = lambda s, _: (ROOM.step(jnp.zeros(()), s, direction, key=KEY), s)  # noqa: E731
        return jax.lax.scan(step, jnp.zeros(2), None, length=30)[0]

    ends = jax.jit(jax.vmap(lean))(directions)
    assert (jnp.linalg.norm(ends, axis=1) < 1).all()


def test_room_starts_are_inside() -> None:
    keys = jr.split(KEY, 500)
    reset = lambda k: ROOM.reset(jnp.zeros(()), "uniform", key=k)  # noqa: E731
    radius = np.linalg.norm(np.asarray(jax.vmap(reset)(keys)), axis=1)
    assert radius.max() < 1 and abs(radius.mean() - 0.5) < 0.05
