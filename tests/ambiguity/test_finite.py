"""Visited pairs and enumerated trajectories describe the same data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from borelax.ambiguity import finite
from borelax.ambiguity.finite import (
    Behaviour,
    FiniteMDP,
    markov,
    replay,
    trajectories,
    visited,
)
from borelax.errors import ConfigError
from tests.ambiguity.worlds import GO_LEFT, GO_RIGHT, LEFT, SETTINGS, two_rooms

few = settings(deadline=None, max_examples=40)


def steps(trajectory: tuple) -> list[tuple]:
    """(s, a, r, s') in order."""
    return [trajectory[t : t + 4] for t in range(0, len(trajectory) - 1, 3)]


def occurrences(mdp: FiniteMDP, behaviour: Behaviour) -> dict:
    """P(s, a, r, s') = P(s, a is observed) P(s'|s, a) P(r|s, a), as in the paper."""
    found = {}
    for trajectory, probability in trajectories(mdp, behaviour).items():
        for state, action in {step[:2] for step in steps(trajectory)}:
            for after in np.flatnonzero(mdp.transitions[state, action]).tolist():
                reward = float(mdp.rewards[state, action, after])
                key = (state, action, reward, after)
                share = probability * mdp.transitions[state, action, after]
                found[key] = found.get(key, 0.0) + share
    return found


@few
@given(SETTINGS)
def test_trajectories_are_a_distribution_and_hold_what_is_visited(setting):
    for mdp, behaviour in zip(setting.mdps, setting.behaviours, strict=True):
        data = trajectories(mdp, behaviour)
        assert sum(data.values()) == pytest.approx(1)
        assert min(data.values()) > 0
        seen = np.zeros(mdp.transitions.shape[:2], bool)
        for trajectory in data:
            assert len(steps(trajectory)) == mdp.horizon
            for state, action, reward, after in steps(trajectory):
                assert mdp.rewards[state, action, after] == reward
                seen[state, action] = True
        np.testing.assert_array_equal(seen, visited(mdp, behaviour))


@few
@given(SETTINGS)
def test_replaying_mixes_the_data_of_the_behaviours(setting):
    mdp, behaviours = setting.mdps[0], setting.behaviours
    weights = np.arange(1.0, len(behaviours) + 1)
    weights /= weights.sum()
    mixed = trajectories(mdp, replay(behaviours, weights))
    parts = [trajectories(mdp, one) for one in behaviours]
    assert mixed.keys() == set().union(*parts)
    for trajectory, probability in mixed.items():
        each = [part.get(trajectory, 0.0) for part in parts]
        assert probability == pytest.approx(weights @ each)
    seen = visited(mdp, replay(behaviours))
    np.testing.assert_array_equal(
        seen, np.any([visited(mdp, one) for one in behaviours], axis=0)
    )


def relabelled(data: dict, mdp: FiniteMDP) -> dict:
    """The same trajectories with the rewards that the MDP would have given."""
    found = {}
    for trajectory, probability in data.items():
        changed = list(trajectory)
        for t, (state, action, _, after) in enumerate(steps(trajectory)):
            changed[3 * t + 2] = float(mdp.rewards[state, action, after])
        found[tuple(changed)] = found.get(tuple(changed), 0.0) + probability
    return found


@few
@given(SETTINGS)
def test_reward_relabelling_is_policy_replaying_in_hindsight(setting):
    """Where tasks differ in rewards alone (paper, section 4)."""
    logged, donor, agent = setting.mdps[0], setting.mdps[1], setting.behaviours[0]
    other = replace(logged, rewards=donor.rewards)
    replayed = trajectories(other, agent)
    in_hindsight = relabelled(trajectories(logged, agent), other)
    assert in_hindsight == pytest.approx(replayed)


def test_reward_relabelling_is_no_replaying_where_transitions_differ():
    world = two_rooms(LEFT)
    mirrored = replace(world, transitions=world.transitions[:, ::-1])
    in_hindsight = relabelled(trajectories(world, GO_LEFT), mirrored)
    assert in_hindsight != trajectories(mirrored, GO_LEFT)


def test_a_policy_is_drawn_once_and_followed():
    """A replayed agent never turns round, as one that mixes at every step would."""
    stay, leave = np.eye(2)[[0, 0]], np.eye(2)[[1, 1]]
    moves = np.eye(2)[[[0, 1], [1, 0]]]
    world = FiniteMDP(np.zeros((2, 2)), moves, np.eye(2)[0], horizon=2)
    data = trajectories(world, replay([markov(stay), markov(leave)]))
    assert data == {(0, 0, 0.0, 0, 0, 0.0, 0): 0.5, (0, 1, 0.0, 1, 1, 0.0, 0): 0.5}
    assert len(trajectories(world, markov((stay + leave) / 2))) == 4


def test_probabilities_by_hand():
    transitions = np.array([[[0.75, 0.25]], [[0.0, 1.0]]])
    world = FiniteMDP(np.array([[5], [7]]), transitions, np.array([1, 0]), horizon=2)
    assert trajectories(world, markov(np.ones((2, 1)))) == {
        (0, 0, 5.0, 0, 0, 5.0, 0): 0.5625,
        (0, 0, 5.0, 0, 0, 5.0, 1): 0.1875,
        (0, 0, 5.0, 1, 0, 7.0, 1): 0.25,
    }


def test_the_last_state_is_seen_and_not_acted_in():
    world = two_rooms(LEFT)
    assert visited(world, GO_LEFT).tolist() == [
        [True, False],
        [True, False],
        [False] * 2,
    ]
    short = FiniteMDP(world.rewards, world.transitions, world.start, horizon=1)
    assert np.argwhere(visited(short, GO_LEFT)).tolist() == [[0, 0]]


def test_tables_that_are_no_mdp_are_refused():
    world = two_rooms(LEFT)
    good = (world.rewards, world.transitions, world.start)
    for arguments, sentence in [
        ((*good, 0), "horizon must be above zero"),
        ((good[0], good[1], good[2] / 2, 2), "start must hold probabilities"),
        ((good[0], -good[1], good[2], 2), "transitions must hold probabilities"),
        ((good[0] * np.nan, good[1], good[2], 2), "rewards must be finite"),
        ((good[0][:, :1], good[1], good[2], 2), r"rewards must be \[S, A, S\]"),
        ((good[0], good[1][:2], good[2], 2), r"transitions must be \[S, A, S\]"),
    ]:
        with pytest.raises(ConfigError, match=sentence):
            FiniteMDP(*arguments)


def test_behaviours_that_cannot_be_are_refused():
    policies = np.concatenate([GO_LEFT.policies, GO_RIGHT.policies])
    with pytest.raises(ConfigError, match="leave out policies never drawn"):
        Behaviour(policies, np.array([1.0, 0.0]))
    with pytest.raises(ConfigError, match=r"policies \[K, S, A\]"):
        Behaviour(policies, np.ones(1))
    with pytest.raises(ConfigError, match="sum to one"):
        Behaviour(policies, np.ones(2))
    with pytest.raises(ConfigError, match="one weight for each of 2"):
        replay([GO_LEFT, GO_RIGHT], np.ones(3) / 3)
    with pytest.raises(ConfigError, match="at least one behaviour"):
        replay([])
    with pytest.raises(ConfigError, match="like the MDP"):
        visited(two_rooms(LEFT), markov(np.ones((3, 1))))


def test_too_many_trajectories_are_refused(monkeypatch):
    monkeypatch.setattr(finite, "MOST_TRAJECTORIES", 1)
    with pytest.raises(ConfigError, match="shorter horizon"):
        trajectories(two_rooms(LEFT), markov(np.full((3, 2), 0.5)))
