"""The bound: exact tours over tables that never exceed the true number of steps."""

from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from borelax.oracles.escape_room import EscapeRoomSearch
from borelax.oracles.search import midpoints
from borelax.oracles.search_bound import best_tour, upper_bound
from borelax.oracles.semicircle import SemiCircleSearch
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle


@pytest.mark.parametrize("horizon", [6, 12, 40])
def test_best_tour_equals_the_best_of_all_orders(horizon: int) -> None:
    chance = np.random.default_rng(horizon)
    first = chance.integers(3, 9, (4, 2))
    legs = chance.integers(0, 6, (4, 2, 4, 2))
    best = 0
    for order in permutations(range(4)):
        for cells in np.ndindex(2, 2, 2, 2):
            time, earned = first[order[0], cells[0]], 0
            for place, task in enumerate(order):
                if place > 0:
                    before = order[place - 1], cells[place - 1]
                    time = time + legs[(*before, task, cells[place])]
                earned += horizon + 1 - time
                best = max(best, earned)
    assert best_tour(first, legs, horizon) == best


def test_no_two_places_in_discs_are_closer_than_the_table() -> None:
    family = SemiCircle(goal_radius=0.25)
    world, angles, cells = SemiCircleSearch(family), midpoints(6), 20
    first, legs = world.tour_tables(angles, 0.0, num_cells=cells)
    assert (first.min(axis=1) <= world.known_steps(angles)).all()
    chance = np.random.default_rng(0)
    away = 0.25 * np.sqrt(chance.random((6, 400)))
    turn = 2 * np.pi * chance.random((6, 400))
    x = np.cos(angles)[:, None] + away * np.cos(turn)
    y = np.sin(angles)[:, None] + away * np.sin(turn)
    off = np.mod(np.arctan2(y, x) - angles[:, None] + np.pi, 2 * np.pi) - np.pi
    half = np.arcsin(0.25)
    cell = np.clip(((off + half) / (2 * half) * cells).astype(int), 0, cells - 1)
    tight = 0
    for one, other in np.ndindex(6, 6):
        apart = np.maximum(abs(x[one] - x[other]), abs(y[one] - y[other]))
        needed = np.ceil(apart / family.step_size - 1e-9)
        table = legs[one, cell[one], other, cell[other]]
        assert (table <= needed).all()
        tight += (table == needed).mean() / 36
    assert tight > 0.1, "the table must not be vacuous"


def test_no_two_blows_follow_faster_than_the_table() -> None:
    """Random walks along the wall, which slide as fast as they can."""
    room = EscapeRoom()
    world, angles, cells = EscapeRoomSearch(room), midpoints(5), 40
    first, legs = world.tour_tables(angles, 0.0, num_cells=cells)
    door = room.door_angle / 2
    half = door + np.arcsin(np.sqrt(2) * room.step_size)
    chance = np.random.default_rng(0)
    drift = np.sign(chance.random((300, 1, 2)) - 0.5)
    actions = np.clip(drift + 0.6 * chance.normal(size=(300, 40, 2)), -1, 1)
    actions[:, 8:] = np.clip(actions[:, 8:] * [1, -1] * 1.5, -1, 1)
    found, ends = _blows(world, jnp.asarray(actions, jnp.float32), angles)
    checked = 0
    for hits, places in zip(found, ends, strict=True):
        times, tasks = np.nonzero(hits)
        off = np.mod(places[times] - angles[tasks] + np.pi, 2 * np.pi) - np.pi
        cell = np.clip(((off + half) / (2 * half) * cells).astype(int), 0, cells - 1)
        assert (first[tasks, cell] <= times + 1).all()
        for i in range(len(times)):
            later = times > times[i]
            steps = legs[tasks[i], cell[i], tasks[later], cell[later]]
            assert (steps <= times[later] - times[i]).all()
            checked += (steps > 0).sum()
    assert checked > 500


def _blows(world, actions, angles) -> tuple[np.ndarray, np.ndarray]:
    """Which task each step finds [R, T, m], and the direction in which it ends."""

    def one_step(state, action):
        margin = jax.vmap(lambda a: world.margin(state, action, a))(
            jnp.asarray(angles, jnp.float32)
        )
        after = world.blind_step(state, action)
        return after, (margin >= 0, jnp.arctan2(after[1], after[0]))

    walk = jax.jit(jax.vmap(lambda path: jax.lax.scan(one_step, jnp.zeros(2), path)[1]))
    found, ends = walk(actions)
    return np.asarray(found), np.asarray(ends)


@pytest.mark.parametrize(
    "world", [SemiCircleSearch(SemiCircle()), EscapeRoomSearch(EscapeRoom())]
)
def test_more_tasks_tighten_the_bound(world) -> None:
    alone = upper_bound(world, num_tasks=1, num_slices=32)
    few = upper_bound(world, num_tasks=4, num_slices=8)
    more = upper_bound(world, num_tasks=7, num_slices=8)
    assert more[0] < few[0] < alone[0] <= alone[1]
    assert alone[1] == few[1] == more[1]
