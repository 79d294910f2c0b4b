"""The point robots' experiments as values: Semi-circle, Wind, Escape-Room.

What differs from the paper's settings is listed in docs/deviations.md.
"""

from dataclasses import replace

from borelax.agents.sac import SAC
from borelax.belief.fit import FitBelief
from borelax.belief.step_decoder import StepDecoder
from borelax.belief.view import BeliefView
from borelax.collect.collect import Collect
from borelax.evaluate.evaluate import Evaluate
from borelax.experiment import Experiment
from borelax.meta.fit import FitMeta
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind, WindHard

COLLECT = Collect(
    num_tasks=80,
    pool_rollouts=50,
    iterations=300,
    rollouts_per_iteration=2,
    updates_per_iteration=500,
    explore_first=1.0,
    explore_last=1.0,
    start="uniform",
    agent=SAC(hidden=(32, 32)),
)
"""Semi-circle's logs, as in the paper."""

DECODER = StepDecoder(hidden=(64, 64), reader=(128, 128))

BELIEF = FitBelief(
    updates=8_000,
    rollouts_per_update=64,
    lr=2e-3,
    final_lr_share=0.02,
    hidden_size=128,
    action_size=16,
    reward_size=16,
    decoder=DECODER,
    decoded_steps=40,
    decoded_beliefs=40,
    updates_per_chunk=500,
)

META = FitMeta(
    parts=10,
    rollouts_per_part=1_000,
    updates_per_part=1_000,
    updates=60_000,
    view=BeliefView(latent=True, decoded=False),
    agent=SAC(
        hidden=(128, 128),
        lr=1e-3,
        decay_updates=60_000,
        batch_size=2_048,
        num_critics=5,
    ),
)

FAR_META = replace(META, agent=replace(META.agent, discount=0.97))
"""Looks further ahead: the last part of a search is many steps away."""

HELD_OUT = Evaluate(num_tasks=1_000)
"""The paper tests on 10 or 20 tasks; more of them make the mean less noisy."""


def semicircle_paper() -> Experiment:
    """The paper's data; a larger belief, from long searches."""
    return Experiment(
        preset="paper",
        num_seeds=4,
        family=SemiCircle(),
        collect=COLLECT,
        relabel=RelabelRewards(belief_pieces=1.0, meta_pieces=0.8),
        belief=replace(BELIEF, updates=12_000, rollouts_per_update=128),
        meta=FAR_META,
        evaluate=HELD_OUT,
    )


def wind_paper() -> Experiment:
    """The paper's data as it is: every step tells the tasks apart."""
    return Experiment(
        preset="paper",
        num_seeds=4,
        family=Wind(),
        collect=replace(
            COLLECT, num_tasks=40, start="fixed", agent=SAC(hidden=(64, 64))
        ),
        relabel=KeepAsIs(),
        belief=replace(
            BELIEF,
            updates=3_000,
            decoder=replace(DECODER, transitions=True),
            decoded_steps=0,
            decoded_beliefs=0,
        ),
        meta=replace(
            META, updates=30_000, agent=replace(META.agent, decay_updates=30_000)
        ),
        evaluate=HELD_OUT,
    )


def wind_hard_paper() -> Experiment:
    """Wind's settings in a world where adapting pays."""
    return replace(wind_paper(), family=WindHard())


def escape_room_paper() -> Experiment:
    """The paper's data, with policies replayed."""
    return Experiment(
        preset="paper",
        num_seeds=4,
        family=EscapeRoom(),
        collect=replace(
            COLLECT,
            num_tasks=60,
            pool_rollouts=100,
            iterations=50,
            agent=SAC(hidden=(128, 128)),
        ),
        relabel=ReplayPolicies(turns=4),
        belief=replace(
            BELIEF,
            updates=10_000,
            decoder=StepDecoder(hidden=(128, 128), reader=(256, 256), transitions=True),
        ),
        meta=FAR_META,
        evaluate=HELD_OUT,
    )


def quick(paper: Experiment) -> Experiment:
    """A laptop's share: a tenth of the data, smaller networks and batches."""
    updates = paper.meta.updates
    decoder = replace(paper.belief.decoder, hidden=(64, 64), reader=(128, 128))
    return replace(
        paper,
        preset="quick",
        num_seeds=1,
        collect=replace(
            paper.collect,
            pool_rollouts=20,
            iterations=40,
            updates_per_iteration=100,
            agent=SAC(hidden=(32, 32), lr=1e-3),
        ),
        belief=replace(
            paper.belief,
            updates=min(8_000, paper.belief.updates),
            rollouts_per_update=64,
            hidden_size=64,
            decoder=decoder,
            decoded_steps=20,
            decoded_beliefs=20,
            updates_per_chunk=100,
        ),
        meta=replace(
            paper.meta,
            parts=8,
            rollouts_per_part=400,
            updates_per_part=500,
            updates=updates,
            agent=SAC(
                hidden=(128, 128),
                lr=1e-3,
                decay_updates=updates,
                discount=paper.meta.agent.discount,
                batch_size=512,
            ),
        ),
    )


def semicircle_quick() -> Experiment:
    """A belief of many small batches and large steps; pieces begin anywhere.

    Its agents are still exploring in much of what they logged, so that no more of it
    need be of agents on their way.
    """
    plain = quick(semicircle_paper())
    return replace(
        plain,
        relabel=replace(
            plain.relabel, belief_own=0.0, decode_apart=True, from_start=0.0
        ),
        belief=replace(plain.belief, updates=10_000, lr=4e-3),
    )


def tiny(paper: Experiment) -> Experiment:
    """Seconds, for trying the machinery; learns nothing worth having."""
    return replace(
        paper,
        preset="tiny",
        num_seeds=1,
        collect=replace(
            paper.collect,
            num_tasks=3,
            pool_rollouts=2,
            iterations=2,
            rollouts_per_iteration=1,
            updates_per_iteration=3,
            agent=SAC(hidden=(8,), batch_size=16),
        ),
        belief=replace(
            paper.belief,
            updates=4,
            rollouts_per_update=4,
            latent_size=4,
            hidden_size=8,
            state_size=8,
            decoder=replace(paper.belief.decoder, hidden=(8,), reader=(8,), probes=4),
            decoded_steps=5,
            decoded_beliefs=5,
            updates_per_chunk=2,
        ),
        meta=replace(
            paper.meta,
            parts=2,
            rollouts_per_part=4,
            updates_per_part=2,
            updates=4,
            agent=SAC(hidden=(8,), batch_size=16),
        ),
        evaluate=Evaluate(num_tasks=3),
    )
