"""Wind's yardsticks: one step tells the wind, so little is lost by not knowing it.

Expectations are means over winds spread evenly (a lattice); all else is exact.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from borelax.tasks.wind import GOAL, Wind
from borelax.types import Key, Transition

Point = Float[Array, "2"]

NUM_WINDS = 32_768
"""Winds that stand for all."""
FEW_WINDS = 2_048
"""The same, where many candidates are compared."""


@dataclass(frozen=True)
class WindOracle:
    """Expected undiscounted returns, episode by episode."""

    bayes_optimal: tuple[float, ...]
    """Of the best agent that is not told the wind."""
    known_task: tuple[float, ...]
    """Of the best agent that is."""
    memoryless: tuple[float, ...]
    """Of the best goal-seeker a = clip(gain · (goal - s) / step_size)."""
    first_action: tuple[float, float]
    """What the best agent does before it has felt the wind."""
    gain: float
    """Of the best goal-seeker."""

    @property
    def per_episode(self) -> dict[str, tuple[float, ...]]:
        """Each of the three, episode by episode."""
        return {
            "bayes_optimal": self.bayes_optimal,
            "known_task": self.known_task,
            "memoryless": self.memoryless,
        }

    def to_json(self) -> dict[str, Any]:
        """The summed returns."""
        totals = {name: sum(each) for name, each in self.per_episode.items()}
        return totals | {"exact": True}


def wind_oracle(wind: Wind) -> WindOracle:
    """The oracle of a wind; fast enough that nothing is stored."""
    few, winds = spread_winds(wind, FEW_WINDS), spread_winds(wind, NUM_WINDS)
    known = float(_known(wind, winds))
    action = _best_first_action(wind, few)
    first = float(first_action_values(wind, action[None], winds)[0])
    gains = jnp.linspace(0.05, 2.0, 40)
    gain = gains[_memoryless(wind, gains, few).argmax()]
    blind = float(_memoryless(wind, gain[None], winds)[0])
    again = wind.episodes - 1
    return WindOracle(
        bayes_optimal=(first, *[known] * again),
        known_task=(known,) * wind.episodes,
        memoryless=(blind,) * wind.episodes,
        first_action=(float(action[0]), float(action[1])),
        gain=float(gain),
    )


def spread_winds(wind: Wind, num: int) -> Float[Array, "num 2"]:
    """Equally likely winds; no two share a coordinate, so few already spread evenly."""
    numbers = np.arange(num)
    golden = (np.sqrt(5) - 1) / 2
    shares = np.stack([(numbers + 0.5) / num, np.mod(numbers * golden, 1)], axis=-1)
    return jnp.asarray(wind.strongest * (2 * shares - 1), jnp.float32)


def steps_to_goal(wind: Wind, state: Point, blowing: Point) -> Int[Array, ""]:
    """Fewest steps to the goal's disc if the wind is known; H + 1: too many.

    After n steps the robot can be anywhere in a box around s + n·w.
    """
    steps = jnp.arange(1, wind.horizon + 1)
    near = jax.vmap(lambda n: _nearest(wind, state, blowing, n))(steps)
    off = near - jnp.asarray(GOAL)[None]
    there = jnp.linalg.norm(off, axis=-1) <= wind.goal_radius
    return jnp.where(there.any(), steps[there.argmax()], wind.horizon + 1)


def _nearest(wind: Wind, state: Point, blowing: Point, steps: Int[Array, ""]) -> Point:
    """The place nearest to the goal that can be reached in so many steps."""
    drift = state + steps * blowing
    reach = steps * wind.step_size
    return drift + jnp.clip(jnp.asarray(GOAL) - drift, -reach, reach)


@eqx.filter_jit
def _known(wind: Wind, winds: Float[Array, "W 2"]) -> Float[Array, ""]:
    steps = jax.vmap(lambda w: steps_to_goal(wind, jnp.zeros(2), w))(winds)
    return (wind.horizon + 1 - steps).astype(jnp.float32).mean()


@eqx.filter_jit
def first_action_values(
    wind: Wind, actions: Float[Array, "A 2"], winds: Float[Array, "W 2"]
) -> Float[Array, "A"]:
    """Return of one episode that begins with each action and then knows the wind."""

    def value(action: Point, blowing: Point) -> Float[Array, ""]:
        state = wind.step_size * action + blowing
        there = jnp.linalg.norm(state - jnp.asarray(GOAL)) <= wind.goal_radius
        # with the wind known, n more steps and then there for good
        more = jnp.where(there, 0, steps_to_goal(wind, state, blowing))
        return jnp.maximum(wind.horizon - more, 0).astype(jnp.float32)

    of_action = lambda a: jax.vmap(lambda w: value(a, w))(winds).mean()  # noqa: E731
    return jax.lax.map(of_action, actions)


def _best_first_action(wind: Wind, winds: Float[Array, "W 2"]) -> Point:
    """A scan of the box, then of the best place; of equals, the nearest to (0, 1)."""
    x, y = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 21))
    square = jnp.asarray(np.stack([x.ravel(), y.ravel()], axis=-1), jnp.float32)
    best = jnp.zeros(2)
    for scale in (1.0, 0.1):
        actions = jnp.clip(best[None] + scale * square, -1.0, 1.0)
        values = first_action_values(wind, actions, winds)
        away = jnp.linalg.norm(actions - jnp.asarray(GOAL)[None], axis=-1)
        best = actions[(values - 1e-4 * away).argmax()]
    return best


@eqx.filter_jit
def _memoryless(
    wind: Wind, gains: Float[Array, "G"], winds: Float[Array, "W 2"]
) -> Float[Array, "G"]:
    seek = lambda g: jax.vmap(lambda w: _seek(wind, g, w))(winds).mean()  # noqa: E731
    return jax.lax.map(seek, gains)


def _seek(wind: Wind, gain: Float[Array, ""], blowing: Point) -> Float[Array, ""]:
    """Return of an episode that always heads for the goal."""

    def one_step(state: Point, _: None):
        wanted = gain * (jnp.asarray(GOAL) - state) / wind.step_size
        state = state + wind.step_size * jnp.clip(wanted, -1.0, 1.0) + blowing
        off = jnp.linalg.norm(state - jnp.asarray(GOAL))
        return state, (off <= wind.goal_radius).astype(jnp.float32)

    return jax.lax.scan(one_step, jnp.zeros(2), None, wind.horizon)[1].sum()


class Blown(eqx.Module):
    """What the wind-aware agent remembers."""

    wind: Point
    known: Bool[Array, ""]


class WindPolicy(eqx.Module):
    """One fixed first action, then straight to the goal, and hold against the wind."""

    first_action: Float[Array, "*n 2"]
    family: Wind = eqx.field(static=True)

    def start(self) -> Blown:
        """Not felt yet."""
        return Blown(jnp.zeros(2), jnp.asarray(False))

    def act(self, memory: Blown, obs: Point, *, key: Key) -> Point:
        """The fewest steps to the goal; inside its disc, stand still."""
        family = self.family
        steps = steps_to_goal(family, obs, memory.wind)
        target = _nearest(family, obs, memory.wind, steps)
        move = (target - obs) / steps - memory.wind
        inside = jnp.linalg.norm(obs - jnp.asarray(GOAL)) <= family.goal_radius
        move = jnp.where(inside, -memory.wind, move)
        action = jnp.clip(move / family.step_size, -1.0, 1.0)
        return jnp.where(memory.known, action, self.first_action)

    def remember(self, memory: Blown, step: Transition) -> Blown:
        """The wind is what the action does not explain."""
        return Blown(felt_wind(self.family, step), jnp.asarray(True))


def felt_wind(wind: Wind, step: Transition) -> Point:
    """The part of a move that its action does not explain."""
    return step.next_obs - step.obs - wind.step_size * jnp.clip(step.action, -1.0, 1.0)
