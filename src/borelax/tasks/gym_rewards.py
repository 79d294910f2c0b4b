"""Whether a user's reward function says what the environment paid."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from borelax.errors import ConfigError, require, said
from borelax.tasks.gym_tasks import GymTasks
from borelax.types import Transition

AGREEMENT = 1e-3
"""How far ``reward`` may be from what was paid: float32 against the environment's."""


@dataclass(frozen=True)
class Trial:
    """One episode of random actions, as it would be logged."""

    obs: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray


def check_reward(tasks: GymTasks, name: str, task: Any, trial: Trial) -> None:
    """The function takes logged steps, and ``reward`` says what was paid for them."""
    function = getattr(tasks, name)
    if function is None:
        return
    obs = jnp.asarray(trial.obs, jnp.float32)
    paid = jnp.asarray(trial.rewards, jnp.float32)
    steps = Transition(obs[:-1], jnp.asarray(trial.actions), paid, obs[1:])
    try:
        told = jax.jit(jax.vmap(lambda step: function(task, step)))(steps)
    except Exception as error:
        raise ConfigError(
            f"{tasks.name}: {name}(task, step) must be written in JAX: {said(error)}"
        ) from error
    require(
        told.shape == paid.shape and told.dtype == jnp.float32,
        f"{tasks.name}: {name}(task, step) must give a float32 scalar, not "
        f"{told.dtype}{list(told.shape[1:])}.",
    )
    require(
        bool(jnp.isfinite(told).all()), f"{tasks.name}: {name} gives NaN or infinity."
    )
    if name == "reward":
        last = np.arange(1, 1 + len(paid)) == len(paid)
        last &= len(paid) < tasks.spec.horizon
        refuse_disagreement(tasks, np.asarray(told), trial.rewards, last)


def refuse_disagreement(
    tasks: GymTasks, told: np.ndarray, paid: np.ndarray, last: np.ndarray
) -> None:
    """Refuse a reward function that says something else than was paid.

    Of steps that happened, in a row; ``last``: which ended their episode early. One
    step in a thousand may differ: a threshold that float32 meets and float64 does not.
    So may one last step in a thousand, which are looked at on their own: what the end
    pays is often what counts.
    """
    apart = ~(np.abs(told - paid) <= AGREEMENT * np.maximum(1.0, np.abs(paid)))
    for kind, among in (("steps", np.ones_like(last)), ("last steps", last)):
        wrong = np.flatnonzero(apart & among)
        broken = ~np.isfinite(told[wrong])
        if len(wrong) > among.sum() // 1_000 or broken.any():
            place = wrong[np.argmax(broken)]
            raise ConfigError(
                f"{tasks.name}: reward(task, step) disagrees with the environment on "
                f"{len(wrong)} of {among.sum()} {kind}: the first time it says "
                f"{told[place]:.6g} where {paid[place]:.6g} was paid."
            )
