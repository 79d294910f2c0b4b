"""Finite MDPs and behaviours for tests: random sparse ones, and two rooms.

Random probabilities are ratios of small numbers, many of them zero, so that different
ones differ clearly and much is never visited.
"""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from borelax.ambiguity.finite import Behaviour, FiniteMDP, markov, visited

HALL, LEFT, RIGHT = range(3)
GO_LEFT, GO_RIGHT = markov(np.eye(2)[[0, 0, 0]]), markov(np.eye(2)[[1, 1, 1]])


@dataclass(frozen=True)
class Setting:
    """MDPs that share states, actions, start and horizon, and one behaviour each."""

    mdps: list[FiniteMDP]
    behaviours: list[Behaviour]
    rng: np.random.Generator
    """For what a test wants to add."""


def two_rooms(*paying: int) -> FiniteMDP:
    """From the hall left or right into a room, to stay there; some rooms pay 1."""
    transitions = np.eye(3)[[[LEFT, RIGHT], [LEFT, LEFT], [RIGHT, RIGHT]]]
    rewards = np.broadcast_to(np.isin(np.arange(3), paying), (3, 2, 3))
    return FiniteMDP(rewards, transitions, np.eye(3)[HALL], horizon=2)


def distributions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random sparse distributions over the last axis."""
    weights = rng.choice([0, 0, 1, 2], shape)
    sure = rng.integers(0, shape[-1], shape[:-1])
    weights = weights + np.eye(shape[-1], dtype=int)[sure]
    return weights / weights.sum(axis=-1, keepdims=True)


def random_mdp(rng: np.random.Generator, like: FiniteMDP) -> FiniteMDP:
    """New rewards and transitions; the same sizes, start and horizon."""
    return replace(
        like,
        transitions=distributions(rng, *like.transitions.shape),
        rewards=rng.integers(0, 2, like.rewards.shape),
    )


def changed_at(
    rng: np.random.Generator, mdp: FiniteMDP, pairs: np.ndarray
) -> FiniteMDP:
    """The MDP with other rewards or transitions at each of ``pairs`` [S, A]."""
    rewards, transitions = mdp.rewards.copy(), mdp.transitions.copy()
    for state, action in np.argwhere(pairs):
        shifted = np.roll(transitions[state, action], 1)
        if rng.random() < 0.5 and not np.allclose(shifted, transitions[state, action]):
            transitions[state, action] = shifted
        else:
            rewards[state, action] += 1.0
    return replace(mdp, rewards=rewards, transitions=transitions)


def one_of(rng: np.random.Generator, pairs: np.ndarray) -> np.ndarray:
    """A mask [S, A] of one true entry of ``pairs``."""
    chosen = np.zeros(pairs.shape, bool)
    chosen[tuple(rng.choice(np.argwhere(pairs)))] = True
    return chosen


def random_setting(seed: int, number: int) -> Setting:
    """Variations of one random MDP, which differ in some state-actions only."""
    rng = np.random.default_rng(seed)
    states, actions, horizon = rng.integers([2, 1, 1], [4, 3, 4]).tolist()
    sizes = (states, actions, states)
    start, zeros = distributions(rng, states), np.zeros(sizes)
    even = np.full(sizes, 1 / states)
    base = random_mdp(rng, FiniteMDP(zeros, even, start, horizon))
    mdps = [
        changed_at(rng, base, rng.random((states, actions)) < 0.3)
        for _ in range(number)
    ]
    return Setting(mdps, [random_behaviour(rng, base) for _ in mdps], rng)


def random_behaviour(rng: np.random.Generator, mdp: FiniteMDP) -> Behaviour:
    """One or two sparse Markov policies, drawn with unequal weights."""
    number = int(rng.integers(1, 3))
    policies = distributions(rng, number, *mdp.transitions.shape[:2])
    weights = np.arange(1.0, number + 1)
    return Behaviour(policies, weights / weights.sum())


def setting_with_shared_evidence(seed: int) -> Setting:
    """Two MDPs that differ where both agents go: Proposition 2's condition holds.

    A change at (s, a) alters nothing before the first visit there.
    """
    setting = random_setting(seed, 1)
    rng, mdp, first = setting.rng, setting.mdps[0], setting.behaviours[0]
    second = random_behaviour(rng, mdp)
    shared = visited(mdp, first) & visited(mdp, second)
    if not shared.any():
        second = first
        shared = visited(mdp, first)
    other = changed_at(rng, mdp, one_of(rng, shared))
    return Setting([mdp, other], [first, second], rng)


def setting_with_own_evidence(seed: int) -> Setting:
    """Two MDPs that differ once where each agent goes: Proposition 3's precondition.

    Before the second agent meets the change made for it, it may meet the first one's;
    it has then seen a difference all the same.
    """
    setting = random_setting(seed, 1)
    rng, mdp, first = setting.rng, setting.mdps[0], setting.behaviours[0]
    second = random_behaviour(rng, mdp)
    differ = one_of(rng, visited(mdp, first)) | one_of(rng, visited(mdp, second))
    return Setting([mdp, changed_at(rng, mdp, differ)], [first, second], rng)


SEEDS = st.integers(0, 2**32 - 1)
SETTINGS = st.builds(random_setting, SEEDS, st.integers(2, 3))
SHARED_EVIDENCE = st.builds(setting_with_shared_evidence, SEEDS)
OWN_EVIDENCE = st.builds(setting_with_own_evidence, SEEDS)
