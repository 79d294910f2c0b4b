"""The belief model and its objective (paper, eq. 4 and appendix C)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int, PyTree

from borelax.belief.decoder import Decoder
from borelax.belief.encoder import Encoder, Gaussian
from borelax.learn import below
from borelax.types import Key, Metrics, Transition, axis_size


class BeliefModel(eqx.Module):
    """Encoder and decoder of one seed."""

    encoder: Encoder
    decoder: Decoder


def negative_elbo(
    model: BeliefModel,
    steps: Transition,
    apart: Transition | None = None,
    since: Int[Array, ""] | None = None,
    *,
    kl_weight: float,
    decoded_steps: int = 0,
    decoded_beliefs: int = 0,
    key: Key,
) -> tuple[Float[Array, ""], Metrics]:
    """-Σ_{t=0..T} ELBO_t of one rollout of T steps.

    ELBO_t decodes *all* T steps from one draw of m ~ q_t, and pays
    ``kl_weight``·KL(q_t ‖ q_{t-1}) with q_{-1} = N(0, I). With ``decoded_steps`` above
    zero, that many random steps stand for all of them, and with ``decoded_beliefs``
    that many random t for all t: the expectation is the same. Steps that pad an episode
    are neither decoded nor counted.

    Steps ``apart`` are decoded in place of the rollout's own, and stand for as many.
    Beliefs after fewer than ``since`` steps decode nothing, the others stand for them;
    the KL of every belief counts.
    """
    num_steps = _count(steps)
    key_steps, key_beliefs, key_latents = jr.split(key, 3)
    beliefs = model.encoder.filter(steps)
    may = _may_decode(steps, since)
    decoded = apart
    if decoded is None:
        decoded = _some(steps, decoded_steps, steps.valid, key=key_steps)
    decoding, where = _some((beliefs, may), decoded_beliefs, may, key=key_beliefs)
    latents = decoding.sample(key=key_latents)
    summary = model.decoder.summarise(decoded)
    score = jax.vmap(lambda z: model.decoder.log_likelihood(z, summary))(latents)
    per_step = score.mean(where=where) / _count(decoded)
    kl = jax.vmap(gaussian_kl)(beliefs, _previous(beliefs))
    loss = -per_step * num_steps * (num_steps + 1) + kl_weight * kl.sum()
    return loss, {"reward_nll": -per_step, "kl": kl.sum()}


def gaussian_kl(p: Gaussian, q: Gaussian) -> Float[Array, ""]:
    """KL(p ‖ q) of diagonal Gaussians: the second term of ELBO_t."""
    variance_ratio = jnp.exp(p.logvar - q.logvar)
    distance = jnp.square(p.mean - q.mean) * jnp.exp(-q.logvar)
    return 0.5 * (variance_ratio + distance - 1 + q.logvar - p.logvar).sum()


def _some(
    rows: PyTree, count: int, valid: Bool[Array, "rows"] | None, *, key: Key
) -> PyTree:
    """``count`` random (valid) rows; all of them if ``count`` is 0."""
    available = axis_size(rows)
    if not 0 < count < available:
        return rows
    if valid is None:
        chosen = below(available, jr.uniform(key, (count,)))
    else:
        place = below(valid.sum(), jr.uniform(key, (count,)))
        chosen = jnp.argsort(~valid, stable=True)[place]
    return jax.tree.map(lambda x: x[chosen], rows)


def _count(steps: Transition) -> int | Int[Array, ""]:
    """How many of the steps happened."""
    return steps.reward.shape[0] if steps.valid is None else steps.valid.sum()


def _may_decode(
    steps: Transition, since: Int[Array, ""] | None
) -> Bool[Array, "T_plus_1"] | None:
    """Beliefs that are news, the prior and those after a step that happened, if late.

    None: all of them.
    """
    late = None if since is None else jnp.arange(axis_size(steps) + 1) >= since
    if steps.valid is None:
        return late
    reached = jnp.concatenate([jnp.ones(1, bool), steps.valid])
    return reached if late is None else reached & late


def _previous(beliefs: Gaussian) -> Gaussian:
    """q_{t-1} for every t; before the prior stands N(0, I)."""
    return jax.tree.map(
        lambda x: jnp.concatenate([jnp.zeros_like(x[:1]), x[:-1]]), beliefs
    )
