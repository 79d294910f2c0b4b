"""MuJoCo rollouts against a loop over MuJoCo's own functions, and their laws."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import Mock

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import mujoco
import numpy as np
import pytest

from borelax.agents.sac import SAC
from borelax.errors import NumericalError
from borelax.simulate import mujoco_engine
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.simulate.mujoco_engine import load_model, model_path
from borelax.simulate.mujoco_programs import programs_of
from borelax.simulate.mujoco_simulator import MujocoSimulator
from borelax.simulate.of_family import engine_of, simulator_of
from borelax.simulate.policy import AgentPolicy, RandomPolicy
from borelax.simulate.simulator import OfFamily
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.family import draw_tasks
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.tasks.mujoco_family import Physics
from borelax.tasks.semicircle import SemiCircle
from borelax.types import Box, Episodes, Transition

ANT, CHEETAH = AntSemiCircle(horizon=4), HalfCheetahVel(horizon=4)
FAMILIES = [ANT, CHEETAH]


class Noting(eqx.Module):
    """Acts by what it remembers: the sum of rewards and observations."""

    first: jax.Array
    size: int = eqx.field(static=True)

    def start(self):
        return self.first

    def act(self, memory, obs, *, key):
        noise = jr.uniform(key, (self.size,), minval=-0.1, maxval=0.1)
        return noise + jnp.sin(memory + obs[-1])

    def remember(self, memory, step: Transition):
        return memory + step.reward + step.next_obs[2]


def noting(family, count: int) -> Noting:
    return Noting(jnp.arange(float(count)), family.spec.action.size)


def start_of(family) -> str:
    return "uniform" if "uniform" in family.starts else "fixed"


def run(family, policies, count: int = 3, *, threads: int = 1, seed=0) -> Episodes:
    tasks = draw_tasks(family, count, key=jr.key(5))
    start = start_of(family)
    return MujocoSimulator(family, threads).rollouts(
        policies, tasks, repeats=2, episodes=2, start=start, key=jr.key(seed)
    )


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda f: f.name)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def made(family) -> Episodes:
    return run(family, noting(family, 3))


def test_shapes_and_dtypes(family, made: Episodes) -> None:
    assert made.obs.shape == (3, 2, 2, 5, family.spec.obs_size)
    assert made.action.shape == (3, 2, 2, 4, family.spec.action.size)
    assert made.reward.shape == (3, 2, 2, 4)
    assert {x.dtype for x in jax.tree.leaves(made)} == {jnp.dtype("float32")}
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(made))


def rollout_by_hand(family, policy, task, start: str, key) -> Episodes:
    """The documented use of keys, with loops and one simulation."""
    model = load_model(family.model_file)
    data, memory, found = mujoco.MjData(model), policy.start(), []
    default = Physics(jnp.asarray(model.qpos0, jnp.float32), jnp.zeros(model.nv))
    for episode in range(2):
        key_reset, key_acts = jr.split(jr.fold_in(key, episode))
        state = family.reset(task, start, default, key=key_reset)
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = state.qpos, state.qvel
        seen, actions, rewards = [family.observe(state, state)], [], []
        for t in range(family.horizon):
            key_act = jr.fold_in(key_acts, t)
            actions.append(policy.act(memory, seen[-1], key=key_act))
            data.ctrl[:] = np.clip(actions[-1], -1, 1)
            mujoco.mj_step(model, data, 5)
            after = [jnp.asarray(x, jnp.float32) for x in (data.qpos, data.qvel)]
            before, state = state, Physics(*after)
            seen.append(family.observe(before, state))
            step = Transition(seen[-2], actions[-1], jnp.zeros(()), seen[-1])
            rewards.append(family.reward(task, step))
            step = Transition(seen[-2], actions[-1], rewards[-1], seen[-1])
            memory = policy.remember(memory, step)
        found.append(Episodes(*map(jnp.stack, (seen, actions, rewards))))
    return jax.tree.map(lambda *x: jnp.stack(x), *found)


def test_many_at_once_equal_a_loop(family, made: Episodes) -> None:
    tasks, start = draw_tasks(family, 3, key=jr.key(5)), start_of(family)
    for n, repeat in ((0, 0), (2, 1)):
        policy = Noting(jnp.float32(n), family.spec.action.size)
        key = jr.fold_in(jr.fold_in(jr.key(0), n), repeat)
        alone = rollout_by_hand(family, policy, tasks[n], start, key)
        here = jax.tree.map(lambda x, n=n, r=repeat: x[n, r], made)
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(here), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_threads_change_no_bit(family, made: Episodes) -> None:
    assert eqx.tree_equal(run(family, noting(family, 3), threads=2), made)


def test_keys_decide_everything(family, made: Episodes) -> None:
    assert eqx.tree_equal(run(family, noting(family, 3)), made)
    assert not eqx.tree_equal(run(family, noting(family, 3), seed=1), made)
    every = made.action.reshape(12, -1)  # each task, repeat and episode is its own
    assert len(np.unique(every, axis=0)) == 12


def test_more_tasks_leave_the_first_ones_unchanged(family, made: Episodes) -> None:
    few = run(family, noting(family, 2), 2)
    assert eqx.tree_equal(few, jax.tree.map(lambda x: x[:2], made))


def test_rewards_are_those_of_relabelling(family, made: Episodes) -> None:
    tasks, simulator = draw_tasks(family, 3, key=jr.key(5)), simulator_of(family)
    of_steps = jax.vmap(jax.vmap(simulator.reward, (None, 0)), (None, 0))
    again = jax.jit(jax.vmap(of_steps))(tasks, made.transitions())
    np.testing.assert_allclose(again, made.reward.reshape(3, 2, 8), atol=1e-6)
    assert float(jnp.abs(made.reward).max()) > 0


def test_agents_and_random_policies_run_and_compile_once(family) -> None:
    agent, spec = SAC(hidden=(8,)), family.spec
    keys = jr.split(jr.key(1), 3)
    states = eqx.filter_vmap(lambda k: agent.acting(agent.init(spec, key=k)))(keys)
    policies = AgentPolicy(agent, states, jnp.ones(3))
    again = jax.tree.map(lambda x: 2 * x, policies)
    programs_of.cache_clear()
    for policy in (policies, again, RandomPolicy(spec.action)):
        assert bool(jnp.isfinite(run(family, policy).obs).all())
    assert programs_of.cache_info().misses == 2
    _, rest = eqx.partition(policies, eqx.is_array)
    programs = programs_of(family, rest, start_of(family))
    assert programs.advance._cache_size() == programs.begin._cache_size() == 1


@dataclass(frozen=True)
class Traced(HalfCheetahVel):
    """Notes when it is compiled."""

    noted = Mock()

    def observe(self, before, after):
        self.noted()
        return super().observe(before, after)


def test_all_tasks_load_and_compile_once(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    mujoco_engine._load.cache_clear()
    for _ in range(2):
        run(Traced(horizon=3), RandomPolicy(Box(6)), 4)
    assert Traced.noted.call_count == 2  # for the first observation and for others
    assert mujoco_engine._load.cache_info().misses == 1
    assert not list(tmp_path.iterdir())  # where MuJoCo would complain of the model


def test_a_family_finds_its_simulator() -> None:
    simulator = simulator_of(ANT)
    assert isinstance(simulator, MujocoSimulator)
    assert simulator.spec == ANT.spec
    assert simulator.reward == OfFamily(AntSemiCircle(horizon=4), "reward")
    assert simulator.training_reward == OfFamily(ANT, "training_reward")
    assert simulator_of(CHEETAH).training_reward is None
    assert isinstance(simulator_of(SemiCircle()), JaxSimulator)
    text = Path(model_path("ant.xml")).read_bytes()
    sha = hashlib.sha256(text).hexdigest()
    assert engine_of(ANT) == f"MuJoCo {mujoco.__version__}, ant.xml {sha[:12]}"
    assert engine_of(SemiCircle()) is None


@dataclass(frozen=True)
class Thrown(HalfCheetahVel):
    """Begins at a speed that no float can take."""

    horizon: int = 3

    def reset(self, task, start, default, *, key):
        too_fast = jnp.where(task > 1.5, 1e11, 0.0)
        return Physics(default.qpos, default.qvel + too_fast)


def test_an_unstable_simulation_is_named(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo also writes what it says to a file
    sentence = r"task 1 became unstable \(BADQVEL\) in episode 1, step 1\."
    with pytest.raises(NumericalError, match=sentence):
        MujocoSimulator(Thrown(), 1).rollouts(
            RandomPolicy(Box(6)),
            jnp.array([1.0, 2.0]),
            repeats=2,
            episodes=1,
            start="fixed",
            key=jr.key(0),
        )
