"""State relabelling: put the belief beside every observation (paper, section 3.2)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from borelax.belief.view import BeliefFilter, LearnedBelief
from borelax.errors import ConfigError
from borelax.types import Episodes, Transition


def hyper_state(
    obs: Float[Array, "obs"], features: Float[Array, "features"]
) -> Float[Array, "hyper"]:
    """s+ = (s, b)."""
    return jnp.concatenate([obs, features])


def relabel_states(
    belief: BeliefFilter, rollout: Episodes, *, expected_rewards: bool = False
) -> Episodes:
    """One rollout [E, H] as a single long episode of hyper-states [1, E·H].

    At an episode's last step the next hyper-state is the next episode's first
    observation with the belief after the step, so that values flow through resets. At
    the rollout's last step it is the true successor. With ``expected_rewards``, each
    reward is R+(s+, a) = E_b[R], what the belief before the step expects.
    """
    steps: Transition = rollout.transitions()
    obs = jnp.concatenate([steps.obs, steps.next_obs[-1:]])
    hyper = jax.vmap(hyper_state)(obs, belief.along(steps))
    reward = _expected(belief, steps) if expected_rewards else steps.reward
    return Episodes(hyper[None], steps.action[None], reward[None])


def _expected(belief: BeliefFilter, steps: Transition) -> Float[Array, "T"]:
    if not isinstance(belief, LearnedBelief):
        raise ConfigError(
            "Expected rewards (R+) come from the decoder of a learned belief; leave "
            "out --exact-belief or --meta.expected-rewards."
        )
    return belief.rewards_along(steps)
