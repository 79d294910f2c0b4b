"""Laws of experiments: JSON and back is identity, and nonsense is refused in words."""

import json
import re
from dataclasses import fields, is_dataclass, replace

import pytest

from borelax.agents.dqn import DQN
from borelax.agents.sac import SAC
from borelax.belief.decoder import CellDecoder
from borelax.belief.fit import FitBelief
from borelax.belief.view import BeliefView
from borelax.collect.collect import Collect
from borelax.errors import ConfigError
from borelax.evaluate.evaluate import Evaluate
from borelax.experiment import PARTS, Experiment, differences
from borelax.meta.fit import FitMeta
from borelax.presets import PRESETS, RELABELLINGS, preset
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.tasks.gridworld import Gridworld

ALL = [(domain, name) for domain, presets in PRESETS.items() for name in presets]
NAN, INF = float("nan"), float("inf")


def changed(path, value, domain="gridworld"):
    """The JSON of a tiny experiment with one value replaced, deep inside."""
    content = preset(domain, "tiny").to_json()
    inner = content
    *outer, last = path.split(".")
    for name in outer:
        inner = inner[name]
    inner[last] = value
    return content


def leaves(part, path=""):
    """Path and value of every number, text and list in an experiment."""
    for f in fields(part):
        value, here = getattr(part, f.name), f"{path}{f.name}"
        if is_dataclass(value):
            yield from leaves(value, f"{here}.")
        else:
            yield here, value


LEAVES = {
    (domain, path): value
    for domain in ("gridworld", "escape-room")
    for path, value in leaves(preset(domain, "tiny"))
}


@pytest.mark.parametrize(("domain", "name"), ALL)
def test_json_and_back_is_identity(domain, name):
    experiment = preset(domain, name)
    text = json.dumps(experiment.to_json(), allow_nan=False)
    again = Experiment.from_json(json.loads(text))
    assert again == experiment and hash(again) == hash(experiment)
    assert json.dumps(again.to_json()) == text
    assert experiment.preset == name and experiment.family.name == domain


@pytest.mark.parametrize("relabel", RELABELLINGS.values(), ids=RELABELLINGS)
def test_each_relabelling_comes_back(relabel):
    experiment = replace(preset("gridworld", "tiny"), relabel=relabel)
    assert Experiment.from_json(experiment.to_json()).relabel == relabel


def test_every_part_can_be_named():
    found = set()

    def walk(part):
        found.add(type(part))
        for f in fields(part):
            if is_dataclass(getattr(part, f.name)):
                walk(getattr(part, f.name))

    for names in ALL:
        walk(preset(*names))
    assert found - {Experiment} == set(PARTS)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("belief.kind", "FitFaith", "Unknown part 'FitFaith'"),
        ("belief.kind", None, "Unknown part None"),
        ("belief.kind", ["FitBelief"], "Unknown part"),
        ("belief", {}, "Unknown part None"),
        ("belief.leaning_rate", 1.0, "FitBelief has no leaning_rate"),
        ("belief.sha256", "ab", "FitBelief has no sha256"),
        ("belief.lr", "fast", "FitBelief.lr must be a number, not 'fast'"),
        ("belief.lr", None, "FitBelief.lr must be a number, not None"),
        ("belief.lr", True, "FitBelief.lr must be a number, not True"),
        ("belief.lr", [0.1], "FitBelief.lr must be a number"),
        ("belief.updates", 2.5, "FitBelief.updates must be a whole number, not 2.5"),
        ("meta.view.latent", "yes", "BeliefView.latent must be true or false"),
        ("meta.view.latent", 1, "BeliefView.latent must be true or false"),
        ("collect.start", 3, "Collect.start must be text, not 3"),
        ("meta.agent.hidden", 16, "DQN.hidden must be a list, each a whole number"),
        ("meta.agent.hidden", "16", "DQN.hidden must be a list, each a whole number"),
        ("meta.agent.hidden", [16, 0.5], "DQN.hidden must be a list"),
        ("meta.agent", 16, "FitMeta.agent must be a DQN or a SAC, not 16"),
        ("collect.agent", Evaluate, "Collect.agent must be a DQN or a SAC, not Eval"),
        (
            "relabel",
            None,
            "must be a RelabelRewards or a ReplayPolicies or a KeepAsIs, not None",
        ),
        ("belief.decoder", [], "must be a CellDecoder or a StepDecoder, not ()"),
        (
            "family",
            Evaluate,
            "Experiment.family must be a Gridworld or a SemiCircle or a Wind or a "
            "WindHard or a EscapeRoom or a HalfCheetahVel or a AntSemiCircle or a "
            "GymTasks or a TaskFamily or a MujocoFamily, not Eval",
        ),
        ("seed", "0", "Experiment.seed must be a whole number"),
        ("preset", 7, "Experiment.preset must be text"),
    ],
)
def test_json_that_is_no_experiment_is_refused(path, value, sentence):
    if value is Evaluate:  # a part, but not one that belongs here
        value = preset("gridworld", "tiny").to_json()["evaluate"]
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Experiment.from_json(changed(path, value))


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, {"kind": "DQN"}])
def test_anything_else_is_refused(value):
    with pytest.raises(ConfigError):
        Experiment.from_json(value)


WRONG = {
    int: [None, "fast", [], {}, True, 0.5],
    float: [None, "fast", [], {}, True],
    bool: [None, "fast", [], {}, 0, 1.0],
    str: [None, [], {}, True, 3],
    tuple: [None, "fast", {}, True, 3, [None], [0.5], [True], [[]]],
}


@pytest.mark.parametrize(("domain", "path"), LEAVES)
def test_no_field_takes_a_value_of_another_type(domain, path):
    name = path.split(".")[-1]
    for wrong in WRONG[type(LEAVES[domain, path])]:
        with pytest.raises(ConfigError, match=f"{name} must be|Unknown part None"):
            Experiment.from_json(changed(path, wrong, domain))


def test_differences_name_each_value_that_changed():
    old = preset("gridworld", "tiny")
    new = replace(
        old,
        seed=4,
        relabel=KeepAsIs(),
        meta=replace(old.meta, agent=replace(old.meta.agent, hidden=(8, 8))),
    )
    assert list(differences(old.to_json(), old.to_json())) == []
    assert list(differences(old.to_json(), new.to_json())) == [
        "seed: 0 -> 4",
        "relabel.kind: RelabelRewards -> KeepAsIs",
        "relabel.belief_pieces: 0.0 -> None",
        "relabel.belief_own: 0.5 -> None",
        "relabel.decode_apart: False -> None",
        "relabel.belief_in_vain: 0.0 -> None",
        "relabel.meta_pieces: 0.0 -> None",
        "relabel.meta_own: 0.5 -> None",
        "relabel.pieces: 12 -> None",
        "relabel.from_start: 0.5 -> None",
        "meta.agent.hidden: [8] -> [8, 8]",
    ]
    assert list(differences({"a": 1}, {"b": {"c": 2}})) == [
        "a: 1 -> None",
        "b: None -> {'c': 2}",
    ]


BAD = {
    "no seeds": lambda: Experiment(num_seeds=0),
    "negative seed": lambda: Experiment(seed=-1),
    "huge seed": lambda: Experiment(seed=2**31),
    "unknown start": lambda: Experiment(collect=Collect(start="moon")),
    "no tasks": lambda: Experiment(collect=Collect(num_tasks=0)),
    "too many tasks": lambda: Experiment(collect=Collect(num_tasks=22)),
    "too many to test": lambda: Experiment(evaluate=Evaluate(num_tasks=22)),
    "none to borrow from": lambda: Experiment(collect=Collect(num_tasks=1)),
    "nothing to test": lambda: Experiment(evaluate=Evaluate(repeats=0)),
    "negative updates": lambda: Experiment(belief=FitBelief(updates=-1)),
    "nan lr": lambda: Experiment(belief=FitBelief(lr=NAN)),
    "infinite lr": lambda: Experiment(meta=FitMeta(agent=DQN(lr=INF))),
    "nan share": lambda: Experiment(collect=Collect(explore_first=NAN)),
    "no width": lambda: Experiment(belief=FitBelief(decoder=CellDecoder(hidden=(0,)))),
    "nan threshold": lambda: Experiment(
        belief=FitBelief(decoder=CellDecoder(threshold=NAN))
    ),
    "blind decoder": lambda: Experiment(
        belief=FitBelief(decoder=CellDecoder(threshold=1.0))
    ),
    "blind policy": lambda: Experiment(meta=FitMeta(view=BeliefView(False, False))),
    "tiny grid": lambda: Experiment(family=Gridworld(size=2)),
    "endless rewards": lambda: Experiment(family=Gridworld(goal_reward=INF)),
    "no parts": lambda: Experiment(meta=FitMeta(parts=0)),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_nonsense_is_refused_when_it_is_made(make):
    with pytest.raises(ConfigError) as refused:
        make()
    sentence = str(refused.value)
    assert sentence[0].isupper() and sentence.endswith(".") and "\n" not in sentence


CELLS, STEPS = preset("gridworld", "tiny"), preset("escape-room", "tiny")
RING = preset("semicircle", "tiny")
MISFITS = {
    "validation where all tasks are the test's": (
        lambda: replace(CELLS, evaluate=replace(CELLS.evaluate, validation=True)),
        "gridworld is tested on the tasks that it lists.*leave out Evaluate.validation",
    ),
    "rewards of other transitions": (
        lambda: replace(STEPS, relabel=RelabelRewards()),
        "escape-room differ in their transitions.*--relabel policies or --relabel none",
    ),
    "DQN collects in a box": (
        lambda: replace(RING, collect=replace(RING.collect, agent=DQN())),
        "Collect.agent is DQN, and semicircle has continuous actions; use SAC",
    ),
    "DQN is deployed in a box": (
        lambda: replace(RING, meta=replace(RING.meta, agent=DQN())),
        "FitMeta.agent is DQN, and semicircle has continuous actions; use SAC",
    ),
    "SAC on a grid": (
        lambda: replace(CELLS, collect=replace(CELLS.collect, agent=SAC())),
        "Collect.agent is SAC, and gridworld has discrete actions; use DQN",
    ),
    "cells off the grid": (
        lambda: replace(RING, belief=replace(RING.belief, decoder=CellDecoder())),
        "CellDecoder reads one-hot cells, and semicircle has none; use StepDecoder",
    ),
    "expected by no decoder": (
        lambda: replace(
            RING, exact_belief=True, meta=replace(RING.meta, expected_rewards=True)
        ),
        "leave out --exact-belief or --meta.expected-rewards",
    ),
    "no one to visit": (
        lambda: replace(STEPS, collect=replace(STEPS.collect, num_tasks=1)),
        "Collect.num_tasks is 1",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), MISFITS.values(), ids=MISFITS)
def test_parts_that_do_not_fit_together_are_refused(make, sentence):
    with pytest.raises(ConfigError, match=rf"{sentence}.*\.$"):
        make()


def test_policies_may_be_replayed_in_every_domain():
    for domain in PRESETS:
        replace(preset(domain, "tiny"), relabel=ReplayPolicies(turns=2))


def test_one_task_will_do_without_relabelling():
    Experiment(collect=Collect(num_tasks=1), relabel=KeepAsIs())


@pytest.mark.parametrize("names", [("moon", "tiny"), ("gridworld", "huge")])
def test_unknown_presets_are_refused_with_the_known_ones(names):
    domains = "gridworld, semicircle, wind, wind-hard, escape-room, "
    domains += "half-cheetah-vel, ant-semicircle"
    known = rf"choose from ({domains}|quick, paper, tiny)\."
    with pytest.raises(ConfigError, match=known):
        preset(*names)
