"""State relabelling: put the belief beside every observation (paper, section 3.2)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from borelax.belief.view import BeliefFilter
from borelax.types import Episodes, Transition


def hyper_state(
    obs: Float[Array, "obs"], features: Float[Array, "features"]
) -> Float[Array, "hyper"]:
    """s+ = (s, b)."""
    return jnp.concatenate([obs, features])


def relabel_states(belief: BeliefFilter, rollout: Episodes) -> Episodes:
    """One rollout [E, H] as a single long episode of hyper-states [1, E·H].

    At an episode's last step the next hyper-state is the next episode's first
    observation with the belief after the step, so that values flow through resets. At
    the rollout's last step it is the true successor.
    """
    steps: Transition = rollout.transitions()
    obs = jnp.concatenate([steps.obs, steps.next_obs[-1:]])
    hyper = jax.vmap(hyper_state)(obs, belief.along(steps))
    return Episodes(hyper[None], steps.action[None], steps.reward[None])
