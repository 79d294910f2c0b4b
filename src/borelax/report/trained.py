"""A run's trained parts and test rollouts, read without its logs.

A ``Pipeline`` would do, but it reads all logs first, and writes down today's versions
as those of the run.
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from borelax import manifest, store
from borelax.belief.elbo import BeliefModel
from borelax.belief.view import BeliefFilter, LearnedBelief
from borelax.errors import DataError
from borelax.evaluate.evaluate import Evaluate
from borelax.experiment import Experiment
from borelax.logs import read_episodes
from borelax.meta.policy import BeliefPolicy
from borelax.oracles.exact_belief import exact_belief
from borelax.pipeline import held_out_tasks, logged_tasks, stream_key
from borelax.run_folder import NAMES
from borelax.simulate.of_family import simulator_of
from borelax.tasks.gym_tasks import GymTasks
from borelax.tasks.mujoco_family import MujocoFamily
from borelax.types import Episodes

MANY, FEW = 100, 8
"""Tasks in which agents are run for more episodes; few where steps are slow."""


class Trained:
    """What a run has learned, opened for reading, each part when it is asked for."""

    def __init__(self, folder: Path, experiment: Experiment):
        """Nothing is read yet."""
        self.folder, self.experiment = folder, experiment
        self.family, self.spec = experiment.family, experiment.family.spec

    @cached_property
    def tasks(self) -> Any:
        """The tasks of the test [N]."""
        return held_out_tasks(self.experiment)

    @cached_property
    def model(self) -> BeliefModel | None:
        """The belief models [S]; None where the meta-agent was given the posterior."""
        if self.experiment.exact_belief:
            return None
        like = self.experiment.belief.like(self.spec, self.experiment.num_seeds)
        return store.load_tree(self._sealed("belief") / "model.safetensors", like)

    @cached_property
    def policies(self) -> BeliefPolicy:
        """The deployed agents [S]."""
        fit, beliefs = self.experiment.meta, self._beliefs()
        path = self._sealed("meta") / "agent.safetensors"
        state = store.load_tree(path, fit.like(beliefs, self.spec))
        return BeliefPolicy(beliefs, fit.agent, fit.agent.acting(state))

    @cached_property
    def tested(self) -> Episodes:
        """The rollouts of the test [S, N, E, …], the first of each task.

        Read if phase 5 is done, else run now.
        """
        if manifest.is_sealed(self.folder / NAMES["evaluate"]):
            rollouts = read_episodes(self._sealed("evaluate") / "rollouts.npz")
        else:
            evaluate = replace(self.experiment.evaluate, repeats=1)
            rollouts = self._run(evaluate, self.tasks)
        return _first(rollouts)

    def further(self) -> Episodes:
        """Rollouts of more episodes than trained on [S, N, E, …], in some tasks."""
        most = FEW if isinstance(self.family, MujocoFamily | GymTasks) else MANY
        count = min(most, self.experiment.evaluate.num_tasks)
        episodes = max(2 * self.spec.episodes, self.spec.episodes + 2)
        tasks = jax.tree.map(lambda x: x[:count], self.tasks)
        rollouts = self._run(Evaluate(count, 1, episodes), tasks)
        return _first(rollouts)

    def trained_on(self) -> Any:
        """The tasks of the logs [N]."""
        return logged_tasks(self.experiment)

    def logged(self) -> Episodes:
        """The last rollout that each agent left in the logs [N, E, …]."""
        folder = self._sealed("collect")
        shards = sorted(folder.glob("rollouts-*.npz"))
        if not shards:
            raise DataError(f"the logged rollouts are not in {folder} any more")
        return at(read_episodes(shards[-1]), np.s_[:, -1])

    def _run(self, evaluate: Evaluate, tasks: Any) -> Episodes:
        simulator, key = (
            simulator_of(self.family),
            stream_key(self.experiment, "evaluate"),
        )
        return evaluate(simulator, tasks, self.policies, key=key)

    def _beliefs(self) -> BeliefFilter:
        if self.model is not None:
            return LearnedBelief(self.model, self.experiment.meta.view)
        return exact_belief(self.family, self.experiment.num_seeds)

    def _sealed(self, phase: str) -> Path:
        folder = self.folder / NAMES[phase]
        if not manifest.is_sealed(folder):
            raise DataError(f"the phase {phase!r} is not done")
        return folder


def of_seed(tree: Any, seed: int) -> Any:
    """One seed's part of a pytree with a leading axis of seeds."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[seed], arrays), rest)


def picked(tasks: Any, indices: np.ndarray) -> Any:
    """Some of the tasks."""
    return jax.tree.map(lambda x: x[jnp.asarray(indices)], tasks)


def _first(rollouts: Episodes) -> Episodes:
    """The first rollout of each task."""
    return at(rollouts, np.s_[:, :, 0])


def at(rollouts: Episodes, index: Any) -> Episodes:
    """Some of the rollouts; NumPy cuts them, so nothing is compiled for it."""
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[index]), rollouts)
