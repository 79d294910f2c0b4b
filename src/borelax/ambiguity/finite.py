"""Finite MDPs as tables, the behaviours that collect data in them, and the exact data.

In: tables of a few states and actions. Out: which state-actions occur, and every
trajectory with its probability (paper, appendix to section 4).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from borelax.errors import require, require_positive

TOLERANCE = 1e-9
"""Probabilities closer than this are equal; rewards are equal only if identical."""
MOST_TRAJECTORIES = 1_000_000

Trajectory = tuple[int | float, ...]
"""(s_0, a_0, r_1, s_1, a_1, …, r_T, s_T)."""
Data = Mapping[Trajectory, float]
"""The distribution of data: every trajectory that occurs, with its probability."""


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """One task {R, P} with S states and A actions, where it starts, and for how long.

    The reward is a function of the step, r(s, a, s'); one of (s, a) alone is broadcast
    over s'. Where P(s'|s, a) = 0 it means nothing.
    """

    rewards: np.ndarray
    """[S, A, S] or [S, A]: r(s, a, s')."""
    transitions: np.ndarray
    """[S, A, S]: P(s'|s, a)."""
    start: np.ndarray
    """[S]: P_init(s)."""
    horizon: int
    """T: steps of every trajectory."""

    def __post_init__(self) -> None:
        """Take numbers of any kind, and refuse tables that are no MDP."""
        start = np.asarray(self.start, float)
        transitions = np.asarray(self.transitions, float)
        rewards = np.asarray(self.rewards, float)
        rewards = rewards[..., None] if rewards.ndim == 2 else rewards
        states = len(start)
        require(
            transitions.ndim == 3 and transitions.shape[::2] == (states, states),
            f"FiniteMDP.transitions must be [S, A, S] with S = {states} as in start, "
            f"not {list(transitions.shape)}.",
        )
        require(
            rewards.shape in (transitions.shape, (*transitions.shape[:2], 1)),
            "FiniteMDP.rewards must be [S, A, S] or [S, A] like transitions "
            f"{list(transitions.shape)}, not {list(np.shape(self.rewards))}.",
        )
        require(bool(np.isfinite(rewards).all()), "FiniteMDP.rewards must be finite.")
        require_positive(self, "horizon")
        _require_distributions("FiniteMDP.transitions", transitions)
        _require_distributions("FiniteMDP.start", start)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "transitions", transitions)
        rewards = np.broadcast_to(rewards, transitions.shape)
        object.__setattr__(self, "rewards", rewards)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """How data are collected: draw one of K Markov policies, follow it all the way.

    One policy is the usual agent. Several are a policy that is not Markov: its next
    action depends on the past, which tells the policy that was drawn.
    """

    policies: np.ndarray
    """[K, S, A]: π_k(a|s)."""
    weights: np.ndarray
    """[K]: how often each is drawn: always above zero."""

    def __post_init__(self) -> None:
        """Take numbers of any kind, and refuse what is no mixture of policies."""
        policies = np.asarray(self.policies, float)
        weights = np.asarray(self.weights, float)
        require(
            policies.ndim == 3 and weights.shape == policies.shape[:1],
            "Behaviour needs policies [K, S, A] and weights [K], "
            f"not {list(policies.shape)} and {list(weights.shape)}.",
        )
        require(
            bool((weights > 0).all()),
            "Behaviour.weights must be above zero; leave out policies never drawn.",
        )
        _require_distributions("Behaviour.policies", policies)
        _require_distributions("Behaviour.weights", weights)
        object.__setattr__(self, "policies", policies)
        object.__setattr__(self, "weights", weights)


def markov(policy: np.ndarray) -> Behaviour:
    """One Markov policy [S, A] as a behaviour."""
    return Behaviour(np.asarray(policy, float)[None], np.ones(1))


def replay(
    behaviours: Sequence[Behaviour], weights: np.ndarray | None = None
) -> Behaviour:
    """Policy replaying: π_r draws one of N behaviours and follows it all the way.

    ``weights`` [N] is P_x, every entry above zero; None draws them equally often.
    """
    require(len(behaviours) >= 1, "Policy replaying needs at least one behaviour.")
    number = len(behaviours)
    drawn = np.full(number, 1 / number) if weights is None else np.asarray(weights)
    require(
        drawn.shape == (number,),
        f"Policy replaying needs one weight for each of {number} behaviours, "
        f"not {list(drawn.shape)}.",
    )
    mixed = [p * one.weights for p, one in zip(drawn, behaviours, strict=True)]
    policies = np.concatenate([one.policies for one in behaviours])
    return Behaviour(policies, np.concatenate(mixed))


def visited(mdp: FiniteMDP, behaviour: Behaviour) -> Bool[np.ndarray, "S A"]:
    """Which state-actions occur in the data: P_{P, π}(s, a) > 0.

    Follows what is possible step by step; no probability is multiplied.
    """
    _require_fit(mdp, behaviour)
    possible = np.greater(mdp.transitions, 0)
    found = np.zeros(possible.shape[:2], bool)
    for policy in behaviour.policies:
        states = np.greater(mdp.start, 0)
        for _ in range(mdp.horizon):
            pairs = states[:, None] & (policy > 0)
            found |= pairs
            states = np.any(possible[pairs], axis=0)
    return found


def trajectories(mdp: FiniteMDP, behaviour: Behaviour) -> dict[Trajectory, float]:
    """Every trajectory that the behaviour can see in the MDP, with its probability."""
    _require_fit(mdp, behaviour)
    data: dict[Trajectory, float] = defaultdict(float)
    for weight, policy in zip(behaviour.weights, behaviour.policies, strict=True):
        histories: Data = {(s,): float(p) for s, p in enumerate(mdp.start) if p > 0}
        for _ in range(mdp.horizon):
            histories = _one_step_on(mdp, policy, histories)
        for history, probability in histories.items():
            data[history] += float(weight) * probability
    return dict(data)


def _one_step_on(mdp: FiniteMDP, policy: np.ndarray, histories: Data) -> Data:
    """All histories that are one step longer; different steps never meet again."""
    longer = {}
    for history, probability in histories.items():
        state = int(history[-1])
        steps = policy[state][:, None] * mdp.transitions[state]
        for action, after in np.argwhere(steps > 0).tolist():
            reward = float(mdp.rewards[state, action, after])
            step = (action, reward, after)
            longer[history + step] = probability * float(steps[action, after])
    require(
        len(longer) <= MOST_TRAJECTORIES,
        f"More than {MOST_TRAJECTORIES} trajectories are possible; "
        "enumerate them for a smaller MDP or a shorter horizon.",
    )
    return longer


def _require_fit(mdp: FiniteMDP, behaviour: Behaviour) -> None:
    pairs = mdp.transitions.shape[:2]
    require(
        behaviour.policies.shape[1:] == pairs,
        f"The behaviour's policies must be {list(pairs)} like the MDP, "
        f"not {list(behaviour.policies.shape[1:])}.",
    )


def _require_distributions(name: str, table: np.ndarray) -> None:
    sums_to_one = np.abs(table.sum(axis=-1) - 1) < TOLERANCE
    require(
        bool((table >= 0).all() and sums_to_one.all()),
        f"{name} must hold probabilities that sum to one over the last axis.",
    )
