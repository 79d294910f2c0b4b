"""Phase 4: train the meta-agent off-line on hyper-states, all seeds as one program.

In: a source of rollouts and one belief filter per seed. Out: agent states [S].
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int

from borelax.agents.dqn import DQN
from borelax.agents.networks import Standardise
from borelax.agents.sac import SAC
from borelax.belief.view import BeliefFilter, BeliefView
from borelax.errors import require_positive
from borelax.learn import (
    Journal,
    run_chunks,
    sample_steps,
    scan_updates,
    write_rollouts,
)
from borelax.relabel.source import RolloutSource
from borelax.relabel.states import relabel_states
from borelax.types import Episodes, Key, Metrics, Spec, axis_size


@dataclass(frozen=True)
class FitMeta:
    """Train an agent on rollouts whose states carry the belief.

    The data is a window of ``parts`` parts. After every ``updates_per_part`` updates
    the oldest part is drawn and encoded anew, so that memory is bounded while the agent
    sees ever new compositions of the logs.
    """

    parts: int = 10
    """Parts in the window."""
    rollouts_per_part: int = 2_000
    """Rollouts per part, and seed."""
    updates_per_part: int = 500
    """Updates between two renewals of a part."""
    updates: int = 20_000
    """Gradient steps."""
    standardise: bool = True
    """Scale hyper-states by the mean and deviation of the first window."""
    expected_rewards: bool = False
    """Learn from R+ = E_b[R], the reward the belief expects, not the one it got."""
    return_steps: int = 1
    """Steps whose rewards are summed before the critics are asked what follows (n-step
    returns). More of them carry rewards back sooner and leave critics less to make up,
    but count what the logs' agents did next as if the meta-agent had."""
    view: BeliefView = field(default_factory=BeliefView)
    """What the policy sees of the belief."""
    agent: DQN | SAC = field(default_factory=DQN)
    """The learning algorithm."""

    def __post_init__(self) -> None:
        """Refuse empty data."""
        require_positive(self, "parts", "rollouts_per_part", "updates_per_part")
        require_positive(self, "updates", "return_steps")

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
        window = Window(self, source, beliefs, key=key_data)
        state = _init(self, window.after(0), spec, key_init)

        def advance(state: Any, done: int, count: int):
            data, first = window.after(done), jnp.asarray(done)
            return _advance((data, self, count, first, key_updates), state)

        return run_chunks(
            advance,
            state,
            total=self.updates,
            per_chunk=self.updates_per_part,
            journal=journal or Journal(),
        )

    def like(self, beliefs: BeliefFilter, spec: Spec) -> Any:
        """The shapes of what a call returns."""

        def init(belief: BeliefFilter) -> Any:
            features = belief.features(belief.start())
            hyper_spec = replace(spec, obs_size=spec.obs_size + features.shape[0])
            return self.agent.init(hyper_spec, key=jr.key(0))

        return eqx.filter_eval_shape(eqx.filter_vmap(init), beliefs)


class Window:
    """The hyper-steps an agent learns from: [S, R, 1, T, …], a function of the time."""

    def __init__(
        self, fit: FitMeta, source: RolloutSource, beliefs: BeliefFilter, *, key: Key
    ):
        """Nothing is drawn before it is asked for."""
        self.fit, self.source, self.beliefs, self.key = fit, source, beliefs, key
        self.draws: list[int | None] = [None] * fit.parts
        self.steps: Episodes | None = None

    def after(self, updates: int) -> Episodes:
        """The window after so many updates; only parts that changed are drawn."""
        size = self.fit.rollouts_per_part
        wanted = draws_in_window(self.fit.parts, updates // self.fit.updates_per_part)
        for part, draw in enumerate(wanted):
            if self.draws[part] == draw:
                continue
            new = _encode(
                self.fit, self.source, self.beliefs, jnp.asarray(draw), self.key
            )
            if self.steps is None:
                self.steps = _empty(new, self.fit.parts)
            self.steps = write_rollouts((new, jnp.asarray(part * size)), self.steps)
            self.draws[part] = draw
        assert self.steps is not None  # there is at least one part
        return self.steps


def draws_in_window(parts: int, renewals: int) -> list[int]:
    """The number of the draw that each part holds after ``renewals`` renewals.

    Draws are numbered in order; draw d lives in part d mod ``parts``, and the window
    holds the latest ``parts`` of them.
    """
    latest = range(renewals, renewals + parts)
    return sorted(latest, key=lambda draw: draw % parts)


def with_returns(rollout: Episodes, steps: int, discount: float) -> Episodes:
    """Rewards summed over so many steps, discounted, none beyond an episode's end."""
    if steps == 1:
        return rollout
    paid, horizon = rollout.paid(), rollout.reward.shape[-1]
    beyond = jnp.pad(paid, [(0, 0)] * (paid.ndim - 1) + [(0, steps - 1)])
    ahead = [discount**n * beyond[..., n : n + horizon] for n in range(steps)]
    return replace(rollout, reward=sum(ahead))


def _empty(part: Episodes, parts: int) -> Episodes:
    return jax.tree.map(
        lambda x: jnp.zeros((x.shape[0], parts * x.shape[1], *x.shape[2:]), x.dtype),
        part,
    )


@eqx.filter_jit
def _encode(fit: FitMeta, source, beliefs, draw: Int[Array, ""], key: Key) -> Episodes:
    def of_rollout(belief, rollout: Episodes) -> Episodes:
        hyper = relabel_states(belief, rollout, expected_rewards=fit.expected_rewards)
        return with_returns(hyper, fit.return_steps, fit.agent.discount)

    def of_seed(belief, seed):
        key_draw = jr.fold_in(jr.fold_in(key, seed), draw)
        rollouts = source.draw(fit.rollouts_per_part, key=key_draw)
        return jax.vmap(lambda r: of_rollout(belief, r))(rollouts)

    return eqx.filter_vmap(of_seed)(beliefs, jnp.arange(axis_size(beliefs)))


@eqx.filter_jit
def _init(fit: FitMeta, data: Episodes, spec: Spec, key: Key) -> Any:
    hyper_spec = replace(spec, obs_size=data.obs.shape[-1])

    def of_seed(own: Episodes, seed: Int[Array, ""]) -> Any:
        state = fit.agent.init(hyper_spec, key=jr.fold_in(key, seed))
        if not fit.standardise:
            return state
        return eqx.tree_at(
            lambda s: s.standardise, state, Standardise.of_observations(own)
        )

    return eqx.filter_vmap(of_seed)(data, jnp.arange(axis_size(data)))


@eqx.filter_jit(donate="all-except-first")
def _advance(inputs, state: Any) -> tuple[Any, Metrics]:
    data, fit, count, first, key = inputs

    def of_seed(state: Any, own: Episodes, seed: Int[Array, ""]):
        rollouts, size = own.reward.shape[0], fit.agent.batch_size
        draw = partial(sample_steps, own, rollouts, size, ahead=fit.return_steps)
        return scan_updates(
            fit.agent.update,
            state,
            draw,
            first=first,
            num_updates=count,
            key=jr.fold_in(key, seed),
        )

    return eqx.filter_vmap(of_seed)(state, data, jnp.arange(axis_size(data)))
