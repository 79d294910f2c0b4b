"""Your own Gymnasium environment, from its class to an agent that explores.

    pip install 'borelax[gym]'
    python examples/your_own_gym_env.py            # a minute or two on two cores

A prize lies somewhere on a beam, left or right of the middle, and pays as long as one
stands near it. Nothing shows where it is; who steps off the beam ends the episode. A
good agent looks on one side, then on the other, and walks straight to the prize in the
second episode. ``docs/your-environment.md`` walks through this file.
"""

import sys
from dataclasses import replace

import gymnasium
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from gymnasium import spaces

import borelax

NEAR = 0.2
"""Distance to the prize within which a step pays."""
EDGE = 1.3
"""Distance from the middle at which the beam ends."""


class Beam(gymnasium.Env):
    """An ordinary environment; the task is an argument of its constructor."""

    observation_space = spaces.Box(-2.0, 2.0, (1,), np.float32)
    action_space = spaces.Box(-0.2, 0.2, (1,), np.float32)

    def __init__(self, prize: float):
        """``prize`` is where it lies. No observation may tell it."""
        self.prize = prize
        self.place = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        """Begin in the middle, or anywhere if logs ask for that."""
        super().reset(seed=seed)
        self.place = np.zeros(1, np.float32)
        if options is not None and options["start"] == "uniform":
            self.place = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.place, {}

    def step(self, action):
        """Move; one is paid near the prize, and falls at the beam's end."""
        self.place = self.place + action
        reward = float(abs(self.place[0] - self.prize) <= NEAR)
        fell = bool(abs(self.place[0]) > EDGE)
        return self.place, reward, fell, False, {}


def sample_prize(key):
    """Draw a task, in JAX: on either side, not too near the middle."""
    key_side, key_far = jr.split(key)
    return jr.rademacher(key_side, dtype=jnp.float32) * jr.uniform(key_far, minval=0.5)


def reward(prize, step):
    """What a logged step pays, in JAX: the same that the environment paid."""
    return (jnp.abs(step.next_obs[0] - prize) <= NEAR).astype(jnp.float32)


# From here on, borelax: under twenty lines.

TASKS = borelax.GymTasks(
    name="beam",
    make_env=Beam,
    sample_task=sample_prize,
    spec=borelax.Spec(obs_size=1, action=borelax.Box(1), horizon=20, episodes=2),
    reward=reward,
    starts=("fixed", "uniform"),
)
AGENT = borelax.SAC(hidden=(64, 64), lr=1e-3, decay_updates=10_000)
QUICK = borelax.preset("semicircle", "quick")  # of another point robot; made smaller
EXPERIMENT = replace(
    QUICK,
    family=TASKS,
    relabel=borelax.RelabelRewards(),
    collect=replace(QUICK.collect, num_tasks=16, iterations=20),
    belief=replace(QUICK.belief, updates=1_500, rollouts_per_update=32),
    meta=replace(QUICK.meta, rollouts_per_part=200, updates=10_000, agent=AGENT),
)


def main(out: str = "runs/beam", experiment: borelax.Experiment = EXPERIMENT) -> None:
    """Check the environment, run all phases, and say what came out."""
    borelax.check_gym_tasks(TASKS)
    results = borelax.run(experiment, out)
    first, second = results["return"]["per_episode"][0]
    print(f"Episode 1, the search: {first:.1f} of 20 steps pay.")
    print(f"Episode 2, the prize is known: {second:.1f} of 20 steps pay.")
    without = results["belief"]["frozen_return"]
    print(f"Without its memory: {without:.1f} of 40, both episodes together.")


if __name__ == "__main__":
    main(*sys.argv[1:])
