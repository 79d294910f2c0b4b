"""A user's own Gymnasium environments as a family: one environment per task.

Fill in ``GymTasks``; ``check_gym_tasks`` (in ``gym_check.py``) says in a sentence what
breaks its contract, which docs/your-environment.md explains.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Array

from borelax.errors import ConfigError, require
from borelax.types import Box, Discrete, Spec, Transition

CODE = {"code": True}
"""Marks fields that hold code. Files cannot, and know such tasks by their name."""


@dataclass(frozen=True)
class GymTasks:
    """A distribution of tasks, each a Gymnasium environment."""

    name: str
    """What a run's files call these tasks. Change it when the code behind it changes:
    a run that was begun under a name goes on under it."""
    make_env: Callable[[Any], Any] = field(metadata=CODE)
    """A task, as NumPy numbers or arrays, → its ``gymnasium.Env``."""
    sample_task: Callable[..., Any] = field(metadata=CODE)
    """``sample_task(key=…)`` → one task, a pytree of numbers; in JAX, so that it can be
    mapped over keys."""
    spec: Spec
    """Sizes, horizon and episodes per rollout."""
    reward: Callable[[Any, Transition], Array] | None = field(
        default=None, metadata=CODE
    )
    """``reward(task, step)`` of a logged step, in JAX: a float32 scalar, the same that
    the environment pays. None: rewards cannot be relabelled."""
    training_reward: Callable[[Any, Transition], Array] | None = field(
        default=None, metadata=CODE
    )
    """A denser reward, in JAX, that agents learn from while they collect logs."""
    all_tasks: Callable[[], Any] | None = field(default=None, metadata=CODE)
    """``all_tasks()`` → every task, stacked, where they can be listed: each is then
    used once, in training and in the test, and none is sampled."""
    differs_in: str = "rewards"
    """What sets tasks apart: ``rewards``, or ``transitions`` (or both)."""
    starts: tuple[str, ...] = ("fixed",)
    """Start distributions. ``fixed`` is a plain reset, and the test's; any other is
    asked for by ``env.reset(options={"start": …})``."""

    def __post_init__(self) -> None:
        """Refuse what no environment could repair."""
        require(
            isinstance(self.name, str) and self.name != "",
            f"GymTasks.name must be a word, not {self.name!r}.",
        )
        optional_code = ("reward", "training_reward", "all_tasks")
        for code in ("make_env", "sample_task", *optional_code):
            value = getattr(self, code)
            optional = value is None and code in optional_code
            require(
                callable(value) or optional,
                f"GymTasks.{code} must be a function, not {value!r}.",
            )
        require(
            isinstance(self.spec, Spec),
            f"GymTasks.spec must be a borelax Spec, not {self.spec!r}.",
        )
        require(
            isinstance(self.spec.action, Box | Discrete),
            "GymTasks.spec.action must be borelax.Box(size) or borelax.Discrete(n), "
            f"not {self.spec.action!r}.",
        )
        require(
            self.spec.obs_dtype in ("float32", "uint8"),
            "GymTasks.spec.obs_dtype must be 'float32' or 'uint8', not "
            f"{self.spec.obs_dtype!r}.",
        )
        require(
            self.spec.obs_size >= 1
            and self.spec.horizon >= 1
            and self.spec.episodes >= 1,
            "GymTasks.spec must have at least one observation, step and episode.",
        )
        require(
            self.differs_in in ("rewards", "transitions"),
            "GymTasks.differs_in must be 'rewards' or 'transitions', not "
            f"{self.differs_in!r}.",
        )
        require(
            isinstance(self.starts, tuple) and "fixed" in self.starts,
            "GymTasks.starts must be a tuple of names with 'fixed' among them, not "
            f"{self.starts!r}.",
        )


class ActionScale:
    """From borelax's actions to those of each of K environments."""

    def __init__(self, spec: Spec, spaces: list[Any]):
        """The spaces were checked: boxes with bounds, or numbers from a start on."""
        self.boxed = isinstance(spec.action, Box)
        if self.boxed:
            self.low = np.stack([np.asarray(space.low, np.float32) for space in spaces])
            self.high = np.stack([np.asarray(s.high, np.float32) for s in spaces])
            self.centre = 0.5 * (self.low + self.high)
            self.half = 0.5 * (self.high - self.low)
        else:
            self.first = np.asarray([space.start for space in spaces])

    def __call__(self, actions: np.ndarray) -> np.ndarray:
        """[-1, 1] per axis to an environment's own bounds; numbers from its first."""
        if not self.boxed:
            return actions + self.first
        moved = self.centre + self.half * np.clip(actions, -1.0, 1.0)
        return np.clip(moved, self.low, self.high)


def reset_options(start: str) -> dict[str, str] | None:
    """What ``env.reset`` is told of a start."""
    return None if start == "fixed" else {"start": start}


def import_gymnasium() -> ModuleType:
    """Gymnasium, which is an extra."""
    try:
        import gymnasium
    except ImportError as error:
        raise ConfigError(
            "GymTasks need Gymnasium, which is not installed: "
            "pip install 'borelax[gym]'."
        ) from error
    return gymnasium
