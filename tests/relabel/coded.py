"""Logs and a simulator in which every number says where it is from.

Observations are (whose policy, which rollout, which episode, time), and rewards tell
the task. Rollouts from ``R`` on were not logged: the simulator made them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from borelax.logs import TaskLogs
from borelax.relabel.rewards import relabel
from borelax.types import Discrete, Episodes, Spec, Transition

N, R, E, H = 4, 3, 4, 2


def coded_reward(task, step: Transition):
    """10·task + a number that tells all next observations apart."""
    return 10 * task + step.next_obs @ jnp.asarray([1.0, 0.1, 0.01, 0.001])


def relabel_all(reward, tasks, episodes: Episodes) -> Episodes:
    """Every rollout of task n [N, R] under tasks[n]."""
    of_task = jax.vmap(lambda t, e: relabel(reward, t, e), (None, 0))
    return jax.vmap(of_task)(tasks, episodes)


def episodes_of(makers, first: int, count: int, tasks) -> Episodes:
    """``count`` rollouts by ``makers[n]`` in ``tasks[n]``, numbered from ``first``."""
    places = np.stack(np.mgrid[: len(tasks), :count, :E, : H + 1], axis=-1)
    places[..., 0] = np.asarray(makers)[:, None, None, None]
    places[..., 1] += first
    action = jnp.asarray(places[..., :-1, :].sum(-1) % 5)
    blank = jnp.zeros(action.shape)
    coded = Episodes(jnp.asarray(places, jnp.float32), action, blank)
    return relabel_all(coded_reward, tasks, coded)


def coded_logs() -> TaskLogs:
    """R rollouts of N tasks; policy n is its own number."""
    tasks = jnp.arange(N, dtype=jnp.float32)
    return TaskLogs(tasks, episodes_of(range(N), 0, R, tasks), jnp.arange(N))


class Coded:
    """A simulator that writes down who visited, and notes how it was asked."""

    spec = Spec(obs_size=4, action=Discrete(5), horizon=H, episodes=E)
    training_reward = None

    def __init__(self, reward=coded_reward):
        self.reward, self.asked = reward, []

    def rollouts(self, policies, tasks, *, repeats, episodes, start, key) -> Episodes:
        assert episodes == E
        first = R + repeats * len(self.asked)
        self.asked.append((start, key))
        return episodes_of(policies, first, repeats, tasks)
