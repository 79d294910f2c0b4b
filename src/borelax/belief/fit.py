"""Phase 3: train the belief model, all seeds as one program.

In: a source of rollouts. Out: a ``BeliefModel`` with a leading axis of seeds.
"""

from dataclasses import dataclass, field
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int

from borelax.belief.decoder import CellDecoder
from borelax.belief.elbo import BeliefModel, negative_elbo
from borelax.belief.encoder import Encoder
from borelax.belief.step_decoder import StepDecoder
from borelax.errors import require, require_positive, require_share
from borelax.learn import Journal, run_chunks, scan_updates
from borelax.relabel.source import RolloutSource, ToDecode
from borelax.types import Key, Metrics, Spec, axis_size

_SCALE_ROLLOUTS = 256
"""Rollouts from which the scale of observations and rewards is read."""


class FittingBelief(eqx.Module):
    """One seed in training."""

    model: BeliefModel
    optimiser: optax.OptState


@dataclass(frozen=True)
class FitBelief:
    """Train the encoder and decoder by the sum of all ELBO_t."""

    updates: int = 30_000
    """Gradient steps."""
    rollouts_per_update: int = 128
    """Rollouts per gradient step."""
    lr: float = 3e-4
    """Adam step size, reached after ``warmup_share`` of the updates."""
    warmup_share: float = 0.02
    """Share of the updates in which the step size rises from zero."""
    final_lr_share: float = 1.0
    """Share of the step size left at the end of a cosine decay; 1: no decay."""
    max_grad_norm: float = 0.0
    """Gradients longer than this are shortened to it; 0: never."""
    kl_weight: float = 0.05
    """Weight of KL(q_t ‖ q_{t-1})."""
    latent_size: int = 5
    """Dimensions of m."""
    hidden_size: int = 64
    """Units of the GRU."""
    notes_size: int = 0
    """Units that keep the largest value they ever had, beside the GRU; 0: none. They
    need not learn to remember, only what to note."""
    state_size: int = 32
    """Units of the layer that reads s_{t+1}."""
    action_size: int = 0
    """Units of the layer that reads a_t; 0: the action enters as it is."""
    reward_size: int = 8
    """Units of the layer that reads r_{t+1}."""
    decoder: CellDecoder | StepDecoder = field(default_factory=CellDecoder)
    """How rewards are decoded from m."""
    decoded_steps: int = 0
    """Steps that are decoded for each rollout, drawn anew per update; 0: as many as it
    has."""
    decoded_beliefs: int = 0
    """Beliefs of each rollout that decode them, drawn anew per update; 0: all."""
    updates_per_chunk: int = 100
    """Updates between two looks at the metrics."""

    def __post_init__(self) -> None:
        """Refuse values that cannot learn."""
        require_positive(self, "updates", "rollouts_per_update", "lr", "latent_size")
        require_positive(self, "hidden_size", "state_size", "reward_size")
        require_positive(self, "updates_per_chunk")
        require_share(self, "warmup_share", "final_lr_share")
        require(self.warmup_share < 1, "FitBelief.warmup_share must be below 1.")
        require(
            0 <= self.kl_weight < float("inf"),
            f"FitBelief.kl_weight must not be negative, and is {self.kl_weight}.",
        )
        require(self.action_size >= 0, "FitBelief.action_size must not be negative.")
        for name in ("decoded_steps", "decoded_beliefs", "notes_size"):
            require(getattr(self, name) >= 0, f"FitBelief.{name} must be 0 or more.")
        require(
            0 <= self.max_grad_norm < float("inf"),
            "FitBelief.max_grad_norm must not be negative.",
        )

    def __call__(
        self,
        source: RolloutSource,
        spec: Spec,
        *,
        num_seeds: int,
        key: Key,
        journal: Journal | None = None,
    ) -> BeliefModel:
        """Train ``num_seeds`` models [S] on the same source."""
        key_init, key_updates = jr.split(key)
        state = _init(self, source, spec, num_seeds, key_init)

        def advance(state: FittingBelief, done: int, count: int):
            first = jnp.asarray(done)
            return _advance((source, self, count, first, key_updates), state)

        state = run_chunks(
            advance,
            state,
            total=self.updates,
            per_chunk=self.updates_per_chunk,
            journal=journal or Journal(),
        )
        return state.model

    def like(self, spec: Spec, num_seeds: int) -> BeliefModel:
        """The shapes of what a call returns."""
        init = eqx.filter_vmap(lambda key: self.init_model(spec, key=key))
        return eqx.filter_eval_shape(init, jr.split(jr.key(0), num_seeds))

    def init_model(self, spec: Spec, *, key: Key) -> BeliefModel:
        """Fresh weights of one seed."""
        key_encoder, key_decoder = jr.split(key)
        encoder = Encoder(
            spec,
            latent_size=self.latent_size,
            hidden_size=self.hidden_size,
            state_size=self.state_size,
            action_size=self.action_size,
            reward_size=self.reward_size,
            notes_size=self.notes_size,
            key=key_encoder,
        )
        decoder = self.decoder.build(spec, self.latent_size, key=key_decoder)
        return BeliefModel(encoder, decoder)

    def init_state(self, model: BeliefModel) -> FittingBelief:
        """The state in which training of a model begins."""
        weights = eqx.filter(model, eqx.is_inexact_array)
        return FittingBelief(model, self._optimiser().init(weights))

    def draw(self, source: RolloutSource, *, key: Key) -> ToDecode:
        """What one update learns from."""
        return source.draw_to_decode(
            self.rollouts_per_update, self.decoded_steps, key=key
        )

    def update(
        self, state: FittingBelief, batch: ToDecode, *, key: Key
    ) -> tuple[FittingBelief, Metrics]:
        """One gradient step of one seed."""
        keys = jr.split(key, self.rollouts_per_update)

        def loss(model: BeliefModel) -> tuple[Float[Array, ""], Metrics]:
            elbo = partial(
                negative_elbo,
                model,
                kl_weight=self.kl_weight,
                decoded_steps=self.decoded_steps,
                decoded_beliefs=self.decoded_beliefs,
            )
            losses, metrics = jax.vmap(
                lambda b, k: elbo(b.steps, b.apart, b.since, key=k)
            )(batch, keys)
            return losses.mean(), jax.tree.map(jnp.mean, metrics)

        (value, metrics), grads = eqx.filter_value_and_grad(loss, has_aux=True)(
            state.model
        )
        steps_taken, optimiser = self._optimiser().update(grads, state.optimiser)
        model = eqx.apply_updates(state.model, steps_taken)
        return FittingBelief(model, optimiser), {"loss": value, **metrics}

    def _optimiser(self) -> optax.GradientTransformation:
        schedule = optax.warmup_cosine_decay_schedule(
            init_value=0.0,
            peak_value=self.lr,
            warmup_steps=int(self.warmup_share * self.updates),
            decay_steps=self.updates,
            end_value=self.final_lr_share * self.lr,
        )
        adam = optax.adam(schedule)
        if self.max_grad_norm == 0:
            return adam
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), adam)


@eqx.filter_jit
def _init(
    fit: FitBelief, source: RolloutSource, spec: Spec, num_seeds: int, key: Key
) -> FittingBelief:
    key_scale, key_seeds = jr.split(key)
    steps = source.draw(_SCALE_ROLLOUTS, key=key_scale).transitions()

    def one(seed: Int[Array, ""]) -> FittingBelief:
        model = fit.init_model(spec, key=jr.fold_in(key_seeds, seed))
        decoder = model.decoder.fitted_to(jax.tree.map(_in_a_row, steps))
        return fit.init_state(BeliefModel(model.encoder.scaled_to(steps), decoder))

    return eqx.filter_vmap(one)(jnp.arange(num_seeds))


@eqx.filter_jit(donate="all-except-first")
def _advance(inputs, state: FittingBelief) -> tuple[FittingBelief, Metrics]:
    source, fit, count, first, key = inputs

    def of_seed(state: FittingBelief, seed: Int[Array, ""]):
        return scan_updates(
            fit.update,
            state,
            lambda key: fit.draw(source, key=key),
            first=first,
            num_updates=count,
            key=jr.fold_in(key, seed),
        )

    return eqx.filter_vmap(of_seed)(state, jnp.arange(axis_size(state)))


def _in_a_row(x: Array) -> Array:
    """[rollouts, T, …] as [steps, …], in an order that mixes the rollouts."""
    return jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:])
