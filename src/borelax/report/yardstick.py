"""What the best agent returns in each episode, where that is known at once.

In: ``RunData``. Out: a grey line for the charts that show return against episode.
"""

import numpy as np

from borelax.oracles.gridworld import SOLVED_GRIDS
from borelax.oracles.oracle import solve
from borelax.oracles.search_oracle import SOLVED_FAMILIES, SearchOracle
from borelax.report.run_data import RunData
from borelax.report.svg import Series

GREY = 6
"""The colour of what was not learned."""


def best_by_episode(run: RunData) -> Series | None:
    """The best agent's line; None: unknown, or it would have to be searched for."""
    family = getattr(run.experiment, "family", None)
    if family in (*SOLVED_GRIDS, *SOLVED_FAMILIES):
        solved = solve(family)
        exact = not isinstance(solved, SearchOracle)
        return _line(exact, solved.per_episode["bayes_optimal"])
    if run.results is None or len(run.results["return"]["per_episode"][0]) > 1:
        return None
    oracle = run.results["oracle"]
    total = oracle.get("bayes_optimal")  # of the only episode
    return None if total is None else _line(oracle["exact"], (total,))


def _line(exact: bool, values: tuple[float, ...]) -> Series:
    name = "Bayes-optimal" if exact else "best known search"
    episodes = np.arange(1.0, len(values) + 1)
    return Series(name, episodes, np.array(values)[:, None], GREY)
