"""MDP ambiguity, exactly: Definition 1, and Propositions 2 and 3 (paper, section 4).

In: N finite MDPs and the behaviours that collected data in them. Out: whether one MDP
could have made two of the data distributions, and what the propositions say of it.

The propositions are about tables (``evidence``); Definition 1 is about data. So
``explains`` reads nothing but trajectories, and the tests can hold one against the
other.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from jaxtyping import Bool

from borelax.ambiguity.finite import (
    TOLERANCE,
    Behaviour,
    Data,
    FiniteMDP,
    Trajectory,
    trajectories,
    visited,
)
from borelax.errors import require

Outcomes = dict[tuple[float, int], float]
"""P(r, s'| …): reward and next state, with their probability."""


@dataclass(frozen=True)
class Ambiguity:
    """One MDP that explains the data of two tasks."""

    first: int
    """i"""
    second: int
    """j > i"""
    hypothesis: int
    """Which of the hypothesis set explains both."""


def identifying(first: FiniteMDP, second: FiniteMDP) -> Bool[np.ndarray, "S A"]:
    """I_{i,j}: the state-actions whose reward or next state is distributed differently.

    Rewards differ only where the step can happen.
    """
    _require_one_setting([first, second])
    moves = np.abs(first.transitions - second.transitions) > TOLERANCE
    happens = np.maximum(first.transitions, second.transitions) > TOLERANCE
    pays = (first.rewards != second.rewards) & happens
    return (moves | pays).any(axis=-1)


def evidence(
    mdps: Sequence[FiniteMDP], behaviours: Sequence[Behaviour]
) -> Bool[np.ndarray, "N N S A"]:
    """Entry [i, j]: the pairs in I_{i,j} that occur in the data of MDP i."""
    _require_one_setting(mdps)
    _require_one_each(mdps, behaviours)
    seen = [visited(mdp, one) for mdp, one in zip(mdps, behaviours, strict=True)]
    tells = [[identifying(first, second) for second in mdps] for first in mdps]
    return np.asarray(seen)[:, None] & np.asarray(tells)


def proposition_2(
    mdps: Sequence[FiniteMDP], behaviours: Sequence[Behaviour]
) -> Bool[np.ndarray, "N N"]:
    """Entry [i, j]: whether a pair in I_{i,j} occurs in the data of both i and j.

    If all are true, the data are identifiable, whatever the hypothesis set. If one is
    false, i and j are ambiguous under every set that holds their ``mixtures``. The
    diagonal compares nothing and is true.
    """
    found = evidence(mdps, behaviours)
    in_both = (found & found.swapaxes(0, 1)).any(axis=(-2, -1))
    return in_both | np.eye(len(mdps), dtype=bool)


def proposition_3(
    mdps: Sequence[FiniteMDP], behaviours: Sequence[Behaviour]
) -> Bool[np.ndarray, "N N"]:
    """Entry [i, j]: whether a pair in I_{i,j} occurs in the data of i.

    If all are true, the data become identifiable by policy replaying: when each MDP's
    behaviour is replaced by ``replay(behaviours)``. The diagonal is true.
    """
    found = evidence(mdps, behaviours).any(axis=(-2, -1))
    return found | np.eye(len(mdps), dtype=bool)


def explains(hypothesis: FiniteMDP, data: Data) -> bool:
    """Whether some policy makes exactly these data in the hypothesised MDP.

    Lemma: one does if and only if, after every history and action that occur in the
    data, reward and next state are distributed as in the hypothesis, and so is the
    first state. For P(τ) = P(s_0) Π_t P(a_t|h_t) P(r_{t+1}, s_{t+1}|h_t, a_t), and a
    policy that may depend on the history h_t can match any P(a_t|h_t), nothing else.

    Definition 1 compares the probabilities of observing (s, a, r, s') instead. That
    gives the same answer: if they are equal, the two MDPs agree on all (s, a) that
    occur (paper, Lemma 1), so that the behaviour that made the data makes the same
    trajectories in the hypothesis.
    """
    return _agrees(hypothesis, _conditionals(data))


def ambiguities(
    mdps: Sequence[FiniteMDP],
    behaviours: Sequence[Behaviour],
    hypotheses: Sequence[FiniteMDP],
) -> list[Ambiguity]:
    """Definition 1: all ways in which one hypothesis explains the data of two MDPs.

    The data are identifiable, given the hypothesis set, if there is none.
    """
    _require_one_setting([*mdps, *hypotheses])
    _require_one_each(mdps, behaviours)
    collected = [
        _conditionals(trajectories(mdp, behaviour))
        for mdp, behaviour in zip(mdps, behaviours, strict=True)
    ]
    return [
        Ambiguity(first, second, number)
        for number, hypothesis in enumerate(hypotheses)
        for first, second in combinations(
            [i for i, data in enumerate(collected) if _agrees(hypothesis, data)], 2
        )
    ]


def mixtures(first: FiniteMDP, second: FiniteMDP) -> Iterator[FiniteMDP]:
    """All MDPs that are like the one or like the other at each (s, a): 2^(S·A).

    A hypothesis set without structure holds them, and if any MDP explains the data of
    both, one of them does: the one that is like ``first`` wherever its data go.
    """
    _require_one_setting([first, second])
    pairs = first.transitions.shape[:2]
    for chosen in product((True, False), repeat=pairs[0] * pairs[1]):
        like_first = np.reshape(chosen, pairs)[..., None]
        yield FiniteMDP(
            np.where(like_first, first.rewards, second.rewards),
            np.where(like_first, first.transitions, second.transitions),
            first.start,
            first.horizon,
        )


def _conditionals(data: Data) -> Mapping[Trajectory, Outcomes]:
    """P(r, s'|h, a) by (h, a) = (s_0, a_0, r_1, …, s_t, a_t), and P(s_0) by ()."""
    joint: dict[Trajectory, Outcomes] = defaultdict(lambda: defaultdict(float))
    for trajectory, probability in data.items():
        joint[()][0.0, int(trajectory[0])] += probability
        for end in range(2, len(trajectory), 3):
            reward, after = trajectory[end : end + 2]
            joint[trajectory[:end]][reward, int(after)] += probability
    return {
        past: {outcome: p / sum(outcomes.values()) for outcome, p in outcomes.items()}
        for past, outcomes in joint.items()
    }


def _agrees(hypothesis: FiniteMDP, conditionals: Mapping[Trajectory, Outcomes]) -> bool:
    return all(
        _equal(outcomes, _outcomes(hypothesis, past))
        for past, outcomes in conditionals.items()
    )


def _outcomes(mdp: FiniteMDP, past: Trajectory) -> Outcomes:
    """The MDP's own P(r, s'|s_t, a_t) after a history and an action, or P(s_0)."""
    if not past:
        return {(0.0, s): float(p) for s, p in enumerate(mdp.start)}
    state, action = int(past[-2]), int(past[-1])
    rewards = mdp.rewards[state, action].tolist()
    return {
        (rewards[after], after): float(p)
        for after, p in enumerate(mdp.transitions[state, action])
        if p > 0
    }


def _equal(some: Outcomes, others: Outcomes) -> bool:
    return all(
        abs(some.get(outcome, 0.0) - others.get(outcome, 0.0)) <= TOLERANCE
        for outcome in some.keys() | others.keys()
    )


def _require_one_setting(mdps: Sequence[FiniteMDP]) -> None:
    """The paper's setting: MDPs differ in rewards and transitions, in nothing else."""
    require(len(mdps) >= 1, "At least one MDP is needed.")
    one = mdps[0]
    for other in mdps[1:]:
        require(
            one.transitions.shape == other.transitions.shape
            and one.horizon == other.horizon
            and bool(np.allclose(one.start, other.start, rtol=0, atol=TOLERANCE)),
            "MDPs to compare must have the same states, actions, start and horizon.",
        )


def _require_one_each(
    mdps: Sequence[FiniteMDP], behaviours: Sequence[Behaviour]
) -> None:
    require(
        len(mdps) == len(behaviours),
        "Each MDP needs the behaviour that collected its data, "
        f"but there are {len(mdps)} MDPs and {len(behaviours)} behaviours.",
    )
