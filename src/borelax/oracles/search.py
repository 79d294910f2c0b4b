"""What a search path is worth: go and look, and once found, come straight back.

Where tasks are angles and "not here" is all that can be seen before the task is found,
a policy is a path through all episodes of the rollout. In: the path's actions and a
world that says which step finds which angle. Out: expected return of each episode.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Point = Float[Array, "2"]
Scalar = Float[Array, ""]
Actions = Float[Array, "E H 2"]


@runtime_checkable
class SearchWorld(Protocol):
    """A family as the searcher meets it: hashable, written for one step and angle."""

    @property
    def family(self) -> Any:
        """The family itself."""
        ...

    def task(self, angle: Scalar) -> Any:
        """The family's task at an angle of [0, π]."""
        ...

    def blind_step(self, state: Point, action: Point) -> Point:
        """Where a step leads that finds nothing."""
        ...

    def margin(self, state: Point, action: Point, angle: Scalar) -> Scalar:
        """At least 0 where the step finds the task, and larger the more surely."""
        ...

    def known_steps(self, angles: np.ndarray) -> np.ndarray:
        """Fewest steps from the start that find each angle, if it is known."""
        ...

    def landmarks(self, num: int) -> np.ndarray:
        """Places [num, 2] worth walking to if the task is known."""
        ...

    def sweep_radii(self) -> tuple[float, ...]:
        """Distances from the centre at which a first sweep may go round."""
        ...

    def tour_tables(
        self, angles: np.ndarray, slack: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Fewest steps to find angles one after another, for ``search_bound``."""
        ...


class PathValue(NamedTuple):
    """What a path earns, and how."""

    per_episode: Float[Array, "E"]
    """Expected return of each episode."""
    first_find: Int[Array, "M"]
    """The rollout's step (from 0) that finds each angle; T: none does."""
    targets: Float[Array, "T 2"]
    """Where to walk in later episodes, if this step was the one that found it."""


def midpoints(num: int) -> np.ndarray:
    """Angles of [0, π], each standing for an equal share of it."""
    return (np.arange(num) + 0.5) * np.pi / num


def margins(
    world: SearchWorld, actions: Actions, angles: Float[Array, "M"]
) -> Float[Array, "T M"]:
    """The margin of every step of the path for every angle."""

    def one_step(state: Point, action: Point):
        return world.blind_step(state, action), state

    def states(episode: Float[Array, "H 2"]) -> Float[Array, "H 2"]:
        return jax.lax.scan(one_step, jnp.zeros(2), episode)[1]

    rows = jax.vmap(states)(actions).reshape(-1, 2), actions.reshape(-1, 2)
    of_step = jax.vmap(world.margin, in_axes=(None, None, 0))
    return jax.vmap(of_step, in_axes=(0, 0, None))(*rows, angles)


def path_of(world: SearchWorld, actions: Actions) -> Float[Array, "E H_plus_1 2"]:
    """The places of a path that finds nothing, starts included."""

    def one_step(state: Point, action: Point):
        after = world.blind_step(state, action)
        return after, after

    walked = jax.vmap(lambda e: jax.lax.scan(one_step, jnp.zeros(2), e)[1])(actions)
    return jnp.concatenate([jnp.zeros_like(walked[:, :1]), walked], axis=1)


def first_step(found: Float[Array, "T M"]) -> Int[Array, "M"]:
    """The first step whose margin is not negative; T where there is none."""
    hit = found >= 0
    return jnp.where(hit.any(axis=0), hit.argmax(axis=0), hit.shape[0])


def walk_to(world: SearchWorld, target: Point) -> Float[Array, "H 2"]:
    """Actions of an episode that walks to a target, as if nothing were found."""
    size = world.family.step_size

    def one_step(state: Point, _: None):
        action = jnp.clip((target - state) / size, -1.0, 1.0)
        return world.blind_step(state, action), action

    return jax.lax.scan(one_step, jnp.zeros(2), None, world.family.horizon)[1]


class Walks(NamedTuple):
    """What walking straight to each of Q places earns, for each of M angles."""

    targets: Float[Array, "Q 2"]
    angles: Float[Array, "M"]
    earned: Float[Array, "M Q"]
    """Return of an episode that begins with the walk."""


def walks_to_landmarks(world: SearchWorld, num_targets: int, num_angles: int) -> Walks:
    """The world's own landmarks, tried on equally likely angles."""
    targets = jnp.asarray(world.landmarks(num_targets), jnp.float32)
    angles = jnp.asarray(midpoints(num_angles), jnp.float32)
    return Walks(targets, angles, _earned(world, targets, angles))


def path_value(world: SearchWorld, actions: Actions, walks: Walks) -> PathValue:
    """Search along the path; once found, stay, and walk to a target in later episodes.

    The step that found it says which angles it can be; the target is the one that is
    best on average over those.
    """
    episodes, horizon = actions.shape[:2]
    total = episodes * horizon
    first = first_step(margins(world, actions, walks.angles))
    best = jax.ops.segment_sum(walks.earned, first, total + 1).argmax(axis=1)
    later = walks.earned[jnp.arange(len(first)), best[first]]
    start = horizon * jnp.arange(episodes)[:, None]
    now = jnp.maximum(start + horizon - first[None], 0)
    per_episode = jnp.where(first[None] < start, later[None], now).mean(axis=1)
    return PathValue(per_episode, first, walks.targets[best[:total]])


def known_returns(world: SearchWorld, angles: np.ndarray) -> np.ndarray:
    """Return of one episode for each angle, if it is known."""
    horizon = world.family.horizon
    return np.maximum(horizon + 1 - world.known_steps(angles), 0).astype(np.float64)


@eqx.filter_jit
def _earned(world, targets, angles) -> Float[Array, "M Q"]:
    def finds(target: Point) -> Int[Array, "M"]:
        walk = walk_to(world, target)
        return first_step(margins(world, walk[None], angles))

    steps = jax.lax.map(finds, targets, batch_size=32)
    return world.family.horizon - steps.T.astype(jnp.float32)
