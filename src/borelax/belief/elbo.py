"""The belief model and its objective (paper, eq. 4 and appendix C)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from borelax.belief.decoder import Decoder
from borelax.belief.encoder import Encoder, Gaussian
from borelax.types import Key, Metrics, Transition


class BeliefModel(eqx.Module):
    """Encoder and decoder of one seed."""

    encoder: Encoder
    decoder: Decoder


def negative_elbo(
    model: BeliefModel,
    steps: Transition,
    *,
    kl_weight: float,
    decoded_steps: int = 0,
    key: Key,
) -> tuple[Float[Array, ""], Metrics]:
    """-Σ_{t=0..T} ELBO_t of one rollout of T steps.

    ELBO_t decodes *all* T steps from one draw of m ~ q_t, and pays
    ``kl_weight``·KL(q_t ‖ q_{t-1}) with q_{-1} = N(0, I). With ``decoded_steps`` above
    zero, that many random steps stand for all of them: the expectation is the same.
    """
    num_steps = steps.reward.shape[0]
    share = 1.0
    decoded = steps
    if 0 < decoded_steps < num_steps:
        key, key_steps = jr.split(key)
        chosen = jr.choice(key_steps, num_steps, (decoded_steps,), replace=False)
        decoded = jax.tree.map(lambda x: x[chosen], steps)
        share = num_steps / decoded_steps
    beliefs = model.encoder.filter(steps)
    keys = jr.split(key, beliefs.mean.shape[0])
    latents = jax.vmap(lambda belief, k: belief.sample(key=k))(beliefs, keys)
    summary = model.decoder.summarise(decoded)
    score = share * jax.vmap(lambda z: model.decoder.log_likelihood(z, summary))(
        latents
    )
    kl = jax.vmap(gaussian_kl)(beliefs, _previous(beliefs))
    loss = -score.sum() + kl_weight * kl.sum()
    return loss, {"reward_nll": -score.mean() / num_steps, "kl": kl.sum()}


def gaussian_kl(p: Gaussian, q: Gaussian) -> Float[Array, ""]:
    """KL(p ‖ q) of diagonal Gaussians: the second term of ELBO_t."""
    variance_ratio = jnp.exp(p.logvar - q.logvar)
    distance = jnp.square(p.mean - q.mean) * jnp.exp(-q.logvar)
    return 0.5 * (variance_ratio + distance - 1 + q.logvar - p.logvar).sum()


def _previous(beliefs: Gaussian) -> Gaussian:
    """q_{t-1} for every t; before the prior stands N(0, I)."""
    return jax.tree.map(
        lambda x: jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]]), beliefs
    )
