"""What all tests share: strict shapes, one compile cache, and a grid of 3 × 3 cells."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Before JAX starts; child processes inherit both. Time is compile time.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=1"

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from borelax.agents.dqn import DQN
from borelax.belief.decoder import CellDecoder
from borelax.belief.elbo import BeliefModel
from borelax.belief.fit import FitBelief
from borelax.collect.collect import Collect
from borelax.learn import Journal
from borelax.logs import TaskLogs
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.gridworld import Gridworld

CACHE = Path(tempfile.gettempdir()) / f"borelax-tests-jax-{jax.__version__}"

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_configure(config: pytest.Config) -> None:
    # Workers share the cache without a lock. An entry that another one is writing
    # cannot be read; JAX then says so and compiles, which is all that is needed.
    config.addinivalue_line(
        "filterwarnings", "ignore:Error (read|writ)ing persistent compilation cache"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """One file, one worker: what a file compiles is compiled once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.fixture(autouse=True, scope="module")
def bounded_memory() -> Iterator[None]:
    """Forget compiled programs when a worker grows large; most stay on the disk."""
    yield
    pages = Path("/proc/self/statm")
    if pages.exists() and int(pages.read_text().split()[1]) * 4096 > 2e9:
        jax.clear_caches()


class KeepAt(Journal):
    """Copies the state after ``place`` units of work; the next run begins there."""

    def __init__(self, place: int):
        self.place, self.kept, self.begun = place, None, []

    def resume(self, state):
        return self.kept or (state, 0)

    def begin(self, total: int, done: int) -> None:
        self.begun.append(done)

    def save_due(self) -> bool:
        return True

    def save(self, state, done: int) -> None:
        if done == self.place:
            self.kept = jax.tree.map(jnp.copy, state), done


class Alike(Journal):
    """Notes how the seeds begin, then gives all of them the first one's state."""

    def resume(self, state):
        self.first = jax.tree.map(jnp.copy, state)
        return jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), state), 0


@pytest.fixture(scope="session")
def keep_at() -> type[KeepAt]:
    return KeepAt


@pytest.fixture
def alike() -> Alike:
    return Alike()


@pytest.fixture(scope="session")
def world() -> Gridworld:
    """Five goals, two episodes of four steps."""
    return Gridworld(size=3, horizon=4, episodes=2)


@pytest.fixture(scope="session")
def simulator(world: Gridworld) -> JaxSimulator:
    return JaxSimulator(world)


@pytest.fixture(scope="session")
def logs(simulator: JaxSimulator) -> TaskLogs:
    """Six random rollouts of each goal, and the policies of untrained agents."""
    agent = DQN(hidden=(8,), batch_size=8)
    collect = Collect(num_tasks=5, pool_rollouts=6, iterations=0, agent=agent)
    return collect(simulator, simulator.family.all_tasks(), key=jr.key(1))


@pytest.fixture(scope="session")
def model(world: Gridworld) -> BeliefModel:
    """A small belief model with random weights."""
    fit = FitBelief(
        hidden_size=8,
        state_size=4,
        reward_size=4,
        latent_size=3,
        decoder=CellDecoder(hidden=(8,)),
    )
    return eqx.filter_jit(fit.init_model)(world.spec, key=jr.key(3))
