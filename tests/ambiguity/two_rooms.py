"""Logs of the two rooms of docs/ambiguity.md, as arrays."""

import jax.numpy as jnp
import numpy as np

from borelax.types import Episodes

ROLLOUTS, HORIZON = 12, 4


def walk(pays: int, target: int, rng: np.random.Generator) -> tuple:
    """One rollout: from the hall (0) to the room ``target``; the room ``pays`` pays 1.

    Action 0 goes left and action 1 goes right; in a room neither leads anywhere.
    """
    states = np.array([0] + [target] * HORIZON)
    actions = np.concatenate([[target - 1], rng.integers(2, size=HORIZON - 1)])
    return np.eye(3)[states], actions, (states[1:] == pays).astype(float)


def rooms(targets: list[list[int]], pays: list[int]) -> Episodes:
    """Task n pays in room ``pays[n]``; its agent visits ``targets[n]`` in turn."""
    rng = np.random.default_rng(0)
    rows = [
        [walk(room, where[r % len(where)], rng) for r in range(ROLLOUTS)]
        for room, where in zip(pays, targets, strict=True)
    ]
    obs, action, reward = (
        np.stack([np.stack([rollout[part] for rollout in row]) for row in rows])
        for part in range(3)
    )
    return Episodes(
        jnp.asarray(obs[:, :, None], jnp.float32),
        jnp.asarray(action[:, :, None], jnp.int32),
        jnp.asarray(reward[:, :, None], jnp.float32),
    )


EXPERTS = rooms([[1], [2]], pays=[1, 2])
"""Each agent goes where its own task pays: ambiguous by Proposition 2."""
VISITORS = rooms([[1, 2], [1, 2]], pays=[1, 2])
"""Both agents go to both rooms: identifiable."""
HABITS = rooms([[1], [2]], pays=[1, 1])
"""One task twice, and two agents with different habits."""
