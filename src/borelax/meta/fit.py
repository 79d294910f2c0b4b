"""Phase 4: train the meta-agent off-line on hyper-states, all seeds as one program.

In: a source of rollouts and one belief filter per seed. Out: agent states [S].
"""

from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from borelax.agents.dqn import DQN
from borelax.agents.networks import Standardise
from borelax.belief.view import BeliefFilter, BeliefView
from borelax.errors import require_positive
from borelax.learn import Journal, run_chunks, sample_steps, scan_updates
from borelax.relabel.source import RolloutSource
from borelax.relabel.states import relabel_states
from borelax.types import Episodes, Key, Metrics, Spec, axis_size


@dataclass(frozen=True)
class FitMeta:
    """Train an agent on rollouts whose states carry the belief."""

    num_rollouts: int = 20_000
    """Rollouts drawn from the source and encoded once, per seed."""
    rollouts_per_encoding: int = 500
    """Rollouts encoded at a time; only bounds memory."""
    updates: int = 100_000
    """Gradient steps."""
    updates_per_chunk: int = 1_000
    """Updates between two looks at the metrics."""
    standardise: bool = True
    """Scale hyper-states by the mean and deviation of the data."""
    view: BeliefView = field(default_factory=BeliefView)
    """What the policy sees of the belief."""
    agent: DQN = field(default_factory=DQN)
    """The learning algorithm."""

    def __post_init__(self) -> None:
        """Refuse empty data."""
        require_positive(self, "num_rollouts", "rollouts_per_encoding", "updates")
        require_positive(self, "updates_per_chunk")

    def __call__(
        self,
        source: RolloutSource,
        beliefs: BeliefFilter,
        spec: Spec,
        *,
        key: Key,
        journal: Journal | None = None,
    ) -> Any:
        """Train one agent per belief [S]; returns their states [S]."""
        key_data, key_init, key_updates = jr.split(key, 3)
        data = self.hyper_steps(source, beliefs, key=key_data)
        state = _init(self, data, spec, key_init)

        def advance(state: Any, done: int, count: int):
            first = jnp.asarray(done)
            return _advance((data, self, count, first, key_updates), state)

        return run_chunks(
            advance,
            state,
            total=self.updates,
            per_chunk=self.updates_per_chunk,
            journal=journal or Journal(),
        )

    def like(self, beliefs: BeliefFilter, spec: Spec) -> Any:
        """The shapes of what a call returns."""

        def init(belief: BeliefFilter) -> Any:
            features = belief.features(belief.start())
            hyper_spec = replace(spec, obs_size=spec.obs_size + features.shape[0])
            return self.agent.init(hyper_spec, key=jr.key(0))

        return eqx.filter_eval_shape(eqx.filter_vmap(init), beliefs)

    def hyper_steps(
        self, source: RolloutSource, beliefs: BeliefFilter, *, key: Key
    ) -> Episodes:
        """Draw and encode the training data, part by part: [S, R, 1, T, …]."""
        size = min(self.rollouts_per_encoding, self.num_rollouts)
        num_parts = -(-self.num_rollouts // size)
        data = _encode(source, beliefs, size, jnp.asarray(0), key)
        if num_parts == 1:
            return data
        whole = jax.tree.map(
            lambda x: jnp.zeros((x.shape[0], num_parts * size, *x.shape[2:]), x.dtype),
            data,
        )
        for i in range(num_parts):
            part = _encode(source, beliefs, size, jnp.asarray(i), key)
            whole = _place((part, jnp.asarray(i * size)), whole)
        return whole


@eqx.filter_jit
def _encode(source, beliefs, size: int, part: Int[Array, ""], key: Key) -> Episodes:
    def of_seed(belief, seed):
        rollouts = source.draw(size, key=jr.fold_in(jr.fold_in(key, seed), part))
        return jax.vmap(lambda r: relabel_states(belief, r))(rollouts)

    return eqx.filter_vmap(of_seed)(beliefs, jnp.arange(axis_size(beliefs)))


@eqx.filter_jit(donate="all-except-first")
def _place(part: tuple[Episodes, Int[Array, ""]], whole: Episodes) -> Episodes:
    new, row = part
    return jax.tree.map(
        lambda old, x: jax.lax.dynamic_update_slice_in_dim(old, x, row, axis=1),
        whole,
        new,
    )


@eqx.filter_jit
def _init(fit: FitMeta, data: Episodes, spec: Spec, key: Key) -> Any:
    hyper_spec = replace(spec, obs_size=data.obs.shape[-1])

    def of_seed(own: Episodes, seed: Int[Array, ""]) -> Any:
        state = fit.agent.init(hyper_spec, key=jr.fold_in(key, seed))
        if not fit.standardise:
            return state
        rows = own.obs.reshape(-1, own.obs.shape[-1])
        return eqx.tree_at(lambda s: s.standardise, state, Standardise.of(rows))

    return eqx.filter_vmap(of_seed)(data, jnp.arange(axis_size(data)))


@eqx.filter_jit(donate="all-except-first")
def _advance(inputs, state: Any) -> tuple[Any, Metrics]:
    data, fit, count, first, key = inputs

    def of_seed(state: Any, own: Episodes, seed: Int[Array, ""]):
        rollouts = own.reward.shape[0]
        return scan_updates(
            fit.agent.update,
            state,
            lambda key: sample_steps(own, rollouts, fit.agent.batch_size, key=key),
            first=first,
            num_updates=count,
            key=jr.fold_in(key, seed),
        )

    return eqx.filter_vmap(of_seed)(state, data, jnp.arange(axis_size(data)))
