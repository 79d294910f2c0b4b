"""How far a learned belief's predictions are from those of the exact posterior.

Both say what to expect at the decoder's probes: the decoder at the belief's mean, the
posterior by its tasks' own answers. In: models and rollouts. Out: mean differences.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from borelax.belief.elbo import BeliefModel
from borelax.belief.step_decoder import GaussianPerStep
from borelax.errors import ConfigError
from borelax.oracles.task_posterior import Posterior, memories_along
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.wind import Wind
from borelax.types import Episodes, Transition

MAX_TASKS = 50
"""Rollouts that are looked at, per seed."""


def prediction_errors(
    posterior: Posterior, models: BeliefModel, rollouts: Episodes
) -> Float[Array, "S"]:
    """Mean absolute difference at the probes, over tasks and steps, for each seed."""
    first = jax.tree.map(lambda x: x[:, :MAX_TASKS, 0], rollouts)
    return _errors(posterior, models, first)


def expected_targets(
    posterior: Posterior, decoder: GaussianPerStep, memory: object
) -> Float[Array, "features"]:
    """What the posterior expects where ``decoder.predict`` says what it does."""
    family, head = posterior.family, decoder.heads[-1]
    tasks, weights = posterior.distribution(memory)  # type: ignore[arg-type]

    def target(task, probe: Transition) -> Float[Array, "outputs"]:
        # a reward is asked of the logged step; a change, of the task's own
        answer = replace(probe, reward=family.reward(task, probe))
        if isinstance(family, EscapeRoom | Wind):
            after = family.step(task, probe.obs, probe.action, key=jr.key(0))
            answer = replace(answer, next_obs=family.observe(after))
        return head.target(decoder.scale, answer)

    of_task = lambda t: jax.vmap(lambda p: target(t, p))(decoder.probes)  # noqa: E731
    return jnp.tensordot(weights, jax.vmap(of_task)(tasks), axes=1).reshape(-1)


@eqx.filter_jit
def _errors(posterior, models, rollouts) -> Float[Array, "S"]:
    def of_rollout(model: BeliefModel, rollout: Episodes) -> Float[Array, ""]:
        decoder = model.decoder
        if not isinstance(decoder, GaussianPerStep):
            raise ConfigError(
                "Only beliefs with a StepDecoder can be compared with the posterior "
                f"of {posterior.family.name}."
            )
        steps = rollout.transitions()
        predicted = jax.vmap(decoder.predict)(model.encoder.filter(steps).mean)
        expect = lambda memory: expected_targets(posterior, decoder, memory)  # noqa: E731
        exact = jax.vmap(expect)(memories_along(posterior, steps))
        return jnp.abs(predicted - exact).mean()

    def of_seed(model: BeliefModel, rollouts: Episodes) -> Float[Array, ""]:
        return jax.lax.map(lambda one: of_rollout(model, one), rollouts).mean()

    return eqx.filter_vmap(of_seed)(models, rollouts)
