"""State relabelling: put the belief beside every observation (paper, section 3.2)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

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

    Episodes that may be cut off stay apart, [E, H]: after one that is, the true
    successor stands, so that no value flows to a place that cannot be reached.

    Padding moves to the rollout's end: an early end, too, leads to the next episode.
    Only where the last episode ended by itself, the rollout did.
    """
    steps: Transition = rollout.transitions()
    obs = jnp.concatenate([steps.obs, steps.next_obs[-1:]])
    hyper = jax.vmap(hyper_state)(obs, belief.along(steps))
    reward = _expected(belief, steps) if expected_rewards else steps.reward
    made = Episodes(hyper[None], steps.action[None], reward[None])
    if rollout.cut is not None:
        return _apart(made, rollout, rollout.cut)
    return made if steps.valid is None else _padding_last(made, steps)


def _apart(
    hyper: Episodes, rollout: Episodes, cut: Bool[Array, "episodes"]
) -> Episodes:
    """A rollout of hyper-states [1, E·H] as [E, H], without what follows a cut."""
    episodes, horizon = rollout.reward.shape
    times = jnp.add.outer(horizon * jnp.arange(episodes), jnp.arange(horizon + 1))
    obs = hyper.obs[0, times]
    features = obs[:, -1, rollout.obs.shape[-1] :]
    seen = rollout.obs[:, -1].astype(jnp.float32)
    successor = jax.vmap(hyper_state)(seen, features)
    last = jnp.where(cut[:, None], successor, obs[:, -1])
    return Episodes(
        obs.at[:, -1].set(last),
        hyper.action.reshape(rollout.action.shape),
        hyper.reward.reshape(rollout.reward.shape),
    )


def _padding_last(hyper: Episodes, steps: Transition) -> Episodes:
    """The same rollout [1, T] with the steps that happened first, in order."""
    assert steps.valid is not None and steps.ended is not None
    count, order = steps.valid.sum(), jnp.argsort(~steps.valid, stable=True)
    last = order[count - 1]
    # padding leaves the belief alone: the last one is the one after the last step
    features = hyper.obs[0, -1, steps.obs.shape[-1] :]
    successor = hyper_state(steps.next_obs[last], features)
    obs = jnp.concatenate([hyper.obs[0, :-1][order], successor[None]])

    def cut(rows: Array, padding: Array) -> Array:
        mask = jnp.arange(rows.shape[0]) < count
        mask = mask.reshape(-1, *(1,) * (rows.ndim - 1))
        return jnp.where(mask, rows, padding[None])[None]

    return Episodes(
        obs=cut(obs, successor),
        action=cut(hyper.action[0][order], jnp.zeros_like(hyper.action[0, 0])),
        reward=cut(hyper.reward[0][order], jnp.zeros(())),
        length=count[None],
        ended=steps.ended[last][None],
    )


def _expected(belief: BeliefFilter, steps: Transition) -> Float[Array, "T"]:
    if not isinstance(belief, LearnedBelief):
        raise ConfigError(
            "Expected rewards (R+) come from the decoder of a learned belief; leave "
            "out --exact-belief or --meta.expected-rewards."
        )
    return belief.rewards_along(steps)
