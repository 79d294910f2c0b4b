"""The contract of a family, and how broken ones are told so."""

import itertools
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.tasks.family import (
    TaskFamily,
    check_family,
    draw_tasks,
    refuse_repeats,
)
from borelax.tasks.gridworld import Gridworld
from borelax.types import Box, Spec, Transition


@dataclass(frozen=True)
class Points:
    """Points in the plane, each a task: endless in number. Each breaks one rule."""

    starts: ClassVar[tuple[str, ...]] = ("fixed",)
    differs_in: ClassVar[str] = "rewards"

    @property
    def spec(self) -> Spec:
        return Spec(obs_size=2, action=Box(2), horizon=3, episodes=2)

    def sample_task(self, *, key) -> jax.Array:
        return jr.normal(key, (2,))

    def reset(self, task, start, *, key):
        return jnp.zeros(2)

    def step(self, task, state, action, *, key):
        return state + 0.1 * action

    def observe(self, state):
        return state

    def reward(self, task, step: Transition):
        return -jnp.abs(step.next_obs - task).sum()


class WrongSize(Points):
    def observe(self, state):
        return jnp.zeros(3)


class IntegerObservation(Points):
    def observe(self, state):
        return state.astype(jnp.int32)


class NaNReward(Points):
    def reward(self, task, step):
        return jnp.log(-1.0 - task[0] ** 2)


class InfiniteObservation(Points):
    def observe(self, state):
        return state / 0.0


class IntegerReward(Points):
    def reward(self, task, step):
        return (step.next_obs[0] > 0).astype(jnp.int32)


class RewardPerAxis(Points):
    def reward(self, task, step):
        return step.next_obs


class OtherDtype(Points):
    def step(self, task, state, action, *, key):
        return (10 * action).astype(jnp.int32)


class OtherStructure(Points):
    def step(self, task, state, action, *, key):
        return state, action


class NoTestStart(Points):
    starts = ("uniform",)


class DiffersInWhat(Points):
    differs_in = "winds"


@dataclass(frozen=True)
class NotHashable(Points):
    walls: list = field(default_factory=list)


COUNTER = itertools.count()


class OutsideRandomness(Points):
    def step(self, task, state, action, *, key):
        return state + next(COUNTER)


@dataclass(frozen=True)
class Horizon(Points):
    horizon: int = 0
    episodes: int = 1

    @property
    def spec(self) -> Spec:
        return Spec(2, Box(2), self.horizon, self.episodes)


@pytest.mark.parametrize("family", [Gridworld(), Gridworld(3), Points(), Horizon(1)])
def test_sound_families_pass(family: TaskFamily) -> None:
    assert check_family(family) is None


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        (WrongSize(), r"WrongSize.observe must give float32\[2\], not float32\[3\]"),
        (IntegerObservation(), r"must give float32\[2\], not int32\[2\]"),
        (NaNReward(), "NaNReward gives NaN or infinity"),
        (InfiniteObservation(), "InfiniteObservation gives NaN or infinity"),
        (IntegerReward(), r"IntegerReward.reward .* float32 scalar, not int32\[\]"),
        (RewardPerAxis(), r"RewardPerAxis.reward .* scalar, not float32\[2\]"),
        (OtherDtype(), "OtherDtype.step must keep .* dtypes"),
        (OtherStructure(), "OtherStructure.step must keep the state's structure"),
        (NoTestStart(), "NoTestStart.starts must contain 'fixed'"),
        (
            DiffersInWhat(),
            "DiffersInWhat.differs_in must be 'rewards' or 'transitions', not 'winds'",
        ),
        (NotHashable(), "NotHashable cannot be hashed; make it a frozen dataclass"),
        (OutsideRandomness(), "OutsideRandomness gives different results for equal"),
        (Horizon(0), "Horizon.spec.horizon must be at least 1"),
        (Horizon(1, 0), "Horizon.spec.episodes must be at least 1"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_broken_families_are_refused_in_a_sentence(family, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_family(family)


def test_tasks_that_repeat_are_refused() -> None:
    pairs = (jnp.array([1, 2, 1]), jnp.array([[0.5, 1], [0.5, 1], [0.5, 2]]))
    refuse_repeats(Points(), pairs)
    with pytest.raises(ConfigError, match=r"tasks 0 and 2 are equal; .* list them"):
        refuse_repeats(Points(), pairs[0])
    with pytest.raises(ConfigError, match="must list each once"):
        refuse_repeats(Gridworld(), pairs[0])


def test_finite_family_gives_every_task_once_and_no_more() -> None:
    grid, key = Gridworld(), jr.key(0)
    assert draw_tasks(grid, 21, key=key).tolist() == grid.goals().tolist()
    with pytest.raises(ConfigError, match="has 21 tasks, fewer than the 22 asked for"):
        draw_tasks(grid, 22, key=key)


@pytest.mark.parametrize("family", [Gridworld(), Points()])
def test_no_tasks_are_refused(family: TaskFamily) -> None:
    for count in (0, -1):
        with pytest.raises(ConfigError, match=f"At least one task .* not {count}"):
            draw_tasks(family, count, key=jr.key(0))


@pytest.mark.parametrize("family", [Gridworld(), Points()])
def test_more_tasks_leave_the_first_ones_unchanged(family: TaskFamily) -> None:
    few, many = (draw_tasks(family, n, key=jr.key(5)) for n in (3, 20))
    np.testing.assert_array_equal(few, many[:3])
    assert len(np.unique(np.asarray(many), axis=0)) == 20


def test_endless_families_draw_by_the_key() -> None:
    one, other = (draw_tasks(Points(), 4, key=jr.key(k)) for k in (0, 1))
    assert not np.isin(one, other).any()
