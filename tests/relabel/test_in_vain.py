"""Tasks drawn late have the distribution of a posterior, however rare the history."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.logs import TaskLogs
from borelax.relabel.in_vain import any_of, possible_tasks, steps_in_vain
from borelax.relabel.rewards import Relabelled, RelabelRewards
from borelax.types import Episodes
from tests.relabel.coded import Coded, coded_logs

TASKS, STEPS, DRAWS = 5, 5, 4_000


def walk_pays(task, step):
    """Every walk goes to places 1, 2, 3, …; the task pays at its own place."""
    return jnp.where(step.next_obs[0] == task, 1.0, -0.1)


@pytest.fixture(scope="module")
def walks() -> Relabelled:
    """Logs in which all agents took the same walk: it says nothing of their tasks."""
    places = jnp.arange(STEPS + 1, dtype=jnp.float32)
    obs = jnp.broadcast_to(places[:, None], (TASKS, 2, 1, STEPS + 1, 1))
    blank = jnp.zeros((TASKS, 2, 1, STEPS))
    settings = RelabelRewards(
        belief_pieces=1.0,
        belief_own=0.0,
        pieces=1,
        belief_in_vain=1.0,
    )
    tasks = jnp.arange(2.0, 2.0 + TASKS)  # the first is met in step 2, the last never
    logs = Episodes(obs, blank[..., None], blank)
    source = Relabelled(tasks, logs, walk_pays, settings)
    return source.for_belief()


@pytest.fixture(scope="module")
def drawn(walks: Relabelled):
    draw = eqx.filter_jit(lambda s, key: s.draw_to_decode(DRAWS, 0, key=key))
    return jax.tree.map(np.asarray, draw(walks, jr.key(0)))


def test_nothing_is_found_before(drawn) -> None:
    paid = drawn.steps.reward > 0
    before = np.arange(STEPS) < drawn.since[:, None]
    assert paid.any() and not (paid & before).any()
    assert set(drawn.since) == set(range(STEPS + 1))


def test_afterwards_all_that_is_left_is_equally_likely(drawn) -> None:
    """The law: tasks given the history are as a posterior would have them."""
    paid = drawn.steps.reward > 0
    place = np.where(paid.any(axis=1), paid.argmax(axis=1) + 1, STEPS + 1)
    for since in range(STEPS + 1):
        found_at = place[drawn.since == since]
        left = range(max(since + 1, 2), TASKS + 2)  # places of the tasks still possible
        counts = np.array([(found_at == p).sum() for p in left])
        expected = len(found_at) / max(len(left), 1)
        assert counts.sum() == len(found_at)
        assert abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_what_all_tasks_pay_rules_none_of_them_out() -> None:
    rewards = jnp.asarray([[0.5, 1.0, 0.0], [0.5, 0.0, 0.0], [0.5, 0.0, 1.0]])
    left = [possible_tasks(rewards, jnp.asarray(steps)).tolist() for steps in range(4)]
    assert left == [[True] * 3, [True] * 3, [False, True, True], [False, True, False]]


def test_only_a_share_of_the_rollouts_searches() -> None:
    steps = np.asarray(steps_in_vain(DRAWS, 9, 0.3, key=jr.key(1)))
    expected = 0.3 * 0.9 * DRAWS
    assert abs((steps > 0).sum() - expected) < 5 * np.sqrt(expected)
    assert steps.min() == 0 and steps.max() == 9
    assert not steps_in_vain(DRAWS, 9, 0.0, key=jr.key(1)).any()


def test_one_of_the_possible_is_drawn_and_no_other() -> None:
    possible = jnp.asarray([[True, False, True], [False, True, False]])
    some = np.stack([any_of(possible, key=jr.key(n)) for n in range(40)])
    assert set(some[:, 0]) == {0, 2} and set(some[:, 1]) == {1}


def test_other_rollouts_and_the_meta_agents_are_as_ever() -> None:
    logs, some = coded_logs(), RelabelRewards(belief_in_vain=0.5)
    made = [source_of(x, logs) for x in (RelabelRewards(), some)]
    searching = made[1].draw_to_decode(200, 5, key=jr.key(0))
    plain = made[0].draw_to_decode(200, 5, key=jr.split(jr.key(0), 3)[0])
    same = np.asarray(searching.since) == 0
    assert 0 < same.sum() < 200
    kept = [jax.tree.map(lambda x: x[same], d.steps) for d in (plain, searching)]
    assert eqx.tree_equal(*kept)
    for_meta = [s.draw(200, key=jr.key(0)) for s in made]
    assert eqx.tree_equal(*for_meta)


def source_of(settings: RelabelRewards, logs: TaskLogs) -> Relabelled:
    return settings(logs, Coded(), start="uniform", key=jr.key(0))


def test_more_than_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="belief_in_vain"):
        RelabelRewards(belief_in_vain=1.5)
