"""The searcher as a policy: follow the path, stay where it pays, walk back later."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from borelax.types import Key, Transition


class Searching(eqx.Module):
    """Where the rollout stands."""

    step: Int[Array, ""]
    found_at: Int[Array, ""]
    """The step that first paid; -1: none yet."""
    paid: Bool[Array, ""]
    """Whether a step of this episode has paid."""


class SearchPolicy(eqx.Module):
    """Earns in simulation what ``path_value`` says."""

    actions: Float[Array, "*n T 2"]
    """While nothing is found."""
    targets: Float[Array, "*n T 2"]
    """Where to walk in later episodes, by the step that found it."""
    horizon: int = eqx.field(static=True)
    step_size: float = eqx.field(static=True)

    def start(self) -> Searching:
        """Nothing found."""
        zero = jnp.zeros((), jnp.int32)
        return Searching(zero, zero - 1, jnp.asarray(False))

    def act(
        self, memory: Searching, obs: Float[Array, "2"], *, key: Key
    ) -> Float[Array, "2"]:
        """Search, or walk to where it was found, or stay."""
        toward = (self.targets[memory.found_at] - obs) / self.step_size
        known = jnp.where(memory.paid, 0.0, jnp.clip(toward, -1.0, 1.0))
        return jnp.where(memory.found_at < 0, self.actions[memory.step], known)

    def remember(self, memory: Searching, step: Transition) -> Searching:
        """Count, and note the first reward."""
        pays = step.reward > 0
        first = pays & (memory.found_at < 0)
        after = memory.step + 1
        return Searching(
            after,
            jnp.where(first, memory.step, memory.found_at),
            (memory.paid | pays) & (after % self.horizon != 0),
        )
