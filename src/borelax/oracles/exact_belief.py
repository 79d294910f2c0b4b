"""Bayes' rule as a belief filter, for the families in which it can be worked out."""

from typing import Any

import jax.numpy as jnp

from borelax.belief.view import BeliefFilter
from borelax.errors import ConfigError
from borelax.oracles.gridworld_belief import ExactPosterior
from borelax.oracles.task_posterior import AnglePosterior, WindPosterior
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind


def exact_belief(family: Any, num_seeds: int) -> BeliefFilter:
    """The exact posterior of a family, once per seed."""
    seeds = jnp.arange(num_seeds)
    if isinstance(family, Gridworld):
        return ExactPosterior(seeds, family)
    if isinstance(family, SemiCircle | EscapeRoom | AntSemiCircle):
        return AnglePosterior(seeds, family)
    if isinstance(family, Wind):
        return WindPosterior(seeds, family)
    raise ConfigError("The exact posterior is not known; leave out exact_belief.")
