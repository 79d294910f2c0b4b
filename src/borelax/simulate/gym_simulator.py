"""Simulation of Gymnasium environments: Python steps them, JAX runs the policies.

All policies act in one compiled call per step and remember in another. Randomness is
folded in from (task, rollout, episode) as in ``JaxSimulator``: adding a task changes no
other, and a policy draws the same actions in a JAX family and in its Gymnasium twin.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.errors import require
from borelax.simulate.gym_envs import EnvBatch, EnvStore
from borelax.simulate.simulator import RewardFunction
from borelax.tasks.gym_rewards import refuse_disagreement
from borelax.tasks.gym_tasks import GymTasks
from borelax.types import Box, Episodes, Key, Spec, Transition, axis_size


class Record:
    """The episodes of K simulations, written down as they happen."""

    def __init__(self, spec: Spec, num_sims: int, episodes: int):
        """Everything is padding at first."""
        shape = (num_sims, episodes, spec.horizon)
        boxed = isinstance(spec.action, Box)
        actions = (*shape, spec.action.size) if boxed else shape
        self.obs = np.zeros((*shape[:2], spec.horizon + 1, spec.obs_size), np.float32)
        self.action = np.zeros(actions, np.float32 if boxed else np.int32)
        self.paid, self.reward = (
            np.zeros(shape, np.float32),
            np.zeros(shape, np.float32),
        )
        self.length = np.zeros(shape[:2], np.int32)
        self.spec = spec

    def told_and_paid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of steps that happened: both rewards, and which ended an episode early."""
        time, length = np.arange(1, self.spec.horizon + 1), self.length[..., None]
        happened, last = time <= length, (time == length) & (time < self.spec.horizon)
        return self.reward[happened], self.paid[happened], last[happened]

    def episodes(self, num_tasks: int) -> Episodes:
        """[N, repeats, E, …]."""

        def by_task(x: np.ndarray) -> jax.Array:
            return jnp.asarray(x.reshape(num_tasks, -1, *x.shape[1:]))

        obs = self.obs.astype(self.spec.obs_dtype)
        return Episodes(*map(by_task, (obs, self.action, self.reward, self.length)))


@dataclass(frozen=True)
class GymSimulator:
    """Runs a user's Gymnasium tasks, one environment per simulation.

    Environments are kept and used again wherever their task comes up again.
    """

    tasks: GymTasks
    store: EnvStore = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make no environment yet."""
        object.__setattr__(self, "store", EnvStore(self.tasks))

    @property
    def spec(self) -> Spec:
        """The tasks'."""
        return self.tasks.spec

    @property
    def reward(self) -> RewardFunction | None:
        """The tasks', if they have one."""
        return self.tasks.reward

    @property
    def training_reward(self) -> RewardFunction | None:
        """The tasks', if they have one."""
        return self.tasks.training_reward

    def rollouts(
        self,
        policies: Any,
        tasks: Any,
        *,
        repeats: int,
        episodes: int,
        start: str,
        key: Key,
    ) -> Episodes:
        """Run policy n in task n; episodes that end early are padded.

        Logs hold what ``reward`` says of a step, where there is one, else what the
        environment paid.
        """
        starts = ", ".join(self.tasks.starts)
        require(
            start in self.tasks.starts,
            f"{self.tasks.name} has no start called {start!r}; choose from {starts}.",
        )
        num_tasks = axis_size(tasks)
        envs = EnvBatch(self.tasks, self.store.take(tasks, repeats), repeats)
        record = Record(self.spec, num_tasks * repeats, episodes)
        acting = Acting(policies, tasks, repeats, self.reward)
        for e in range(episodes):
            seeds, keys = _episode_keys(
                key, jnp.asarray(e), (num_tasks, repeats, self.spec.horizon)
            )
            envs.reset(np.asarray(seeds).reshape(-1), start, e)
            self._episode(envs, acting, keys, record, e)
        if self.reward is not None:
            refuse_disagreement(self.tasks, *record.told_and_paid())
        return record.episodes(num_tasks)

    def _episode(
        self, envs: EnvBatch, acting: "Acting", keys: Any, record: Record, e: int
    ) -> None:
        record.obs[:, e, 0] = envs.obs
        for t in range(self.spec.horizon):
            going, before = envs.going.copy(), envs.obs.copy()
            if going.any():
                action = acting.act(before, keys, t)
                paid = envs.step(action)
                reward = acting.remember((before, action, paid, envs.obs), going)
                record.action[going, e, t] = action[going]
                record.paid[going, e, t] = paid[going]
                record.reward[going, e, t] = reward[going]
                record.length[:, e] += going
            record.obs[:, e, t + 1] = envs.obs  # where an episode ended, the last again


class Acting:
    """Policies [N] and what they remember of ``repeats`` rollouts each.

    In and out go arrays of all K simulations.
    """

    def __init__(
        self, policies: Any, tasks: Any, repeats: int, reward: RewardFunction | None
    ):
        """Every memory is empty."""
        self.policies, self.tasks, self.reward = policies, tasks, reward
        self.shape = (axis_size(tasks), repeats)
        self.memory = _start(policies, self.shape)

    def act(self, obs: np.ndarray, keys: Any, t: int) -> np.ndarray:
        """Everyone's action in step t."""
        time = jnp.asarray(t)
        action = _act(self.policies, self.memory, self._by_task(obs), keys, time)
        action = np.asarray(action)
        return action.reshape(-1, *action.shape[2:])

    def remember(self, seen: tuple[np.ndarray, ...], going: np.ndarray) -> np.ndarray:
        """Take in one step wherever the episode goes on; returns its rewards."""
        self.memory, reward = _remember(
            (self.reward, self.policies, self.tasks),
            self.memory,
            tuple(self._by_task(x) for x in seen),
            self._by_task(going),
        )
        return np.asarray(reward).reshape(-1)

    def _by_task(self, x: np.ndarray) -> jax.Array:
        # a copy: environments write their next observations into the same array
        return jnp.array(x.reshape(*self.shape, *x.shape[1:]))


@eqx.filter_jit
def _episode_keys(key: Key, episode, shape: tuple[int, int, int]) -> tuple[Any, Any]:
    """A seed for each environment [N, R], and a key per action [N, R, H]."""
    num_tasks, repeats, horizon = shape

    def of_one(n, r):
        own = jr.fold_in(jr.fold_in(jr.fold_in(key, n), r), episode)
        key_reset, key_steps = jr.split(own)
        seed = jr.randint(key_reset, (), 0, jnp.iinfo(jnp.int32).max)
        return seed, jax.vmap(lambda k: jr.split(k)[0])(jr.split(key_steps, horizon))

    of_task = jax.vmap(of_one, (None, 0))
    return jax.vmap(of_task, (0, None))(jnp.arange(num_tasks), jnp.arange(repeats))


@eqx.filter_jit
def _start(policies: Any, shape: tuple[int, int]) -> Any:
    num_tasks, repeats = shape

    def of_task(policy, n):
        return jax.vmap(lambda r: policy.start())(jnp.arange(repeats))

    return eqx.filter_vmap(of_task)(policies, jnp.arange(num_tasks))


@eqx.filter_jit
def _act(policies: Any, memory: Any, obs: Any, keys: Any, time: Any) -> Any:
    def of_task(policy, memory, obs, keys):
        act = lambda m, o, k: policy.act(m, o, key=k)  # noqa: E731
        return jax.vmap(act)(memory, obs, keys[:, time])

    return eqx.filter_vmap(of_task)(policies, memory, obs, keys)


@eqx.filter_jit
def _remember(who: tuple, memory: Any, seen: tuple, going: Any) -> tuple[Any, Any]:
    reward, policies, tasks = who

    def of_one(policy, task, memory, seen, going):
        step = Transition(*seen)
        if reward is not None:
            step = replace(step, reward=reward(task, step))
        after = policy.remember(memory, step)
        kept = jax.tree.map(lambda new, old: jnp.where(going, new, old), after, memory)
        return kept, step.reward

    def of_task(policy, task, *rest):
        return jax.vmap(lambda *own: of_one(policy, task, *own))(*rest)

    return eqx.filter_vmap(of_task)(policies, tasks, memory, seen, going)
