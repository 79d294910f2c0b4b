"""Search paths: what they claim is what they earn, and no search beats the bound."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.oracles import search_oracle as oracles
from borelax.oracles.escape_room import EscapeRoomSearch
from borelax.oracles.search import first_step, margins, midpoints, walk_to
from borelax.oracles.search_bound import upper_bound
from borelax.oracles.search_optimise import Effort
from borelax.oracles.search_oracle import search_oracle, search_world
from borelax.oracles.semicircle import SemiCircleSearch
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.policy import for_every_task
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle

LITTLE = Effort(
    start_angles=3,
    ascent_steps=30,
    ascent_angles=32,
    polished=1,
    polish_rounds=20,
    polish_angles=256,
    landmarks=32,
    bound_tasks=5,
    bound_slices=4,
)
STORED = [SemiCircle(), EscapeRoom()]
SMALL = [
    SemiCircle(horizon=9, episodes=3, goal_radius=0.3, step_size=0.2),
    EscapeRoom(horizon=9, episodes=3, door_angle=0.6, step_size=0.2),
]


@pytest.fixture(scope="module", params=STORED + SMALL, ids=str)
def solved(request) -> oracles.SearchOracle:
    return search_oracle(request.param, effort=LITTLE)


def test_simulating_the_searcher_earns_its_value(solved) -> None:
    family, world = solved.family, search_world(solved.family)
    tasks = jax.vmap(world.task)(jnp.asarray(midpoints(2_048), jnp.float32))
    rollouts = JaxSimulator(family).rollouts(
        for_every_task(solved.policy(), 2_048),
        tasks,
        repeats=1,
        episodes=family.episodes,
        start="fixed",
        key=jr.key(0),
    )
    returns = rollouts.reward.sum(axis=-1).mean(axis=(0, 1))
    # a task at the very edge of a disc or door may fall to either side
    np.testing.assert_allclose(returns, solved.bayes_optimal, atol=0.05)


def test_bounds_are_in_order_in_every_episode(solved) -> None:
    values = solved.to_json()
    assert values["exact"] is False
    assert 0 < values["bayes_optimal"] < values["upper_bound"] < values["known_task"]
    names = ("bayes_optimal", "upper_bound", "known_task")
    for least, most, known in zip(*map(solved.per_episode.get, names), strict=True):
        assert least <= most + 1e-3 and most <= known
    assert solved.bayes_optimal[0] < solved.bayes_optimal[-1]


def test_nothing_can_be_found_in_too_few_steps() -> None:
    world = SemiCircleSearch(SemiCircle(horizon=5))
    assert upper_bound(world, num_tasks=3, num_slices=2) == (0.0, 0.0)
    assert upper_bound(SemiCircleSearch(SemiCircle(horizon=8)), 3, 2)[0] > 0


def test_a_disc_round_everything_costs_one_look() -> None:
    family = SemiCircle(horizon=4, episodes=1, goal_radius=3.0)
    values = search_oracle(family, effort=LITTLE).to_json()
    assert values.pop("exact") is False
    assert set(values.values()) == {4.0} and len(values) == 5


def test_stored_families_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(family, effort) -> None:
        raise AssertionError(f"computed {family}")

    monkeypatch.setattr(oracles, "_compute", refuse)
    stored = [search_oracle(family).to_json() for family in oracles.SOLVED_FAMILIES]
    assert stored[0]["bayes_optimal"] == pytest.approx(96.4, abs=0.1)
    assert stored[1]["bayes_optimal"] == pytest.approx(91.9, abs=0.1)
    for family, recompute in ((SemiCircle(horizon=50), False), (SemiCircle(), True)):
        with pytest.raises(AssertionError, match="computed"):
            search_oracle(family, recompute=recompute)


def test_writing_and_reading_gives_the_same_oracle(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(oracles, "SOLVED", tmp_path / "searched.json")
    monkeypatch.setattr(oracles, "SOLVED_FAMILIES", SMALL[:1])
    computed = search_oracle(SMALL[0], recompute=True, effort=LITTLE)
    monkeypatch.setattr(oracles, "_compute", lambda family, effort: computed)
    oracles.solve_and_save()
    assert len(json.loads(oracles.SOLVED.read_text())) == 1
    read = search_oracle(SMALL[0])
    assert read is not computed and read.per_episode == computed.per_episode
    np.testing.assert_allclose(read.actions, computed.actions, atol=1e-6)
    np.testing.assert_allclose(read.targets, computed.targets, atol=1e-6)


@pytest.mark.parametrize("family", [SemiCircle(), SMALL[0]], ids=str)
def test_walking_to_a_known_goal_takes_the_fewest_steps(family: SemiCircle) -> None:
    world, angles = SemiCircleSearch(family), midpoints(200)
    steps = world.known_steps(angles)
    goals = np.stack([np.cos(angles), np.sin(angles)], axis=-1)

    def walk(goal, angle):
        actions = walk_to(world, goal)
        return 1 + first_step(margins(world, actions[None], angle[None]))[0]

    targets = jnp.asarray(goals, jnp.float32), jnp.asarray(angles, jnp.float32)
    np.testing.assert_array_equal(jax.jit(jax.vmap(walk))(*targets), steps)
    # one step less: no place of a fine lattice in the box lies in the disc
    unit = np.linspace(-1, 1, 201)
    lattice = np.stack(np.meshgrid(unit, unit), axis=-1).reshape(-1, 2)
    for goal, num in zip(goals, steps, strict=True):
        places = (num - 1) * family.step_size * lattice
        nearest = np.linalg.norm(places - goal, axis=-1).min()
        assert nearest > family.goal_radius - 1e-9


def test_no_way_out_is_faster_than_the_known_one() -> None:
    """Every sequence of eight directions and rest, slides along the wall included."""
    room = EscapeRoom(horizon=8, episodes=1, step_size=0.25)
    angles = midpoints(7)
    axis = jnp.asarray([-1.0, 0.0, 1.0])
    moves = jnp.stack(jnp.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    step = jax.jit(
        jax.vmap(
            jax.vmap(
                lambda task, s, a: room.step(task, s, a, key=jr.key(0)),
                in_axes=(None, None, 0),
            ),
            in_axes=(None, 0, None),
        )
    )
    fewest = EscapeRoomSearch(room).known_steps(angles)
    for angle, most in zip(angles, fewest, strict=True):
        states = np.zeros((1, 2), np.float32)
        for _ in range(most - 1):
            padded = np.zeros((400, 2), np.float32)  # one shape, one compilation
            padded[: len(states)] = states
            after = np.asarray(step(jnp.float32(angle), padded, moves))
            after = after[: len(states)].reshape(-1, 2)
            assert np.linalg.norm(after, axis=-1).max() <= 1
            states = np.unique(after.round(2), axis=0)


@pytest.mark.parametrize("family", SMALL, ids=str)
def test_a_larger_target_is_found_no_later(family) -> None:
    name = "goal_radius" if isinstance(family, SemiCircle) else "door_angle"
    wider = replace(family, **{name: 1.5 * getattr(family, name)})
    paths = jr.uniform(jr.key(3), (8, 3, 9, 2), minval=-0.2, maxval=1.0)
    angles = jnp.asarray(midpoints(128), jnp.float32)

    @jax.jit
    def finds(path):
        worlds = search_world(family), search_world(wider)
        return [first_step(margins(world, path, angles)) for world in worlds]

    first, sooner = map(np.stack, zip(*map(finds, paths), strict=True))
    assert (sooner <= first).all() and (sooner < first).any() and (first < 27).any()


def test_the_room_without_a_door_is_the_family_where_the_door_is_not() -> None:
    room = EscapeRoom()
    world = EscapeRoomSearch(room)
    keys = jr.split(jr.key(0), 4)
    turn = jr.uniform(keys[0], (4_000,), maxval=2 * jnp.pi)
    radius = jr.uniform(keys[1], (4_000,), minval=0.8, maxval=0.9999)
    states = radius[:, None] * jnp.stack([jnp.cos(turn), jnp.sin(turn)], axis=-1)
    actions = jr.uniform(keys[2], (4_000, 2), minval=-1.0, maxval=1.0)
    doors = turn + jr.uniform(keys[3], (4_000,), minval=-0.4, maxval=0.4)
    own = jax.jit(jax.vmap(lambda d, s, a: room.step(d, s, a, key=jr.key(0))))(
        doors, states, actions
    )
    margin = jax.jit(jax.vmap(world.margin))(states, actions, doors)
    blind = jax.jit(jax.vmap(world.blind_step))(states, actions)
    outside = jnp.linalg.norm(own, axis=-1) > 1
    clear = jnp.abs(margin) > 1e-5
    np.testing.assert_array_equal((margin >= 0)[clear], outside[clear])
    inside = ~outside & clear
    np.testing.assert_allclose(own[inside], blind[inside], atol=1e-5)
    assert 200 < outside.sum() < 2_000
