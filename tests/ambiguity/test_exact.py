"""Propositions 2 and 3 as laws over random finite MDPs, and the paper's example.

The left side of each law is about tables of state-actions, the right side about
trajectories: Definition 1, tried on explicit hypothesis sets.
"""

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from borelax.ambiguity.exact import (
    Ambiguity,
    ambiguities,
    evidence,
    explains,
    identifying,
    mixtures,
    proposition_2,
    proposition_3,
)
from borelax.ambiguity.finite import (
    FiniteMDP,
    markov,
    replay,
    trajectories,
    visited,
)
from borelax.errors import ConfigError
from tests.ambiguity.test_finite import occurrences
from tests.ambiguity.worlds import (
    GO_LEFT,
    GO_RIGHT,
    LEFT,
    OWN_EVIDENCE,
    RIGHT,
    SETTINGS,
    SHARED_EVIDENCE,
    Setting,
    random_behaviour,
    random_mdp,
    random_setting,
    two_rooms,
)

DOCS = Path(__file__).parents[2] / "docs" / "ambiguity.md"
few = settings(deadline=None, max_examples=40)


def hypothesis_set(setting: Setting) -> list:
    """The MDPs themselves, all their mixtures by pairs, and five random ones."""
    mixed = [m for pair in combinations(setting.mdps, 2) for m in mixtures(*pair)]
    like = setting.mdps[0]
    return [*setting.mdps, *mixed, *(random_mdp(setting.rng, like) for _ in range(5))]


def is_identifiable(setting: Setting, behaviours: list | None = None) -> bool:
    chosen = setting.behaviours if behaviours is None else behaviours
    return not ambiguities(setting.mdps, chosen, hypothesis_set(setting))


@few
@given(SHARED_EVIDENCE)
def test_proposition_2(setting):
    assert proposition_2(setting.mdps, setting.behaviours).all()
    assert is_identifiable(setting)


@few
@given(OWN_EVIDENCE)
def test_proposition_3(setting):
    assert proposition_3(setting.mdps, setting.behaviours).all()
    weights = np.arange(1.0, 3.0) / 3
    for drawn in (None, weights):
        everywhere = [replay(setting.behaviours, drawn)] * 2
        assert proposition_2(setting.mdps, everywhere).all()
        assert is_identifiable(setting, everywhere)


@few
@given(SETTINGS)
def test_without_structure_the_condition_of_proposition_2_is_also_necessary(setting):
    condition = proposition_2(setting.mdps, setting.behaviours)
    for i, j in combinations(range(len(setting.mdps)), 2):
        mdps = [setting.mdps[i], setting.mdps[j]]
        behaviours = [setting.behaviours[i], setting.behaviours[j]]
        found = ambiguities(mdps, behaviours, list(mixtures(*mdps)))
        assert bool(condition[i, j]) == (not found)
    assert condition.all() == is_identifiable(setting)


@few
@given(SETTINGS)
def test_one_agent_that_sees_a_difference_is_enough_for_replaying(setting):
    """The proof of Proposition 3 never uses that both of them do."""
    number = len(setting.mdps)
    everywhere = [replay(setting.behaviours)] * number
    own = proposition_3(setting.mdps, setting.behaviours)
    after = proposition_2(setting.mdps, everywhere)
    assert (after >= (own | own.T)).all()
    anyone = evidence(setting.mdps, everywhere).any(axis=(-2, -1))
    np.testing.assert_array_equal(anyone | np.eye(number, dtype=bool), after)


@few
@given(SETTINGS)
def test_replaying_only_adds_evidence(setting):
    everywhere = [replay(setting.behaviours)] * len(setting.mdps)
    before = evidence(setting.mdps, setting.behaviours)
    assert (evidence(setting.mdps, everywhere) >= before).all()
    before = proposition_2(setting.mdps, setting.behaviours)
    assert (proposition_2(setting.mdps, everywhere) >= before).all()


@few
@given(SETTINGS)
def test_the_lemma(setting):
    """Explained data are those that the same behaviour makes in the hypothesis.

    By trajectories, by the probabilities of (s, a, r, s') that Definition 1 compares,
    and by the tables where the data go; no other policy helps.
    """
    (mdp, *_), (behaviour, *_) = setting.mdps, setting.behaviours
    data, seen = trajectories(mdp, behaviour), visited(mdp, behaviour)
    mixed = setting.rng.permutation(np.array([*mixtures(*setting.mdps[:2])]))[:12]
    for other in [*setting.mdps[1:], *mixed]:
        explained = explains(other, data)
        assert explained == same(trajectories(other, behaviour), data)
        assert explained == (not (identifying(mdp, other) & seen).any())
        observed = occurrences(mdp, behaviour)
        assert explained == same(occurrences(other, behaviour), observed)
        if not explained:
            another = random_behaviour(setting.rng, other)
            assert not same(occurrences(other, another), observed)


def same(some: dict, others: dict) -> bool:
    keys = some.keys() | others.keys()
    return all(abs(some.get(key, 0) - others.get(key, 0)) < 1e-9 for key in keys)


def test_random_settings_are_on_both_sides_of_each_condition():
    drawn = [random_setting(seed, 2) for seed in range(300)]
    for condition in (proposition_2, proposition_3):
        holds = [condition(one.mdps, one.behaviours).all() for one in drawn]
        assert 0.15 < np.mean(holds) < 0.85
    repaired = [
        bool(proposition_2(one.mdps, [replay(one.behaviours)] * 2).all())
        and not proposition_2(one.mdps, one.behaviours).all()
        for one in drawn
    ]
    assert np.mean(repaired) > 0.05


def test_agents_at_their_own_goals_are_ambiguous_until_replayed():
    mdps, agents = [two_rooms(LEFT), two_rooms(RIGHT)], [GO_LEFT, GO_RIGHT]
    hypotheses = [*mdps, two_rooms(LEFT, RIGHT), two_rooms()]
    assert identifying(*mdps).all()
    assert proposition_2(mdps, agents).tolist() == [[True, False], [False, True]]
    assert proposition_3(mdps, agents).all()
    assert ambiguities(mdps, agents, hypotheses) == [Ambiguity(0, 1, hypothesis=2)]
    everywhere = [replay(agents)] * 2
    assert proposition_2(mdps, everywhere).all()
    assert ambiguities(mdps, everywhere, hypotheses) == []


def test_without_any_evidence_replaying_cannot_help():
    """Both rooms on the left: where nobody goes, it does not matter what is there."""
    mdps, agents = [two_rooms(), two_rooms(RIGHT)], [GO_LEFT, GO_LEFT]
    assert not proposition_3(mdps, agents)[0, 1]
    assert not proposition_2(mdps, [replay(agents)] * 2)[0, 1]
    assert ambiguities(mdps, [replay(agents)] * 2, mdps) == [
        Ambiguity(0, 1, hypothesis=0),
        Ambiguity(0, 1, hypothesis=1),
    ]


def test_each_condition_says_who_saw_what():
    """The right room is empty or pays: only the agent that goes there can tell."""
    mdps, agents = [two_rooms(), two_rooms(RIGHT)], [GO_LEFT, GO_RIGHT]
    assert np.argwhere(identifying(*mdps)).tolist() == [[0, 1], [2, 0], [2, 1]]
    assert np.argwhere(evidence(mdps, agents)).tolist() == [[1, 0, 0, 1], [1, 0, 2, 1]]
    assert proposition_3(mdps, agents).tolist() == [[True, False], [True, True]]
    assert ambiguities(mdps, agents, mdps) == [Ambiguity(0, 1, hypothesis=1)]
    assert proposition_2(mdps, [replay(agents)] * 2).all()


@pytest.mark.parametrize(("horizon", "explained"), [(1, True), (2, True), (3, False)])
def test_a_difference_counts_once_the_data_reach_it(horizon, explained):
    moves, start = np.eye(3)[[[1], [2], [2]]], np.eye(3)[0]
    mdps = [
        FiniteMDP(np.array([[0], [0], [pays]]), moves, start, horizon)
        for pays in (0, 1)
    ]
    agents = [markov(np.ones((3, 1)))] * 2
    assert explains(mdps[1], trajectories(mdps[0], agents[0])) == explained
    assert proposition_2(mdps, agents).all() != explained


def test_a_hypothesis_must_start_where_the_data_do():
    data = trajectories(two_rooms(LEFT), GO_LEFT)
    assert explains(two_rooms(LEFT), data)
    assert not explains(replace(two_rooms(LEFT), start=np.array([0.5, 0.5, 0])), data)


def test_a_structured_hypothesis_set_can_identify_what_proposition_2_cannot():
    mdps, agents = [two_rooms(LEFT), two_rooms(RIGHT)], [GO_LEFT, GO_RIGHT]
    assert not proposition_2(mdps, agents).all()
    assert ambiguities(mdps, agents, mdps) == []  # "exactly one room pays"


def test_rewards_of_impossible_steps_mean_nothing():
    one, other = two_rooms(LEFT), two_rooms(LEFT)
    rewards = np.where(other.transitions > 0, other.rewards, 7.0)
    other = replace(other, rewards=rewards)
    assert not identifying(one, other).any()
    assert explains(other, trajectories(one, GO_LEFT))


def test_what_cannot_be_compared_is_refused():
    one = two_rooms(LEFT)
    longer, elsewhere = replace(one, horizon=3), replace(one, start=np.eye(3)[LEFT])
    for other in (longer, elsewhere):
        with pytest.raises(ConfigError, match="same states, actions, start"):
            identifying(one, other)
    with pytest.raises(ConfigError, match="1 MDPs and 2 behaviours"):
        proposition_2([one], [GO_LEFT, GO_RIGHT])
    with pytest.raises(ConfigError, match="1 MDPs and 2 behaviours"):
        ambiguities([one], [GO_LEFT, GO_RIGHT], [one])
    with pytest.raises(ConfigError, match="At least one MDP"):
        proposition_3([], [])


def test_the_example_of_the_documentation_runs(capsys):
    text = DOCS.read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == printed
