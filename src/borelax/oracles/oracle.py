"""Which oracle judges which family."""

from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

import jax
import jax.numpy as jnp

from borelax.belief.elbo import BeliefModel
from borelax.errors import ConfigError, require
from borelax.evaluate.evaluate import Evaluate, returns_per_episode
from borelax.oracles.exact_belief import exact_belief
from borelax.oracles.gridworld import GridworldOracle, gridworld_oracle
from borelax.oracles.gridworld_belief import PlanOnLearnedBelief, posterior_errors
from borelax.oracles.prediction_error import prediction_errors
from borelax.oracles.search_oracle import SearchOracle, search_oracle
from borelax.oracles.search_policy import SearchPolicy
from borelax.oracles.task_posterior import Posterior
from borelax.oracles.wind import WindOracle, WindPolicy, wind_oracle
from borelax.simulate.jax_simulator import JaxSimulator
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind
from borelax.types import Episodes, Key

Solved = GridworldOracle | SearchOracle | WindOracle
"""Returns of the best agents, in total (``to_json``) and ``per_episode``."""


@runtime_checkable
class Oracle(Protocol):
    """What a run is measured against."""

    def values(self) -> dict[str, Any]:
        """The ``oracle`` entry of results.json.

        Always ``bayes_optimal``, ``known_task`` and ``exact``. Where ``exact`` is
        False, ``bayes_optimal`` is a lower bound and ``upper_bound`` the other one; or
        all are None, where none is known.
        """
        ...

    def policy(self) -> Any | None:
        """The agent that earns ``bayes_optimal``, with a leading axis of one.

        None where every task is tested, so that the expectation says it all, and
        where no such agent is known.
        """
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

    def policy(self) -> None:
        """Not needed: the return is over all goals."""
        return None

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


class PlaneJudge:
    """The answers for the families in the plane; see docs/oracles.md for how exact."""

    def __init__(self, family: SemiCircle | EscapeRoom | Wind):
        """Solves the family, or reads the solution."""
        self.family = family
        self.solved: SearchOracle | WindOracle = (
            wind_oracle(family) if isinstance(family, Wind) else search_oracle(family)
        )

    def values(self) -> dict[str, Any]:
        """Returns of the best possible agents."""
        return self.solved.to_json()

    def policy(self) -> SearchPolicy | WindPolicy:
        """The searcher, or the agent that feels the wind."""
        if isinstance(self.solved, WindOracle):
            first = jnp.asarray(self.solved.first_action)
            return WindPolicy(first[None], cast(Wind, self.family))
        return jax.tree.map(lambda x: x[None], self.solved.policy())

    def judge_belief(
        self, models: BeliefModel | None, rollouts: Episodes, *, key: Key
    ) -> dict[str, Any]:
        """How far its predictions are from the posterior's."""
        return _prediction_error(self.family, models, rollouts)


class NoOracle:
    """For families whose best return nobody has worked out, such as a user's own."""

    def values(self) -> dict[str, Any]:
        """Unknown."""
        return {"bayes_optimal": None, "known_task": None, "exact": False}

    def policy(self) -> None:
        """Unknown."""
        return None

    def judge_belief(
        self, models: BeliefModel | None, rollouts: Episodes, *, key: Key
    ) -> dict[str, Any]:
        """There is nothing to compare a belief with."""
        return {}


class PosteriorAlone(NoOracle):
    """For Ant-Semi-circle: the posterior is known, the best return is not."""

    def __init__(self, family: AntSemiCircle):
        """Nothing is solved."""
        self.family = family

    def judge_belief(
        self, models: BeliefModel | None, rollouts: Episodes, *, key: Key
    ) -> dict[str, Any]:
        """How far its predictions are from the posterior's."""
        return _prediction_error(self.family, models, rollouts)


def _prediction_error(
    family: Any, models: BeliefModel | None, rollouts: Episodes
) -> dict[str, Any]:
    """The ``belief`` entry of families whose beliefs are compared by predictions."""
    if models is None:
        return {"prediction_error": 0.0}
    posterior = cast(Posterior, exact_belief(family, 1))
    errors = prediction_errors(posterior, models, rollouts)
    return {
        "prediction_error": float(errors.mean()),
        "prediction_error_per_seed": errors.tolist(),
    }


def oracle_of(family: Any, episodes: int = 0) -> Oracle:
    """The oracle of a family in rollouts of ``episodes`` episodes; 0: its own."""
    if isinstance(family, AntSemiCircle):
        return PosteriorAlone(family)
    if not isinstance(family, Gridworld | SemiCircle | EscapeRoom | Wind):
        kind = type(family).__name__
        require(hasattr(family, "sample_task"), f"There is no oracle for {kind}.")
        return NoOracle()
    family = replace(family, episodes=episodes or family.episodes)
    return (
        GridworldJudge(family) if isinstance(family, Gridworld) else PlaneJudge(family)
    )


def solve(family: Any, recompute: bool = False) -> Solved:
    """The returns of a family's best agents: read if they are stored, else computed."""
    if isinstance(family, Gridworld):
        return gridworld_oracle(family, recompute=recompute)
    if isinstance(family, SemiCircle | EscapeRoom):
        return search_oracle(family, recompute=recompute)
    if isinstance(family, Wind):
        return wind_oracle(family)
    raise ConfigError(f"There is no oracle for {type(family).__name__} yet.")
