"""Try a user's Gymnasium tasks, and say in one sentence what breaks their contract."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from borelax.errors import ConfigError, require, said
from borelax.tasks.family import all_tasks
from borelax.tasks.gym_rewards import Trial, check_reward
from borelax.tasks.gym_tasks import (
    ActionScale,
    GymTasks,
    import_gymnasium,
    reset_options,
)
from borelax.types import Box, Key

REAL = "biuf"
"""NumPy's letters for truth values, whole and real numbers."""


def check_gym_tasks(tasks: GymTasks, *, key: Key | None = None) -> None:
    """Try one environment and say in a sentence what breaks the contract.

    Runs a few episodes of random actions from every start. Raises ``ConfigError``;
    returns nothing.
    """
    task = _sample(tasks, jr.key(0) if key is None else key)
    env = make_env(tasks, task)
    try:
        _check_starts(tasks, task, env)
    finally:
        env.close()


def make_env(tasks: GymTasks, task: Any) -> Any:
    """The environment of a task, given as NumPy values; of the right kind."""
    as_numpy = jax.tree.map(lambda x: np.asarray(x)[()], task)
    try:
        env = tasks.make_env(as_numpy)
    except Exception as error:
        raise ConfigError(
            f"{tasks.name}: make_env fails on the task {as_numpy}: {said(error)}"
        ) from error
    _check_kind(tasks, env)
    _check_spaces(tasks, env)
    return env


def _check_starts(tasks: GymTasks, task: Any, env: Any) -> None:
    """Equal seeds give equal episodes from every start, paid as ``reward`` says."""
    for start in tasks.starts:
        trial = _try(tasks, env, start, seed=0)
        again = _try(tasks, env, start, seed=0)
        require(
            np.array_equal(trial.obs[0], again.obs[0]),
            f"{tasks.name}: two resets with equal seeds (start {start!r}) begin with "
            "different observations; draw everything random from env.np_random, and "
            "call super().reset(seed=seed).",
        )
        require(
            np.array_equal(trial.obs, again.obs)
            and np.array_equal(trial.rewards, again.rewards),
            f"{tasks.name}: equal seeds and actions (start {start!r}) lead to "
            "different steps; draw everything random from env.np_random, and let "
            "reset forget the episode before.",
        )
        for name in ("reward", "training_reward"):
            check_reward(tasks, name, task, trial)


def _sample(tasks: GymTasks, key: Key) -> Any:
    try:
        task = jax.jit(lambda key: tasks.sample_task(key=key))(key)
    except Exception as error:
        raise ConfigError(
            f"{tasks.name}: sample_task(key=…) must be written in JAX and give numbers "
            f"or arrays of them: {said(error)}"
        ) from error
    _check_numbers(tasks, "sample_task", task)
    if tasks.all_tasks is not None:
        _check_listed(tasks, task)
    return task


def _check_numbers(tasks: GymTasks, name: str, task: Any) -> None:
    leaves = jax.tree.leaves(task)
    require(len(leaves) > 0, f"{tasks.name}: {name} gives no number at all.")
    for leaf in leaves:
        number = leaf.dtype == bool or jnp.issubdtype(leaf.dtype, jnp.number)
        require(
            bool(number and jnp.isfinite(leaf).all()),
            f"{tasks.name}: {name} gives {leaf.dtype}{list(leaf.shape)} with more in "
            "it than finite numbers, which a task is made of.",
        )


def _check_listed(tasks: GymTasks, one: Any) -> None:
    """The tasks of ``all_tasks`` are like those of ``sample_task``."""
    listed = all_tasks(tasks)
    first = jax.tree.map(lambda x: x[0], listed)
    forms = [(jax.tree.structure(x), jax.tree.map(jnp.shape, x)) for x in (first, one)]
    require(
        forms[0] == forms[1],
        f"{tasks.name}: the tasks of all_tasks() have shapes {forms[0][1]}, those of "
        f"sample_task {forms[1][1]}; make them the same.",
    )
    _check_numbers(tasks, "all_tasks", listed)


def _check_kind(tasks: GymTasks, env: Any) -> None:
    gymnasium = import_gymnasium()
    require(
        isinstance(env, gymnasium.Env),
        f"{tasks.name}: make_env must give one gymnasium.Env, not "
        f"{type(env).__name__}; borelax runs many of them itself.",
    )
    horizon, layer = tasks.spec.horizon, env
    while layer is not None:
        require(
            not isinstance(layer, gymnasium.wrappers.Autoreset),
            f"{tasks.name}: the Autoreset wrapper hides how an episode ended; leave it "
            "out, borelax resets environments itself.",
        )
        limit = getattr(layer, "_max_episode_steps", None)
        require(
            limit is None or limit >= horizon,
            f"{tasks.name}: the environment's own time limit is {limit} steps, and "
            f"spec.horizon is {horizon}; make the horizon {limit} or the limit longer.",
        )
        layer = layer.env if isinstance(layer, gymnasium.Wrapper) else None


def _check_spaces(tasks: GymTasks, env: Any) -> None:
    spaces = import_gymnasium().spaces
    spec = tasks.spec
    space: Any = getattr(env, "action_space", None)
    if isinstance(spec.action, Box):
        require(
            isinstance(space, spaces.Box) and space.shape == (spec.action.size,),
            f"{tasks.name}: spec says Box({spec.action.size}) for actions, and the "
            f"environment's space is {space}.",
        )
        bounded = np.isfinite(space.low).all() and np.isfinite(space.high).all()
        require(
            bool(bounded),
            f"{tasks.name}: the action space has no bounds to scale [-1, 1] to; give "
            "its low and high finite numbers.",
        )
        return
    require(
        isinstance(space, spaces.Discrete) and int(space.n) == spec.action.num_actions,
        f"{tasks.name}: spec says Discrete({spec.action.num_actions}) for actions, and "
        f"the environment's space is {space}.",
    )


def _try(tasks: GymTasks, env: Any, start: str, *, seed: int) -> Trial:
    spec, scale = tasks.spec, ActionScale(tasks.spec, [env.action_space])
    keys = jr.split(jr.key(seed), spec.horizon)
    actions = np.asarray(jax.vmap(lambda k: spec.action.sample(key=k))(keys))
    obs, rewards = [_first(tasks, env, start, seed)], []
    for number, action in enumerate(actions, start=1):
        place = f"{tasks.name}: step {number} (start {start!r})"
        try:
            result = env.step(scale(action[None])[0])
        except Exception as error:
            raise ConfigError(f"{place} fails: {said(error)}") from error
        require(
            isinstance(result, tuple) and len(result) == 5,
            f"{place} must return observation, reward, terminated, truncated and info, "
            f"not {len(result) if isinstance(result, tuple) else type(result)}.",
        )
        seen, reward, terminated, truncated, info = result
        _check_obs(tasks, place, seen)
        require(
            _is_number(reward) and bool(np.isfinite(reward)),
            f"{place} pays {reward!r}, which is no finite number.",
        )
        require(
            _is_number(terminated) and _is_number(truncated),
            f"{place} must say with one truth value each whether the episode is "
            f"terminated and truncated, not {terminated!r} and {truncated!r}.",
        )
        require(
            isinstance(info, dict)
            and not {"final_obs", "final_observation"} & info.keys(),
            f"{place} must give a dict of information without final_obs: an "
            "environment that resets itself hides how an episode ended.",
        )
        obs.append(np.array(seen))
        rewards.append(float(reward))
        require(
            bool(not truncated or terminated or number >= spec.horizon),
            f"{place} is cut off (truncated) by the environment, and spec.horizon is "
            f"{spec.horizon}; make the horizon {number} or the limit longer.",
        )
        if terminated:
            break
    return Trial(np.stack(obs), actions[: len(rewards)], np.asarray(rewards))


def _first(tasks: GymTasks, env: Any, start: str, seed: int) -> np.ndarray:
    place = f"{tasks.name}: reset (start {start!r})"
    try:
        result = env.reset(seed=seed, options=reset_options(start))
    except Exception as error:
        raise ConfigError(f"{place} fails: {said(error)}") from error
    require(
        isinstance(result, tuple) and len(result) == 2,
        f"{place} must return an observation and a dict of information.",
    )
    _check_obs(tasks, place, result[0])
    return np.array(result[0])


def _check_obs(tasks: GymTasks, place: str, obs: Any) -> None:
    size, wanted = tasks.spec.obs_size, tasks.spec.obs_dtype
    try:
        obs = np.asarray(obs)
    except ValueError as error:  # rows of different lengths
        raise ConfigError(
            f"{place} gives an observation that is no array of {size} numbers "
            f"(gymnasium.wrappers.FlattenObservation): {said(error)}"
        ) from error
    require(
        obs.shape == (size,),
        f"{place} gives an observation of shape {obs.shape}, and spec.obs_size is "
        f"{size}: one row of numbers (gymnasium.wrappers.FlattenObservation).",
    )
    fits = obs.dtype == wanted or (wanted == "float32" and obs.dtype == np.float64)
    require(
        fits,
        f"{place} gives {obs.dtype} observations, and spec.obs_dtype is {wanted!r}; "
        "make them the same.",
    )
    require(
        bool(np.isfinite(obs).all()), f"{place} gives an observation with NaN or inf."
    )


def _is_number(x: Any) -> bool:
    """One number, or truth value, in Python's, NumPy's or JAX's form."""
    kinds = (bool, int, float, np.generic, np.ndarray, jax.Array)
    return isinstance(x, kinds) and np.ndim(x) == 0 and np.asarray(x).dtype.kind in REAL
