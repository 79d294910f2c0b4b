"""Gymnasium environments for the tests: Semi-circle's twin, and one that ends early."""

from dataclasses import replace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from borelax.belief.fit import FitBelief
from borelax.belief.step_decoder import StepDecoder
from borelax.experiment import Experiment
from borelax.presets import preset
from borelax.relabel.rewards import RelabelRewards
from borelax.tasks.gym_tasks import GymTasks
from borelax.tasks.semicircle import BOX_HIGH, BOX_LOW, SemiCircle
from borelax.types import Box, Discrete, Spec, Transition

FAMILY = SemiCircle(horizon=6, episodes=2, goal_radius=0.9)
"""Short, and with a goal that a few steps find."""


class SemiCircleEnv(gymnasium.Env):
    """Semi-circle, once more: the position moves by the action."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Box(-0.1, 0.1, (2,), np.float32)

    def __init__(self, goal, radius=FAMILY.goal_radius):
        self.goal, self.radius = goal, radius

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.zeros(2, np.float32)
        if options == {"start": "uniform"}:
            self.place = self.np_random.uniform(BOX_LOW, BOX_HIGH).astype(np.float32)
        return self.place, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place = self.place + action
        near = np.linalg.norm(self.place - self.goal) <= self.radius
        return self.place, float(near), False, False, {}


TWIN = GymTasks(
    name="semicircle-gym",
    make_env=SemiCircleEnv,
    sample_task=FAMILY.sample_task,
    spec=FAMILY.spec,
    reward=FAMILY.reward,
    starts=("fixed", "uniform"),
)


class Fall(gymnasium.Env):
    """Walk on a beam of length 1; off its ends one falls. The task pays one side."""

    observation_space = spaces.Box(-2, 2, (1,), np.float32)
    action_space = spaces.Discrete(3, start=-1)

    def __init__(self, side):
        self.side = float(side)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-0.3, 0.3))
        return np.float32([self.place]), {}

    def step(self, action):
        self.place += 0.4 * int(action) + 0.05 * self.np_random.normal()
        obs = np.float32([self.place])
        return obs, self.side * float(obs[0]), abs(self.place) > 1, False, {}


def fall_reward(task, step: Transition):
    return task * step.next_obs[0]


def sample_side(key):
    return jnp.where(jax.random.bernoulli(key), 1.0, -1.0) * jax.random.uniform(
        key, minval=0.5
    )


FALL = GymTasks(
    name="fall",
    make_env=Fall,
    sample_task=sample_side,
    spec=Spec(obs_size=1, action=Discrete(3), horizon=8, episodes=2),
    reward=fall_reward,
)


def tiny(tasks: GymTasks) -> Experiment:
    """A run of seconds."""
    boxed = isinstance(tasks.spec.action, Box)
    base = preset("semicircle" if boxed else "gridworld", "tiny")
    return replace(
        base,
        preset="custom",
        family=tasks,
        collect=replace(base.collect, num_tasks=3, start="fixed"),
        relabel=RelabelRewards(),
        belief=replace(
            FitBelief(updates=4, rollouts_per_update=4, hidden_size=8),
            decoder=StepDecoder(hidden=(8,), probes=4),
            updates_per_chunk=2,
        ),
        evaluate=replace(base.evaluate, num_tasks=3),
    )
