"""Which oracle judges which family."""

from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp

from borelax.belief.elbo import BeliefModel
from borelax.belief.view import BeliefFilter
from borelax.errors import ConfigError
from borelax.evaluate.evaluate import Evaluate, returns_per_episode
from borelax.oracles.gridworld import gridworld_oracle
from borelax.oracles.gridworld_belief import (
    ExactPosterior,
    PlanOnLearnedBelief,
    posterior_errors,
)
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.gridworld import Gridworld
from borelax.types import Episodes, Key


@runtime_checkable
class Oracle(Protocol):
    """What a run is measured against."""

    def values(self) -> dict[str, Any]:
        """The ``oracle`` entry of results.json."""
        ...

    def exact_belief(self, num_seeds: int) -> BeliefFilter:
        """The exact posterior as a belief filter, once per seed."""
        ...

    def judge_belief(
        self, models: BeliefModel | None, rollouts: Episodes, *, key: Key
    ) -> dict[str, Any]:
        """The ``belief`` entry of results.json; no model: the belief was exact."""
        ...


class GridworldJudge:
    """The exact answers for Gridworld."""

    def __init__(self, gridworld: Gridworld):
        """Solves the grid, or reads the solution."""
        self.gridworld = gridworld
        self.solved = gridworld_oracle(gridworld)

    def values(self) -> dict[str, Any]:
        """Returns of the best possible agents."""
        return self.solved.to_json()

    def exact_belief(self, num_seeds: int) -> ExactPosterior:
        """Bayes' rule."""
        return ExactPosterior(jnp.arange(num_seeds), self.gridworld)

    def judge_belief(
        self, models: BeliefModel | None, rollouts: Episodes, *, key: Key
    ) -> dict[str, Any]:
        """Distance to the posterior, and what the exact plan makes of the belief."""
        if models is None:
            return {"posterior_error": 0.0}
        errors = posterior_errors(self.gridworld, models, rollouts)
        judged: dict[str, Any] = {
            "posterior_error": float(errors.mean()),
            "posterior_error_per_seed": errors.mean(axis=(1, 2, 3)).tolist(),
        }
        if self.solved.plan is None:
            return judged
        plan = PlanOnLearnedBelief(models, self.solved.plan, self.gridworld)
        evaluate = Evaluate(num_tasks=len(self.gridworld.goals()))
        tasks = self.gridworld.all_tasks()
        planned = evaluate(JaxSimulator(self.gridworld), tasks, plan, key=key)
        returns = returns_per_episode(planned).sum(axis=-1)
        return judged | {"exact_plan_return": float(returns.mean())}


def oracle_of(family: Any) -> Oracle:
    """The oracle of a family."""
    if isinstance(family, Gridworld):
        return GridworldJudge(family)
    raise ConfigError(f"There is no oracle for {type(family).__name__} yet.")
