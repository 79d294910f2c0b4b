"""Gridworld's experiments as values."""

from dataclasses import replace

from borelax.agents.dqn import DQN
from borelax.belief.decoder import CellDecoder
from borelax.belief.fit import FitBelief
from borelax.belief.view import BeliefView
from borelax.collect.collect import Collect
from borelax.experiment import Experiment
from borelax.meta.fit import FitMeta

META_DQN = DQN(
    hidden=(128, 128),
    lr=1e-3,
    decay_updates=30_000,
    discount=0.9,
    batch_size=512,
    target_rate=0.02,
    average_rate=0.001,
)
"""Gridworld's meta-agent; what differs from the paper is in docs/deviations.md."""


def gridworld_paper() -> Experiment:
    """The paper's data; a larger belief, trained longer (docs/deviations.md)."""
    return Experiment(
        preset="paper",
        num_seeds=3,
        belief=FitBelief(
            updates=12_000,
            rollouts_per_update=256,
            lr=5e-3,
            final_lr_share=0.02,
            latent_size=24,
            hidden_size=128,
            decoder=CellDecoder(hidden=(64, 64)),
            updates_per_chunk=500,
        ),
        meta=FitMeta(
            parts=10,
            rollouts_per_part=4_000,
            updates=30_000,
            view=BeliefView(latent=True, decoded=True),
            agent=META_DQN,
        ),
    )


def gridworld_quick() -> Experiment:
    """A laptop's share of it: a tenth of the data, smaller networks and batches."""
    return Experiment(
        preset="quick",
        collect=Collect(
            iterations=40,
            updates_per_iteration=100,
            explore_iterations=20,
            agent=DQN(lr=1e-3, batch_size=128),
        ),
        belief=FitBelief(
            updates=10_000,
            rollouts_per_update=64,
            lr=5e-3,
            final_lr_share=0.02,
            latent_size=24,
            decoder=CellDecoder(hidden=(64, 64)),
        ),
        meta=FitMeta(
            parts=8,
            updates=30_000,
            view=BeliefView(latent=True, decoded=True),
            agent=replace(META_DQN, hidden=(64, 64), decay_updates=30_000),
        ),
    )


def gridworld_tiny() -> Experiment:
    """Seconds, for trying the machinery; learns nothing worth having."""
    return Experiment(
        preset="tiny",
        collect=Collect(
            pool_rollouts=2,
            iterations=3,
            rollouts_per_iteration=1,
            updates_per_iteration=5,
            explore_iterations=2,
            agent=DQN(batch_size=16),
        ),
        belief=FitBelief(
            updates=6,
            rollouts_per_update=4,
            hidden_size=8,
            state_size=8,
            decoder=CellDecoder(hidden=(8,)),
            updates_per_chunk=2,
        ),
        meta=FitMeta(
            parts=2,
            rollouts_per_part=4,
            updates_per_part=2,
            updates=6,
            agent=DQN(hidden=(8,), batch_size=16),
        ),
    )
