"""Phase 2: reward relabelling (paper, section 4), the repair of MDP ambiguity.

In a rollout of task i, the first or the last half of its episodes is replaced by
episodes that another task's agent made, with the rewards task i would have given.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int

from borelax.errors import ConfigError, require, require_positive, require_share
from borelax.learn import below
from borelax.logs import TaskLogs
from borelax.relabel.in_vain import draw_late, steps_in_vain
from borelax.relabel.pieces import (
    Places,
    cut_out,
    either,
    even_pieces,
    in_pieces,
)
from borelax.relabel.source import (
    AsLogged,
    Made,
    Provenance,
    ToDecode,
    compose,
    draw_places,
    take,
    take_steps,
)
from borelax.simulate.simulator import RewardFunction, Simulator
from borelax.types import Episodes, Key, Transition


@dataclass(frozen=True)
class KeepAsIs:
    """No relabelling: learn from the logs alone."""

    name: ClassVar[str] = "none"

    def __call__(
        self, logs: TaskLogs, simulator: Simulator, *, start: str, key: Key
    ) -> AsLogged:
        """The logs as a source."""
        return AsLogged(logs.episodes)


@dataclass(frozen=True)
class RelabelRewards:
    """Fill half of each rollout with other tasks' episodes under its own reward."""

    belief_pieces: float = 0.0
    """Share of the belief's rollouts that are made of short pieces instead. Where most
    logged episodes are those of agents that know their goal, such rollouts show what a
    long search looks like."""
    belief_own: float = 0.5
    """Each such rollout draws the share of its pieces that are own, not borrowed, from
    0 to this: from searches that find nothing to those that soon do."""
    decode_apart: bool = False
    """Let the belief decode random steps of all agents, with the rewards of the
    rollout's task, in place of the rollout's own. What a rollout visits says where its
    maker was going, and one that finds nothing holds little to find."""
    belief_in_vain: float = 0.0
    """Share of the belief's rollouts that find nothing for a random number of steps:
    then their task is drawn, from those that would have paid no more, and beliefs are
    decoded from there on. For rewards that most tasks share at most steps; where no two
    tasks pay alike, only the one that pays least is left."""
    meta_pieces: float = 0.0
    """Share of the meta-agent's rollouts that are made of pieces."""
    meta_own: float = 0.5
    """As ``belief_own``, for these."""
    pieces: int = 12
    """Pieces in such a rollout, or as many fewer as cut its episodes evenly."""
    from_start: float = 0.5
    """Share of pieces that begin with their episode, while agents are on their way; the
    others begin anywhere."""

    name: ClassVar[str] = "rewards"

    def __post_init__(self) -> None:
        """Refuse more than everything."""
        require_share(self, "belief_pieces", "belief_own", "meta_pieces", "meta_own")
        require_share(self, "from_start", "belief_in_vain")
        require_positive(self, "pieces")

    def __call__(
        self, logs: TaskLogs, simulator: Simulator, *, start: str, key: Key
    ) -> "Relabelled":
        """The relabelling source; needs a reward function and two tasks."""
        if simulator.reward is None:
            raise ConfigError(
                "Reward relabelling needs the tasks' reward function, and this "
                "simulator has none. Use --relabel none, or give a reward function."
            )
        require(
            logs.num_tasks >= 2,
            "Reward relabelling borrows from other tasks, and these logs hold only "
            "one. Collect more tasks or use --relabel none.",
        )
        self._check_pieces(logs.episodes)
        return Relabelled(
            logs.tasks,
            logs.episodes,
            simulator.reward,
            self,
            self.meta_pieces,
            self.meta_own,
        )

    def _check_pieces(self, episodes: Episodes) -> None:
        horizon = episodes.reward.shape[-1]
        whole = episodes.length is None or bool((episodes.length == horizon).all())
        require(
            whole or self.belief_pieces == self.meta_pieces == self.belief_in_vain == 0,
            "Episodes that end early cannot be cut into pieces, nor be searches in "
            "vain; leave out RelabelRewards.belief_pieces, meta_pieces and "
            "belief_in_vain.",
        )


class Relabelled(eqx.Module):
    """Draws composite rollouts; holds the tasks so that learners need not."""

    tasks: Any
    episodes: Episodes
    reward: RewardFunction = eqx.field(static=True)
    settings: RelabelRewards = eqx.field(static=True)
    pieces_share: float = eqx.field(static=True, default=0.0)
    """Share of rollouts that are made of pieces."""
    most_own: float = eqx.field(static=True, default=0.5)
    """The largest share of own pieces in one of them."""

    def for_belief(self) -> "Relabelled":
        """With the belief's shares."""
        settings = self.settings
        return replace(
            self, pieces_share=settings.belief_pieces, most_own=settings.belief_own
        )

    def draw(self, num_rollouts: int, *, key: Key) -> Episodes:
        """Random composite rollouts [num_rollouts, E, …]."""
        return self.draw_with_makers(num_rollouts, key=key).rollouts

    def draw_with_makers(self, num_rollouts: int, *, key: Key) -> Provenance:
        """Composite rollouts, their tasks, and which task's agent made each episode."""
        key_own, key_compose, key_pieces, key_which = jr.split(key, 4)
        task, rollout = draw_places(self.episodes, num_rollouts, key=key_own)
        if self.pieces_share == 1:
            return self._of_pieces(task, key=key_pieces)
        own = Made(take(self.episodes, task, rollout), task)

        def borrow(key: Key) -> Made:
            return self._borrow(task, key=key)

        made = compose(own, borrow, key=key_compose)
        if self.pieces_share == 0:
            return made
        short = self._of_pieces(task, key=key_pieces)
        whole = in_pieces(made, short.maker.shape[1])
        return either(whole, short, self.pieces_share, key=key_which)

    def draw_to_decode(
        self, num_rollouts: int, num_steps: int, *, key: Key
    ) -> ToDecode:
        """Their own steps, or steps of all agents alike that their tasks pay for."""
        if not (self.settings.decode_apart or self.settings.belief_in_vain):
            return ToDecode(self.draw(num_rollouts, key=key).transitions())
        key_rollouts, key_steps, key_vain = jr.split(key, 3)
        made = self.draw_with_makers(num_rollouts, key=key_rollouts)
        task, steps, since = made.task, made.rollouts.transitions(), None
        if self.settings.belief_in_vain > 0:
            task, steps, since = self._in_vain(task, steps, key=key_vain)
        if not self.settings.decode_apart:
            return ToDecode(steps, since=since)
        every = prod(self.episodes.reward.shape[-2:])
        count = min(num_steps or every, every)
        return ToDecode(steps, self._apart(task, count, key=key_steps), since)

    def _in_vain(
        self, task: Int[Array, "draws"], steps: Transition, *, key: Key
    ) -> tuple[Int[Array, "draws"], Transition, Int[Array, "draws"]]:
        """Rollouts [draws, T] of which some get their tasks late: when is third."""
        key_since, key_task = jr.split(key)
        draws, num_steps = steps.reward.shape
        share = self.settings.belief_in_vain
        since = steps_in_vain(draws, num_steps, share, key=key_since)
        paid = jax.vmap(jax.vmap(self.reward, (None, 0)), (0, None))
        rewards = jax.vmap(lambda own: paid(self.tasks, own))(steps)
        task = jnp.where(since > 0, draw_late(rewards, since, key=key_task), task)
        return task, replace(steps, reward=rewards[jnp.arange(draws), task]), since

    def _apart(
        self, task: Int[Array, "draws"], num_steps: int, *, key: Key
    ) -> Transition:
        """Random steps of all logs [draws, num_steps], with the rewards of ``task``."""
        key_maker, key_steps = jr.split(key)
        chance = jr.uniform(key_maker, (task.shape[0], num_steps))
        maker = below(self.episodes.reward.shape[0], chance)
        steps = take_steps(self.episodes, maker, key=key_steps)
        tasks = jax.tree.map(lambda x: x[task], self.tasks)
        paid = jax.vmap(jax.vmap(self.reward, (None, 0)))(tasks, steps)
        return replace(steps, reward=paid)

    def _borrow(self, task: Int[Array, "draws"], *, key: Key) -> Made:
        """Rollouts that other tasks' agents made, with the rewards of ``task``."""
        rollouts = self.episodes.reward.shape[1]
        chance = jr.uniform(key, (2, *task.shape))
        donor, rollout = self._other(task, chance[0]), below(rollouts, chance[1])
        borrowed = take(self.episodes, donor, rollout)
        return Made(self._paid_by(task, borrowed), donor)

    def _of_pieces(self, task: Int[Array, "draws"], *, key: Key) -> Provenance:
        """Pieces from anywhere in the logs, with the rewards of ``task``."""
        _, rollouts, episodes, horizon = self.episodes.reward.shape
        pieces = even_pieces(self.settings.pieces, episodes, horizon)
        shape, steps = (task.shape[0], pieces), episodes * horizon // pieces
        chance = jr.uniform(key, (7, *shape))
        share = self.most_own * chance[0, :, :1]
        own = jnp.broadcast_to(task[:, None], shape)
        places = Places(
            task=jnp.where(chance[2] < share, own, self._other(own, chance[1])),
            rollout=below(rollouts, chance[3]),
            episode=below(episodes, chance[4]),
            time=jnp.where(
                chance[5] < self.settings.from_start,
                0,
                below(horizon - steps + 1, chance[6]),
            ),
        )
        cut = cut_out(self.episodes, places, steps)
        return Provenance(self._paid_by(task, cut), task, places.task)

    def _other(
        self, task: Int[Array, "*draws"], chance: Float[Array, "*draws"]
    ) -> Int[Array, "*draws"]:
        """For each a random other task: 1 … N-1 ahead, so that it is never itself."""
        num_tasks = self.episodes.reward.shape[0]
        return (task + 1 + below(num_tasks - 1, chance)) % num_tasks

    def _paid_by(self, task: Int[Array, "draws"], rollouts: Episodes) -> Episodes:
        """Rollouts with the rewards of ``task``."""
        tasks = jax.tree.map(lambda x: x[task], self.tasks)
        return jax.vmap(lambda t, e: relabel(self.reward, t, e))(tasks, rollouts)


def relabel(reward: RewardFunction, task: Any, episodes: Episodes) -> Episodes:
    """The same episodes with the rewards of ``task``; nothing else changes.

    Padding is paid nothing.
    """
    steps = episodes.transitions()
    rewards = jax.vmap(lambda step: reward(task, step))(steps)
    judged = replace(episodes, reward=rewards.reshape(episodes.reward.shape))
    return replace(judged, reward=judged.paid())
