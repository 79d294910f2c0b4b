"""Whole runs on families of a user's own: Gymnasium environments, and JAX."""

import io
import json
from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from rich.console import Console

import borelax
from borelax import store
from borelax.errors import ConfigError
from borelax.experiment import Experiment
from borelax.logs import read_episodes
from borelax.pipeline import Pipeline
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.relabel.policies import ReplayPolicies
from borelax.relabel.rewards import KeepAsIs
from borelax.report.table import print_results
from borelax.report.write import write_report
from borelax.run_folder import read_experiment
from borelax.simulate.policy import AgentPolicy
from borelax.types import Box, Spec, Transition
from tests.simulate.gym_worlds import FALL, TWIN, tiny
from tests.tiny_run import compiled_quickly, shas


@dataclass(frozen=True)
class Drift:
    """A user's own JAX family, without a name."""

    strength: float = 0.1
    gains: tuple[float, ...] = (1.0, 2.0)

    starts: ClassVar[tuple[str, ...]] = ("fixed",)
    differs_in: ClassVar[str] = "transitions"

    @property
    def spec(self) -> Spec:
        return Spec(obs_size=1, action=Box(1), horizon=5, episodes=2)

    def sample_task(self, *, key):
        return self.strength * jr.normal(key, (1,))

    def reset(self, task, start, *, key):
        return jnp.zeros(1)

    def step(self, task, state, action, *, key):
        return state + 0.1 * action + task

    def observe(self, state):
        return state

    def reward(self, task, step: Transition):
        return -jnp.abs(step.next_obs - 0.3).sum()


@compiled_quickly()
def run(experiment: Experiment, out) -> dict:
    return borelax.run(experiment, out, display=Quiet())


@compiled_quickly()
def check_report(experiment: Experiment, folder) -> None:
    """The page has all but the player, given the family's code; without, files say."""
    text = write_report(folder, experiment=experiment).read_text("utf-8")
    assert "not at a place that could be drawn" in text
    assert "Right of the dashed line" in text and "Learning curves" in text
    text = write_report(folder).read_text("utf-8")
    assert "which is your own code" in text and "Learning curves" in text


def check_unknown(results: dict) -> None:
    """Nothing is measured against an oracle that nobody has."""
    oracle = results["oracle"]
    assert oracle["bayes_optimal"] is oracle["known_task"] is None
    assert oracle["on_test_tasks"] is results["fraction_of_bayes_optimal"] is None
    assert results["belief"].keys() == {"frozen_return"}
    console = Console(record=True, width=120, file=io.StringIO())
    print_results(results, console)
    table = console.export_text()
    assert "are not known here" in table and "Bayes-optimal" not in table


@pytest.mark.parametrize("tasks", [TWIN, FALL], ids=lambda t: t.name)
def test_gymnasium_tasks_run_through_every_phase(tasks, tmp_path):
    experiment = tiny(tasks)
    results = run(experiment, tmp_path / "run")
    assert results["domain"] == tasks.name and results["relabel"] == "rewards"
    assert json.loads((tmp_path / "run" / "results.json").read_text()) == results
    check_unknown(results)
    check_report(experiment, tmp_path / "run")
    logs = read_episodes(tmp_path / "run" / "1-logs" / "rollouts-000.npz")
    short = np.asarray(logs.length) < tasks.spec.horizon
    assert short.any() == (tasks is FALL)
    sample = read_episodes(tmp_path / "run" / "2-relabelled" / "sample.npz")
    made = store.load_arrays(tmp_path / "run" / "2-relabelled" / "provenance.npz")
    goals = Pipeline(experiment, tmp_path / "run", Quiet()).train_tasks()
    steps = sample.transitions()
    for task, paid, own in zip(
        goals[made["task"]], steps.reward, range(len(made["task"])), strict=True
    ):
        for t in np.flatnonzero(steps.valid[own])[:3]:
            step = Transition(
                steps.obs[own, t], steps.action[own, t], paid[t], steps.next_obs[own, t]
            )
            np.testing.assert_allclose(tasks.reward(task, step), paid[t], rtol=1e-5)
        if own == 5:
            break
    before = shas(tmp_path / "run")
    assert run(experiment, tmp_path / "run")["return"] == results["return"]
    assert shas(tmp_path / "run") == before, "what is done is read"


def test_tasks_that_can_be_listed_are_each_used_once(tmp_path):
    sides = jnp.array([-1.0, 1.0, 0.5])
    few = replace(FALL, sample_task=lambda key: jr.choice(key, sides))
    with pytest.raises(ConfigError, match=r"tasks \d and \d are equal"):
        Pipeline(tiny(few), tmp_path, Quiet()).train_tasks()
    listed = Pipeline(tiny(replace(few, all_tasks=lambda: sides)), tmp_path, Quiet())
    np.testing.assert_array_equal(listed.train_tasks(), sides)
    np.testing.assert_array_equal(listed.test_tasks(), sides)
    four = replace(listed.experiment.collect, num_tasks=4)
    with pytest.raises(ConfigError, match="fall has only 3 tasks"):
        replace(listed.experiment, collect=four)


def test_policies_are_replayed_in_environments(tmp_path):
    experiment = replace(tiny(FALL), relabel=ReplayPolicies(rollouts=2))
    pipeline = Pipeline(experiment, tmp_path, Quiet())
    with compiled_quickly():
        drawn = pipeline.source.draw(8, key=jr.key(0))
    assert isinstance(pipeline.logs.policies, AgentPolicy)
    assert drawn.length.shape == (8, 2)


def test_a_users_own_jax_family_runs_through_every_phase(tmp_path):
    tiny_wind = preset("wind", "tiny")
    relabel = ReplayPolicies(rollouts=2)
    experiment = replace(tiny_wind, preset="custom", family=Drift(), relabel=relabel)
    results = run(experiment, tmp_path)
    assert results["domain"] == "Drift"
    check_unknown(results)
    check_report(experiment, tmp_path)
    told = json.loads((tmp_path / "experiment.json").read_text())["family"]
    assert told == {"kind": "Drift", "strength": 0.1, "gains": [1.0, 2.0]}
    changed = replace(experiment, family=Drift(strength=0.2))
    with pytest.raises(ConfigError, match=r"family.strength: 0.1 -> 0.2"):
        run(changed, tmp_path)
    with pytest.raises(
        ConfigError, match=r"tasks of this experiment are Drift .*Go on"
    ):
        read_experiment(tmp_path)


def test_files_know_gymnasium_tasks_by_name_and_values(tmp_path):
    told = tiny(TWIN).to_json()["family"]
    assert told == {
        "kind": "GymTasks",
        "name": "semicircle-gym",
        "spec": {
            "kind": "Spec",
            "obs_size": 2,
            "action": {"kind": "Box", "size": 2},
            "horizon": 6,
            "episodes": 2,
            "obs_dtype": "float32",
        },
        "differs_in": "rewards",
        "starts": ["fixed", "uniform"],
    }
    with pytest.raises(ConfigError, match=r"are semicircle-gym \(GymTasks\).*own code"):
        Experiment.from_json(tiny(TWIN).to_json())


class Secret:
    """Not a dataclass; files could not tell two of them apart."""

    starts, differs_in = ("fixed",), "rewards"
    spec = property(lambda self: Drift().spec)
    sample_task = reset = step = observe = reward = Drift.sample_task


@dataclass(frozen=True)
class Holding(Drift):
    """Holds what JSON cannot."""

    extra: object = object()


@pytest.mark.parametrize("family", [Secret(), Holding()], ids=["class", "object"])
def test_a_family_that_files_cannot_know_is_refused(family):
    with pytest.raises(ConfigError, match="must be a frozen dataclass of numbers"):
        replace(preset("wind", "tiny"), family=family)


def test_no_exact_belief_where_none_is_known():
    with pytest.raises(ConfigError, match="exact posterior of fall is not known"):
        replace(tiny(FALL), exact_belief=True)


def test_relabelling_without_a_reward_function_says_what_to_do():
    bare = replace(TWIN, reward=None)
    with pytest.raises(ConfigError, match=r"no reward function.*GymTasks\(reward=…\)"):
        tiny(bare)
    replace(tiny(TWIN), relabel=KeepAsIs(), family=bare)
