"""Laws of the diagnosis: it agrees with the propositions, and only outcomes count."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from borelax.ambiguity.diagnose import Diagnose, Diagnosis, Material
from borelax.ambiguity.verdict import sentences
from borelax.errors import ConfigError, DataError
from borelax.logs import TaskLogs
from borelax.progress import Quiet
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.gridworld import MOVES, Gridworld
from borelax.types import Episodes
from tests.ambiguity.two_rooms import EXPERTS, HABITS, VISITORS

DIAGNOSE = Diagnose(asked=400, compared=1_200)
GRID = Gridworld(size=3, horizon=6, episodes=2)


def diagnose(episodes: Episodes, **known) -> Diagnosis:
    tasks = known.pop("tasks", None)
    logs = TaskLogs(tasks, episodes, known.pop("policies", None))
    return DIAGNOSE(Material(logs, **known), Quiet())


def grid_logs(expert: bool) -> Episodes:
    """Agents that walk to their goal and stay, or that walk at random."""
    rng, tasks = np.random.default_rng(1), np.asarray(GRID.all_tasks())
    cells = np.zeros((len(tasks), 30, 2, 7), int)
    actions = rng.integers(5, size=(len(tasks), 30, 2, 6))
    cells[..., 0] = rng.integers(9, size=cells.shape[:-1])
    for time in range(6):
        here, goal = cells[..., time], tasks[:, None, None]
        if expert:
            actions[..., time] = _towards(here, goal)
        x, y = np.clip(
            np.stack([here % 3, here // 3])
            + np.moveaxis(MOVES[actions[..., time]], -1, 0),
            0,
            2,
        )
        cells[..., time + 1] = x + 3 * y
    paid = np.where(cells[..., 1:] == tasks[:, None, None, None], 1.0, -0.1)
    obs = jnp.asarray(np.eye(9, dtype=np.float32)[cells])
    return Episodes(
        obs, jnp.asarray(actions, jnp.int32), jnp.asarray(paid, jnp.float32)
    )


def _towards(here: np.ndarray, goal: np.ndarray) -> np.ndarray:
    right, up = goal % 3 - here % 3, goal // 3 - here // 3
    across = np.where(right > 0, 2, np.where(right < 0, 4, 0))
    return np.where(up > 0, 1, np.where(up < 0, 3, across))


def test_experts_are_ambiguous_and_visitors_are_not():
    assert diagnose(EXPERTS).as_logged.verdict == "ambiguous"
    assert diagnose(EXPERTS).as_logged.counterparts == 0
    told = diagnose(VISITORS)
    assert told.as_logged.verdict == "told apart" and told.differs_in == "rewards"


def test_habits_are_no_evidence():
    tasks = jnp.arange(5) * 0 + 8
    same = grid_logs(expert=False)
    same = replace(same, reward=jnp.where(same.obs[..., 1:, 8] > 0, 1.0, -0.1))
    assert diagnose(same).as_logged.verdict == "alike"
    known = diagnose(same, tasks=tasks, simulator=JaxSimulator(GRID))
    assert known.as_logged.verdict == "alike"
    # never in one place, nothing is known of how the other task would have been there
    assert diagnose(HABITS).as_logged.counterparts == 0


@pytest.mark.parametrize("known", [True, False])
def test_experts_on_the_grid_need_relabelling_and_it_helps(known):
    material = {"tasks": GRID.all_tasks(), "simulator": JaxSimulator(GRID)}
    found = diagnose(grid_logs(expert=True), **(material if known else {}))
    assert found.as_logged.verdict == "ambiguous" and found.differs_in == "rewards"
    said = " ".join(sentences(found))
    if known:
        assert found.relabelled is not None
        assert found.relabelled.verdict == "told apart"
        assert found.donors is not None and 1 <= found.donors <= 4
        assert "Reward relabelling (--relabel rewards) repairs this" in said
    else:
        assert found.relabelled is None and "reward function is not known" in said


def test_random_walkers_need_nothing():
    found = diagnose(
        grid_logs(expert=False), tasks=GRID.all_tasks(), simulator=JaxSimulator(GRID)
    )
    assert found.as_logged.verdict == "told apart"
    assert found.relabelled is None and found.replayed is None
    assert "No relabelling" in " ".join(sentences(found))


def test_ways_are_sought_where_rewards_are_known_and_said_where_they_are_missing():
    material = {"tasks": GRID.all_tasks(), "simulator": JaxSimulator(GRID)}
    logs = grid_logs(expert=False)
    anywhere = np.random.default_rng(0).integers(9, size=logs.obs.shape[:-1])
    wide = diagnose(replace(logs, obs=jnp.eye(9)[anywhere]), **material)
    assert wide.ways is not None and wide.ways.missing == 0
    assert wide.to_json()["pairs_without_a_way"] == 0
    assert not [x for x in sentences(wide) if "search on" in x]
    still = replace(logs, obs=jnp.broadcast_to(logs.obs[..., :1, :], logs.obs.shape))
    narrow = diagnose(still, **material)
    assert narrow.ways is not None and narrow.ways.missing == 1
    said = next(x for x in sentences(narrow) if "search on" in x)
    assert said.startswith("For 100% of the pairs of tasks none of 300 episodes goes")
    unknown = diagnose(logs)
    assert unknown.ways is None and unknown.to_json()["pairs_without_a_way"] is None


def test_units_do_not_matter_and_seeds_give_the_same():
    logs = grid_logs(expert=True)
    first, again = diagnose(logs).to_json(), diagnose(logs).to_json()
    assert first == again
    other = replace(logs, reward=1_000 * logs.reward - 7, obs=3 * logs.obs)
    share = diagnose(logs).pairs.share
    assert diagnose(other).pairs.share == pytest.approx(share, nan_ok=True)


def test_pairs_are_symmetric_and_shares():
    share = diagnose(grid_logs(expert=True)).pairs.share
    assert share == pytest.approx(share.T, nan_ok=True)
    known = share[~np.isnan(share)]
    assert ((known >= 0) & (known <= 1)).all() and np.isnan(np.diag(share)).all()


def test_padding_is_never_read():
    logs = grid_logs(expert=False)
    length = jnp.full(logs.reward.shape[:-1], 4)
    wild = replace(logs, reward=logs.reward.at[..., 4:].set(99.0), length=length)
    tame = replace(logs, reward=logs.reward.at[..., 4:].set(0.0), length=length)
    assert diagnose(wild).to_json() == diagnose(tame).to_json()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda e: jax.tree.map(lambda x: x[:1], e), "hold one task"),
        (lambda e: jax.tree.map(lambda x: x[:, :1], e), "one rollout of each task"),
        (
            lambda e: replace(e, reward=e.reward.at[1, 3, 0, 2].set(jnp.nan)),
            "Task 1, rollout 3 of these logs has NaN or infinity in reward",
        ),
        (
            lambda e: replace(e, obs=e.obs.at[0, 2].set(jnp.inf)),
            "Task 0, rollout 2 of these logs has NaN or infinity in obs",
        ),
    ],
)
def test_bad_logs_get_a_sentence(change, said):
    with pytest.raises(DataError, match=said):
        diagnose(change(EXPERTS))
    with pytest.raises(ConfigError, match=r"Diagnose\.asked must be above zero"):
        Diagnose(asked=0)


def test_constant_rewards_and_unsolved_tasks_are_named():
    logs = grid_logs(expert=True)
    nothing = diagnose(replace(logs, reward=jnp.zeros_like(logs.reward)))
    assert nothing.coverage.constant_reward == 0
    assert "Every step of these logs pays 0" in " ".join(sentences(nothing))
    learned = logs.reward.at[:, :2].set(-0.1).at[3].set(-0.1)
    found = diagnose(replace(logs, reward=learned))
    assert found.coverage.unsolved == (3,)
    assert "Never solved in these logs: task 3." in sentences(found)
    assert found.coverage.rewarded_tasks == pytest.approx(0.8)
