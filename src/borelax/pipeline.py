"""The paper on one page: the phases, in order, in one folder.

``run(experiment, out)`` does everything; a ``Pipeline``'s phases can also be called one
by one. What is already in the folder is read, not made again.
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.random as jr

from borelax import store
from borelax.belief.elbo import BeliefModel
from borelax.belief.view import BeliefFilter, FrozenBelief, LearnedBelief
from borelax.evaluate.evaluate import returns_per_episode, summarise_returns
from borelax.experiment import Experiment
from borelax.logs import TaskLogs, read_episodes, read_logs, write_makers
from borelax.meta.policy import BeliefPolicy
from borelax.oracles.exact_belief import exact_belief
from borelax.oracles.oracle import Oracle, oracle_of
from borelax.outputs import (
    read_provenance,
    read_tree,
    write_provenance,
    write_rollouts,
    write_tree,
)
from borelax.progress import ProgressDisplay
from borelax.relabel.source import Provenance, RolloutSource
from borelax.run_folder import Phase, RunFolder
from borelax.simulate.of_family import simulator_of
from borelax.tasks.family import all_tasks, draw_tasks, name_of, refuse_repeats
from borelax.types import Episodes, Key, axis_size

STREAMS = (
    "tasks",
    "test tasks",
    "collect",
    "relabel",
    "belief",
    "meta",
    "evaluate",
    "replay",
    "validation tasks",
)
"""Streams of randomness, each folded in by its place: append, never reorder."""

PROVENANCE_ROLLOUTS = 100
"""Relabelled rollouts written to disk with their provenance, to look at."""


def run(
    experiment: Experiment,
    out: str | Path,
    *,
    logs: str | Path | None = None,
    display: ProgressDisplay | None = None,
    checkpoint_seconds: float = 30.0,
) -> dict[str, Any]:
    """Run all phases in the folder ``out`` and return what results.json holds.

    Args:
        experiment: What to run.
        out: The run's folder. What is done there is not done again.
        logs: Another run's folder whose logs are used in place of new ones.
        display: Where progress is shown; by default standard error.
        checkpoint_seconds: Seconds of work that a crash may cost.
    """
    display = display or ProgressDisplay()
    pipeline = Pipeline(experiment, Path(out), display, checkpoint_seconds)
    if logs is not None:
        pipeline.folder.adopt("collect", Path(logs))
    return pipeline.results()


@eqx.filter_jit
def _provenance(source: RolloutSource, key: Key) -> Provenance:
    return source.draw_with_makers(PROVENANCE_ROLLOUTS, key=key)


class Pipeline:
    """The phases of one experiment in one folder, each worked out once, on demand."""

    def __init__(
        self,
        experiment: Experiment,
        out: Path,
        display: ProgressDisplay,
        checkpoint_seconds: float = 30.0,
    ):
        """Open or make the folder."""
        self.experiment = experiment
        self.simulator = simulator_of(experiment.family)
        self.spec = experiment.family.spec
        self.folder = RunFolder(out, experiment, display, checkpoint_seconds)

    @cached_property
    def logs(self) -> TaskLogs:
        """Phase 1: N agents learn their tasks; every step is kept."""
        collect, tasks = self.experiment.collect, self.train_tasks()
        return self.folder.run(
            Phase(
                "collect",
                inputs=(),
                make=lambda journal: collect(
                    self.simulator, tasks, key=self.key("collect"), journal=journal
                ),
                write=write_makers,
                read=lambda f: read_logs(f, tasks, collect.policies_like(self.spec)),
            )
        )

    @cached_property
    def source(self) -> RolloutSource:
        """Phase 2: logs become a source of (relabelled) rollouts."""
        start, key = self.experiment.collect.start, self.key("replay")
        source = self.experiment.relabel(
            self.logs, self.simulator, start=start, key=key
        )
        self.folder.run(
            Phase(
                "relabel",
                inputs=("collect",),
                make=lambda _: _provenance(source, self.key("relabel")),
                write=write_provenance,
                read=read_provenance,
            )
        )
        return source

    @cached_property
    def model(self) -> BeliefModel:
        """Phase 3: learn to infer the task [S]."""
        fit, seeds = self.experiment.belief, self.num_seeds
        source = self.source.for_belief()
        return self.folder.run(
            Phase(
                "belief",
                inputs=("collect", "relabel"),
                make=lambda journal: fit(
                    source,
                    self.spec,
                    num_seeds=seeds,
                    key=self.key("belief"),
                    journal=journal,
                ),
                write=write_tree("model.safetensors"),
                read=read_tree("model.safetensors", fit.like(self.spec, seeds)),
            )
        )

    @cached_property
    def beliefs(self) -> BeliefFilter:
        """What the meta-agent is given: the learned belief, or the exact one [S]."""
        if self.experiment.exact_belief:
            return exact_belief(self.experiment.family, self.num_seeds)
        return LearnedBelief(self.model, self.experiment.meta.view)

    @cached_property
    def policies(self) -> BeliefPolicy:
        """Phase 4: learn to act on hyper-states [S]."""
        fit, source, beliefs = self.experiment.meta, self.source, self.beliefs
        learned = () if self.experiment.exact_belief else ("belief",)
        state = self.folder.run(
            Phase(
                "meta",
                inputs=("collect", "relabel", *learned),
                make=lambda journal: fit(
                    source, beliefs, self.spec, key=self.key("meta"), journal=journal
                ),
                write=write_tree("agent.safetensors"),
                read=read_tree("agent.safetensors", fit.like(beliefs, self.spec)),
            )
        )
        return BeliefPolicy(beliefs, fit.agent, fit.agent.acting(state))

    @cached_property
    def rollouts(self) -> Episodes:
        """Phase 5: run the meta-agent on held-out tasks [S, N, repeats, E, …]."""
        evaluate, policies = self.experiment.evaluate, self.policies
        return self.folder.run(
            Phase(
                "evaluate",
                inputs=("meta",),
                make=lambda _: evaluate(
                    self.simulator,
                    self.test_tasks(),
                    policies,
                    key=self.key("evaluate"),
                ),
                write=write_rollouts,
                read=lambda f: read_episodes(f / "rollouts.npz"),
            )
        )

    def results(self) -> dict[str, Any]:
        """All phases; writes results.json."""
        returns = summarise_returns(returns_per_episode(self.rollouts))
        model = None if self.experiment.exact_belief else self.model
        judged = self.oracle.judge_belief(
            model, self.rollouts, key=self.key("evaluate")
        )
        best = self._best_on_test_tasks()
        results = {
            "domain": name_of(self.experiment.family),
            "preset": self.experiment.preset,
            "relabel": self.experiment.relabel.name,
            "exact_belief": self.experiment.exact_belief,
            "seeds": self.num_seeds,
            "tested_on": self.experiment.evaluate.tested_on,
            "return": returns,
            "oracle": self.oracle.values() | {"on_test_tasks": best},
            "fraction_of_bayes_optimal": best and returns["mean"] / best,
            "belief": {**judged, "frozen_return": self._frozen_return()},
            "wall_seconds": self.folder.seconds(),
        }
        store.write_json(self.folder.path / "results.json", results)
        return results

    @cached_property
    def oracle(self) -> Oracle:
        """What the test's number of episodes is worth to the best possible agents."""
        family, tested = self.experiment.family, self.experiment.evaluate.episodes
        display = self.folder.display
        display.begin("oracle", total=1, done=0)  # half a minute where none is stored
        try:
            return oracle_of(family, episodes=tested)
        finally:
            display.end()

    def _frozen_return(self) -> float:
        """What the same agents return if their belief stays at the prior."""
        policies = self.policies
        return self._tested(replace(policies, belief=FrozenBelief(policies.belief)))

    def _best_on_test_tasks(self) -> float | None:
        """What the best known agent returns on the very tasks of the test.

        Of a finite family that is tested in part: unknown.
        """
        family, policy = self.experiment.family, self.oracle.policy()
        if policy is not None:
            return self._tested(policy)
        listed, tested = all_tasks(family), self.experiment.evaluate.num_tasks
        if listed is not None and tested < axis_size(listed):
            return None
        return self.oracle.values()["bayes_optimal"]

    def _tested(self, policies: Any) -> float:
        """Mean return of policies [S] in the test."""
        rollouts = self.experiment.evaluate(
            self.simulator, self.test_tasks(), policies, key=self.key("evaluate")
        )
        return float(returns_per_episode(rollouts).sum(axis=-1).mean())

    @property
    def num_seeds(self) -> int:
        """S."""
        return self.experiment.num_seeds

    def train_tasks(self) -> Any:
        """The tasks the logs are collected on [N], no two the same."""
        tasks = logged_tasks(self.experiment)
        refuse_repeats(self.experiment.family, tasks)
        return tasks

    def test_tasks(self) -> Any:
        """Held-out tasks; of a finite family, its own."""
        return held_out_tasks(self.experiment)

    def key(self, stream: str) -> Key:
        """The root of one stream of randomness."""
        return stream_key(self.experiment, stream)


def stream_key(experiment: Experiment, stream: str) -> Key:
    """The root of one stream of an experiment's randomness."""
    return jr.fold_in(jr.key(experiment.seed), STREAMS.index(stream))


def logged_tasks(experiment: Experiment) -> Any:
    """The tasks that an experiment's logs are collected on."""
    key = stream_key(experiment, "tasks")
    return draw_tasks(experiment.family, experiment.collect.num_tasks, key=key)


def held_out_tasks(experiment: Experiment) -> Any:
    """The tasks that an experiment's agents are tested on."""
    evaluate = experiment.evaluate
    key = stream_key(experiment, f"{evaluate.tested_on} tasks")
    return draw_tasks(experiment.family, evaluate.num_tasks, key=key)
