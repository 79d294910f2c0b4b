"""Phase 5: run the deterministic meta-policy on held-out tasks from the fixed start.

In: one policy per seed. Out: rollouts [S, N, repeats, E, …] and their returns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from borelax.errors import require, require_positive
from borelax.simulate.simulator import Simulator
from borelax.types import Episodes, Key, axis_size


@dataclass(frozen=True)
class Evaluate:
    """Measure returns per episode, at the last checkpoint."""

    num_tasks: int = 21
    """Held-out tasks (a finite family: its own tasks, every one)."""
    repeats: int = 1
    """Rollouts per task; one is enough where nothing is random."""
    episodes: int = 0
    """Episodes per rollout; 0: as many as in training."""
    validation: bool = False
    """Run in other held-out tasks than the test's, to choose settings by. What is
    chosen so can still be tested."""

    def __post_init__(self) -> None:
        """Refuse an empty test."""
        require_positive(self, "num_tasks", "repeats")
        require(self.episodes >= 0, "Evaluate.episodes must not be negative.")

    @property
    def tested_on(self) -> str:
        """Which held-out tasks: "test" or "validation"."""
        return "validation" if self.validation else "test"

    def __call__(
        self, simulator: Simulator, tasks: Any, policies: Any, *, key: Key
    ) -> Episodes:
        """Run every seed's policy in every task; the policies' leading axis is S."""
        num_seeds = axis_size(policies)
        together = simulator.rollouts(
            _map_arrays(lambda x: jnp.repeat(x, self.num_tasks, axis=0), policies),
            _map_arrays(lambda x: jnp.concatenate([x] * num_seeds), tasks),
            repeats=self.repeats,
            episodes=self.episodes or simulator.spec.episodes,
            start="fixed",
            key=key,
        )
        shape = (num_seeds, self.num_tasks)
        return jax.tree.map(lambda x: x.reshape(*shape, *x.shape[1:]), together)


def returns_per_episode(rollouts: Episodes) -> Float[Array, "S E"]:
    """Undiscounted return of each episode, averaged over tasks and repeats."""
    return rollouts.paid().sum(axis=-1).mean(axis=(1, 2))


def summarise_returns(per_episode: Float[Array, "S E"]) -> dict[str, Any]:
    """The ``return`` entry of results.json: totals over episodes, spread over seeds."""
    table = np.asarray(per_episode, dtype=np.float64)
    totals = table.sum(axis=1)
    return {
        "mean": float(totals.mean()),
        "std": float(totals.std()),
        "per_seed": totals.tolist(),
        "per_episode": table.tolist(),
    }


def _map_arrays(change: Callable[[Array], Array], tree: Any) -> Any:
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.tree.map(change, arrays), rest)
