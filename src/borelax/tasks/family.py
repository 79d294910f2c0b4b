"""A task family: the distribution of tasks, as pure functions of one task and step.

A user's own domain enters borelax here: write a frozen dataclass with these methods
and call ``check_family`` on it.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from borelax.errors import ConfigError, require, said
from borelax.tasks.gym_tasks import GymTasks
from borelax.types import Key, Spec, Transition, axis_size

Task = Any
"""A pytree of numbers: a goal, a speed, a wind."""
State = Any
"""A pytree: whatever the dynamics need."""


@runtime_checkable
class TaskDistribution(Protocol):
    """What every family has, whatever simulates it: its tasks and their rewards."""

    starts: ClassVar[tuple[str, ...]]
    """Names of the start distributions; ``fixed`` is the one used in the test."""
    differs_in: ClassVar[str]
    """What sets tasks apart: ``rewards``, or ``transitions`` (or both). Rewards can be
    relabelled only where other tasks' steps could have happened in this one."""

    @property
    def spec(self) -> Spec:
        """Sizes, horizon and episodes per rollout."""
        ...

    def sample_task(self, *, key: Key) -> Task:
        """Draw one task."""
        ...

    def reward(self, task: Task, step: Transition) -> Float[Array, ""]:
        """The reward of a logged step; simulation and relabelling both call it."""
        ...


@runtime_checkable
class TaskFamily(TaskDistribution, Protocol):
    """p(R, P): how tasks are drawn and how each one behaves, in JAX."""

    def reset(self, task: Task, start: str, *, key: Key) -> State:
        """Draw a first state from the named start distribution."""
        ...

    def step(self, task: Task, state: State, action: Array, *, key: Key) -> State:
        """One step of the dynamics."""
        ...

    def observe(self, state: State) -> Float[Array, "obs"]:
        """What the agent sees. There is no task argument: nothing leaks."""
        ...


@runtime_checkable
class ShapedFamily(Protocol):
    """A family whose reward is too sparse to learn from without knowing the task.

    Agents that collect logs learn from ``training_reward``; the logs hold ``reward``.
    """

    def training_reward(self, task: Task, step: Transition) -> Float[Array, ""]:
        """A denser reward of a logged step."""
        ...


def all_tasks(family: TaskDistribution | GymTasks) -> Task | None:
    """Every task [N] in a fixed order, of a family that has an ``all_tasks``.

    Such a family has few enough tasks to use each exactly once. None: it has not.
    """
    listed = getattr(family, "all_tasks", None)
    if listed is None:
        return None
    try:
        tasks = listed()
        axis_size(tasks)
    except Exception as error:
        raise ConfigError(
            f"{name_of(family)}: all_tasks() must give arrays, the tasks along their "
            f"first axis. {said(error)}"
        ) from error
    return tasks


def name_of(family: TaskDistribution | GymTasks) -> str:
    """What a family is called: its ``name``, or else its class's."""
    return getattr(family, "name", type(family).__name__)


def draw_tasks(
    family: TaskDistribution | GymTasks, num_tasks: int, *, key: Key
) -> Task:
    """Draw ``num_tasks`` tasks; the first n never depend on how many follow.

    A family that lists its tasks gives them in their own order, so asking for all of
    them gives each once. Others are sampled, each task from its own key.
    """
    require(num_tasks >= 1, f"At least one task is needed, not {num_tasks}.")
    listed = all_tasks(family)
    if listed is not None:
        available = axis_size(listed)
        require(
            num_tasks <= available,
            f"{name_of(family)} has {available} tasks, fewer than the "
            f"{num_tasks} asked for; ask for at most {available}.",
        )
        return jax.tree.map(lambda x: x[:num_tasks], listed)
    keys = jax.vmap(lambda i: jr.fold_in(key, i))(jnp.arange(num_tasks))
    return jax.vmap(lambda k: family.sample_task(key=k))(keys)


def refuse_repeats(family: TaskDistribution | GymTasks, tasks: Task) -> None:
    """Refuse tasks [N] of which two are the same.

    A task would borrow from itself where it should from others.
    """
    seen: dict[bytes, int] = {}
    rows = [np.asarray(x) for x in jax.tree.leaves(tasks)]
    remedy = "where there are only so many, list them with all_tasks"
    if all_tasks(family) is not None:
        remedy = "all_tasks must list each once"
    for n in range(axis_size(tasks)):
        first = seen.setdefault(b"".join(row[n].tobytes() for row in rows), n)
        require(
            first == n, f"{name_of(family)}: tasks {first} and {n} are equal; {remedy}."
        )


def check_family(family: TaskFamily, *, key: Key | None = None) -> None:
    """Try a family on one task and say in a sentence what breaks its contract.

    Checks shapes, dtypes, finite values, that equal keys give equal results, and that
    the family can be traced by JAX. Raises ``ConfigError``; returns nothing.
    """
    key = jr.key(0) if key is None else key
    name = type(family).__name__
    spec = family.spec
    require(spec.horizon >= 1, f"{name}.spec.horizon must be at least 1.")
    require(spec.episodes >= 1, f"{name}.spec.episodes must be at least 1.")
    require("fixed" in family.starts, f"{name}.starts must contain 'fixed'.")
    require(
        family.differs_in in ("rewards", "transitions"),
        f"{name}.differs_in must be 'rewards' or 'transitions', "
        f"not {family.differs_in!r}.",
    )
    try:
        hash(family)  # a family is a static argument of compiled functions
    except TypeError as error:
        raise ConfigError(
            f"{name} cannot be hashed; make it a frozen dataclass of plain values."
        ) from error
    for start in family.starts:
        _check_start(family, name, start, key=key)


def _check_start(family: TaskFamily, name: str, start: str, *, key: Key) -> None:
    size = family.spec.obs_size

    def one_step(key: Key) -> tuple[Array, Array]:
        key_task, key_reset, key_action, key_step = jr.split(key, 4)
        task = family.sample_task(key=key_task)
        state = family.reset(task, start, key=key_reset)
        action = family.spec.action.sample(key=key_action)
        after = family.step(task, state, action, key=key_step)
        require(
            _form(state) == _form(after),
            f"{name}.step must keep the state's structure, shapes and dtypes.",
        )
        obs, next_obs = family.observe(state), family.observe(after)
        require(
            next_obs.shape == (size,) and next_obs.dtype == jnp.float32,
            f"{name}.observe must give float32[{size}], "
            f"not {next_obs.dtype}{list(next_obs.shape)}.",
        )
        reward = family.reward(task, Transition(obs, action, jnp.zeros(()), next_obs))
        return next_obs, jnp.asarray(reward)

    obs, reward = jax.jit(one_step)(key)
    require(
        reward.shape == () and reward.dtype == jnp.float32,
        f"{name}.reward must give a float32 scalar, "
        f"not {reward.dtype}{list(reward.shape)}.",
    )
    finite = bool(jnp.isfinite(obs).all() & jnp.isfinite(reward))
    require(finite, f"{name} gives NaN or infinity after one random step.")
    # a new function, so that JAX traces the family again and does not reuse the trace
    again = jax.jit(lambda key: one_step(key))(key)
    require(
        bool(jnp.array_equal(again[0], obs) & jnp.array_equal(again[1], reward)),
        f"{name} gives different results for equal keys.",
    )


def _form(state: State) -> Any:
    """Structure, shapes and dtypes of a pytree."""
    leaves, structure = jax.tree.flatten(state)
    return structure, [(jnp.shape(x), jnp.result_type(x)) for x in leaves]
