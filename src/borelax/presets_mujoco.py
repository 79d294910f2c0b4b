"""MuJoCo's experiments as values: Half-Cheetah-Vel and Ant-Semi-circle.

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
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.half_cheetah_vel import HalfCheetahVel

AGENT = SAC(hidden=(128, 128), discount=0.99, entropy_weight=0.2)

COLLECT = Collect(
    num_tasks=80,
    pool_rollouts=50,
    iterations=1_000,
    rollouts_per_iteration=2,
    updates_per_iteration=2_000,
    explore_first=1.0,
    explore_last=1.0,
    start="uniform",
    agent=AGENT,
)
"""Ant-Semi-circle's logs, as in the paper."""

BELIEF = FitBelief(
    updates=10_000,
    rollouts_per_update=64,
    lr=1e-3,
    final_lr_share=0.02,
    hidden_size=128,
    action_size=16,
    reward_size=16,
    decoder=StepDecoder(hidden=(64, 64)),
    decoded_steps=40,
    decoded_beliefs=40,
    updates_per_chunk=100,
)

META = FitMeta(
    parts=10,
    rollouts_per_part=500,
    updates_per_part=1_000,
    updates=100_000,
    view=BeliefView(latent=True, decoded=False),
    agent=replace(
        AGENT, hidden=(256, 256), decay_updates=100_000, batch_size=1_024, num_critics=5
    ),
)

GPU_BELIEF = replace(
    BELIEF,
    lr=3e-3,
    rollouts_per_update=256,
    decoder=StepDecoder(hidden=(64, 64), reader=(128, 128)),
    updates_per_chunk=250,
)
GPU_AGENT = replace(META.agent, lr=1e-3, batch_size=2_048)
"""What both domains' ``gpu`` have in common."""

PIECES = RelabelRewards(belief_pieces=1.0, meta_pieces=0.8)
"""Rollouts of short pieces, so that every state is met with every belief."""

APART = replace(PIECES, belief_own=0.0, decode_apart=True)
"""And none of the belief's is own, nor does it decode its own rollouts: where an agent
goes does not give its task away."""

HELD_OUT = Evaluate(num_tasks=100)
"""The paper tests on 20 tasks; more of them make the mean less noisy."""


def ant_semicircle_paper() -> Experiment:
    """The paper's data, rewards relabelled."""
    return Experiment(
        preset="paper",
        num_seeds=3,
        family=AntSemiCircle(),
        collect=COLLECT,
        relabel=RelabelRewards(),
        belief=BELIEF,
        meta=META,
        evaluate=HELD_OUT,
    )


def half_cheetah_vel_paper() -> Experiment:
    """The paper's data as it is: every reward tells the target speed."""
    return replace(
        ant_semicircle_paper(),
        family=HalfCheetahVel(),
        collect=replace(COLLECT, num_tasks=100, start="fixed"),
        relabel=KeepAsIs(),
    )


def ant_semicircle_gpu() -> Experiment:
    """A quarter of an hour of one large GPU and 16 cores: an eighth of the data.

    Simulation is what bounds collecting, so agents update far less often per step.
    """
    paper = ant_semicircle_paper()
    return replace(
        paper,
        preset="gpu",
        collect=replace(
            paper.collect,
            num_tasks=40,
            pool_rollouts=10,
            iterations=50,
            rollouts_per_iteration=10,
            updates_per_iteration=1_000,
            standardise=True,
            agent=replace(
                AGENT, lr=1e-3, num_critics=5, discount=0.97, entropy_weight=0.05
            ),
        ),
        relabel=APART,
        belief=replace(GPU_BELIEF, updates=12_000, rollouts_per_update=64),
        meta=replace(
            paper.meta,
            updates=400_000,
            return_steps=4,
            view=replace(paper.meta.view, latest_reward=True),
            agent=replace(
                GPU_AGENT,
                decay_updates=400_000,
                batch_size=1_024,
                num_critics=2,
                discount=0.98,
                entropy_weight=0.02,
                target_rate=0.02,
            ),
        ),
    )


def half_cheetah_vel_gpu() -> Experiment:
    """A quarter of an hour of one large GPU and 16 cores: half of each task's data."""
    paper = half_cheetah_vel_paper()
    return replace(
        paper,
        preset="gpu",
        collect=replace(
            paper.collect,
            pool_rollouts=10,
            iterations=100,
            rollouts_per_iteration=10,
            updates_per_iteration=500,
            standardise=True,
            agent=replace(AGENT, lr=1e-3, discount=0.97, entropy_weight=0.01),
        ),
        relabel=APART,
        belief=replace(GPU_BELIEF, updates=4_000),
        meta=replace(
            paper.meta,
            updates=150_000,
            agent=replace(
                GPU_AGENT, decay_updates=150_000, discount=0.97, entropy_weight=0.01
            ),
        ),
    )


def ant_semicircle_quick() -> Experiment:
    """A laptop's share of ``gpu``: 16 tasks, a little more of each, one seed.

    Returns of eight steps, and a quarter of the meta-agent's arithmetic per update.
    """
    gpu = ant_semicircle_gpu()
    return replace(
        gpu,
        preset="quick",
        num_seeds=1,
        collect=replace(
            gpu.collect,
            num_tasks=16,
            iterations=40,
            rollouts_per_iteration=15,
            updates_per_iteration=600,
        ),
        relabel=PIECES,
        belief=replace(
            gpu.belief,
            updates=3_000,
            rollouts_per_update=32,
            hidden_size=64,
            decoder=StepDecoder(hidden=(64, 64), reader=(64, 64)),
            decoded_steps=20,
            decoded_beliefs=20,
            updates_per_chunk=50,
        ),
        meta=replace(
            gpu.meta,
            updates=150_000,
            return_steps=8,
            agent=replace(gpu.meta.agent, decay_updates=150_000, batch_size=256),
        ),
        evaluate=Evaluate(num_tasks=20),
    )


def half_cheetah_vel_quick() -> Experiment:
    """A laptop's share of ``gpu``: 12 tasks, a fifth of the data each, one seed."""
    gpu = half_cheetah_vel_gpu()
    return replace(
        gpu,
        preset="quick",
        num_seeds=1,
        collect=replace(
            gpu.collect,
            num_tasks=12,
            pool_rollouts=5,
            iterations=50,
            rollouts_per_iteration=4,
            updates_per_iteration=300,
            agent=replace(gpu.collect.agent, hidden=(64, 64)),
        ),
        relabel=PIECES,
        belief=replace(
            BELIEF,
            updates=4_000,
            rollouts_per_update=32,
            hidden_size=64,
            decoded_steps=20,
            decoded_beliefs=20,
        ),
        meta=replace(
            gpu.meta,
            parts=5,
            rollouts_per_part=200,
            updates_per_part=500,
            updates=80_000,
            agent=replace(
                gpu.meta.agent,
                hidden=(128, 128),
                decay_updates=80_000,
                batch_size=256,
                num_critics=2,
            ),
        ),
        evaluate=Evaluate(num_tasks=20),
    )


def tiny(like: Experiment) -> Experiment:
    """Seconds, for trying the machinery; learns nothing worth having."""
    agent, family = SAC(hidden=(8,), batch_size=16), like.family
    assert isinstance(family, HalfCheetahVel | AntSemiCircle)
    return replace(
        like,
        preset="tiny",
        num_seeds=1,
        family=replace(family, horizon=10),
        collect=replace(
            like.collect,
            num_tasks=3,
            pool_rollouts=2,
            iterations=2,
            rollouts_per_iteration=1,
            updates_per_iteration=3,
            agent=agent,
        ),
        belief=replace(
            like.belief,
            updates=4,
            rollouts_per_update=4,
            latent_size=4,
            hidden_size=8,
            state_size=8,
            decoder=StepDecoder(hidden=(8,), probes=4),
            decoded_steps=5,
            decoded_beliefs=5,
            updates_per_chunk=2,
        ),
        meta=replace(
            like.meta,
            parts=2,
            rollouts_per_part=4,
            updates_per_part=2,
            updates=4,
            agent=agent,
        ),
        evaluate=Evaluate(num_tasks=3),
    )
