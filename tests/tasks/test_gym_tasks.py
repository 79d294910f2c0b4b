"""The check of a user's Gymnasium tasks: what breaks the contract is told in words."""

import sys
from dataclasses import replace

import gymnasium
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from gymnasium import spaces

from borelax.errors import ConfigError
from borelax.tasks.gym_check import check_gym_tasks
from borelax.types import Box, Discrete
from tests.simulate.gym_worlds import FALL, FAMILY, TWIN, SemiCircleEnv


def env(**members):
    """A twin of Semi-circle with some members replaced."""
    return replace(TWIN, make_env=type("Changed", (SemiCircleEnv,), members))


def after(change):
    """A twin whose steps give ``change`` of what they should."""
    return env(step=lambda self, a: change(*SemiCircleEnv.step(self, a)))


def seen(change):
    """A twin whose resets give ``change`` of the observation they should."""

    def reset(self, **given):
        obs, info = SemiCircleEnv.reset(self, **given)
        return change(obs), info

    return env(reset=reset)


class Restless(SemiCircleEnv):
    """Reset does not forget: every episode begins where the one before stopped."""

    place = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        return self.place, {}


class Shaky(SemiCircleEnv):
    """Its steps are random, and no seed decides them."""

    rng = np.random.default_rng(0)

    def step(self, action):
        action = np.clip(action * self.rng.uniform(), -0.1, 0.1).astype(np.float32)
        return super().step(action)


def wrapped(wrap):
    return replace(TWIN, make_env=lambda goal: wrap(SemiCircleEnv(goal)))


def fails(*given, **named):
    raise RuntimeError("no such thing\nand more")


def vector(goal):
    return gymnasium.vector.SyncVectorEnv([lambda: SemiCircleEnv(goal)])


WIDE = spaces.Box(-np.inf, np.inf, (2,), np.float32)
BROKEN = {
    "sample_task is not JAX": (
        replace(TWIN, sample_task=lambda key: np.float32(float(key[0]))),
        r"sample_task\(key=…\) must be written in JAX",
    ),
    "sample_task has another argument": (
        replace(TWIN, sample_task=lambda seed: seed),
        r"sample_task\(key=…\) must be written in JAX",
    ),
    "a task of nan": (
        replace(TWIN, sample_task=lambda key: jnp.float32(jnp.nan)),
        r"sample_task gives float32\[\] with more in it than finite numbers",
    ),
    "a task that is a key": (
        replace(TWIN, sample_task=lambda key: key),
        r"sample_task gives key<fry>\[\] with more in it than finite numbers",
    ),
    "no numbers": (replace(TWIN, sample_task=lambda key: ()), "gives no number at all"),
    "tasks in a list": (
        replace(TWIN, all_tasks=lambda: [0.5, 1.0]),
        r"all_tasks\(\) must give arrays, the tasks along their first axis",
    ),
    "all_tasks fails": (
        replace(TWIN, all_tasks=fails),
        r"all_tasks\(\) must give arrays.* RuntimeError: no such thing",
    ),
    "tasks of another shape": (
        replace(TWIN, all_tasks=lambda: jnp.zeros((4, 3))),
        r"tasks of all_tasks\(\) have shapes \(3,\), those of sample_task \(2,\)",
    ),
    "listed nan": (
        replace(TWIN, all_tasks=lambda: jnp.full((4, 2), jnp.nan)),
        r"all_tasks gives float32\[4, 2\] with more in it than finite numbers",
    ),
    "make_env fails": (
        replace(TWIN, make_env=fails),
        "make_env fails on the task .*: RuntimeError: no such thing",
    ),
    "no environment": (
        replace(TWIN, make_env=lambda goal: goal),
        "must give one gymnasium.Env, not ndarray",
    ),
    "many environments": (
        replace(TWIN, make_env=vector),
        "must give one gymnasium.Env, not SyncVectorEnv",
    ),
    "resets itself": (
        wrapped(gymnasium.wrappers.Autoreset),
        "the Autoreset wrapper hides how an episode ended",
    ),
    "short limit": (
        wrapped(lambda e: gymnasium.wrappers.TimeLimit(e, 4)),
        "own time limit is 4 steps, and spec.horizon is 6",
    ),
    "cuts off": (
        after(lambda o, r, t, u, i: (o, r, t, True, i)),
        r"step 1 \(start 'fixed'\) is cut off \(truncated\).*make the horizon 1",
    ),
    "action size": (
        replace(TWIN, spec=replace(TWIN.spec, action=Box(3))),
        r"spec says Box\(3\) for actions, and the environment's space is Box",
    ),
    "action kind": (
        replace(TWIN, spec=replace(TWIN.spec, action=Discrete(2))),
        r"spec says Discrete\(2\) for actions",
    ),
    "action number": (
        replace(FALL, spec=replace(FALL.spec, action=Discrete(4))),
        r"spec says Discrete\(4\) for actions, and the environment's space is Disc",
    ),
    "no bounds": (
        env(action_space=WIDE),
        r"no bounds to scale \[-1, 1\] to; give its low and high finite numbers",
    ),
    "no action space": (
        replace(TWIN, make_env=lambda goal: gymnasium.Env()),
        "the environment's space is None",
    ),
    "obs size": (
        replace(TWIN, spec=replace(TWIN.spec, obs_size=3)),
        r"gives an observation of shape \(2,\), and spec.obs_size is 3",
    ),
    "obs dtype": (
        replace(TWIN, spec=replace(TWIN.spec, obs_dtype="uint8")),
        "gives float32 observations, and spec.obs_dtype is 'uint8'",
    ),
    "whole numbers": (
        seen(lambda obs: obs.astype(int)),
        "gives int64 observations, and spec.obs_dtype is 'float32'",
    ),
    "nan": (seen(lambda obs: obs * np.nan), "gives an observation with NaN or inf"),
    "nan later": (
        after(lambda o, *x: (o + np.inf, *x)),
        "step 1 .* gives an observation with NaN or inf",
    ),
    "reset of one": (
        env(reset=lambda self, **given: SemiCircleEnv.reset(self, **given)[0]),
        "must return an observation and a dict|gives an observation of shape",
    ),
    "reset fails": (env(reset=fails), "reset .start 'fixed'. fails: RuntimeError: no"),
    "step fails": (env(step=fails), "step 1 .start 'fixed'. fails: RuntimeError: no"),
    "old step": (after(lambda o, r, t, u, i: (o, r, t, i)), "and info, not 4"),
    "reward of nan": (
        after(lambda o, r, *x: (o, np.nan, *x)),
        "pays nan, which is no finite number",
    ),
    "reward of two": (
        after(lambda o, r, *x: (o, np.zeros(2), *x)),
        "which is no finite number",
    ),
    "reward of none": (
        after(lambda o, r, *x: (o, None, *x)),
        "pays None, which is no finite number",
    ),
    "complex reward": (
        after(lambda o, r, *x: (o, np.complex64(1j), *x)),
        "which is no finite number",
    ),
    "many ends": (
        after(lambda o, r, t, u, i: (o, r, np.zeros(2, bool), u, i)),
        "must say with one truth value each whether the episode is terminated",
    ),
    "ends without a word": (
        after(lambda o, r, t, u, i: (o, r, None, u, i)),
        "must say with one truth value each whether the episode is terminated",
    ),
    "resets in a step": (
        after(lambda o, r, t, u, i: (o, r, t, u, {"final_obs": o})),
        "an environment that resets itself hides how an episode ended",
    ),
    "ragged": (
        seen(lambda obs: (obs, obs[:1])),
        "gives an observation that is no array of 2 numbers",
    ),
    "a dictionary": (
        seen(lambda obs: {"place": obs}),
        r"gives an observation of shape \(\), and spec.obs_size is 2",
    ),
    "unseeded resets": (
        replace(TWIN, make_env=Restless),
        "two resets with equal seeds .* begin with different observations",
    ),
    "unseeded steps": (
        replace(TWIN, make_env=Shaky),
        "equal seeds and actions .* lead to different steps",
    ),
    "other reward": (
        after(lambda o, r, *x: (o, r + 1, *x)),
        r"disagrees with the environment on 6 of 6 steps: the first time it says \d",
    ),
    "reward is not JAX": (
        replace(TWIN, reward=lambda task, step: float(step.next_obs[0])),
        r"reward\(task, step\) must be written in JAX",
    ),
    "reward is whole": (
        replace(TWIN, reward=lambda task, step: jnp.int32(0)),
        r"reward\(task, step\) must give a float32 scalar, not int32\[\]",
    ),
    "training reward is a row": (
        replace(TWIN, training_reward=lambda task, step: step.next_obs),
        r"training_reward\(task, step\) must give a float32 scalar, not float32\[2\]",
    ),
}


@pytest.mark.parametrize(("tasks", "sentence"), BROKEN.values(), ids=BROKEN)
@pytest.mark.filterwarnings("ignore:.*Box.*precision")
def test_what_breaks_the_contract_is_told(tasks, sentence):
    with pytest.raises(ConfigError, match=sentence) as refused:
        check_gym_tasks(tasks)
    assert str(refused.value).startswith(tasks.name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("tasks", [TWIN, FALL], ids=lambda t: t.name)
def test_what_keeps_the_contract_passes(tasks):
    check_gym_tasks(tasks)
    check_gym_tasks(replace(tasks, reward=None), key=jr.key(5))
    check_gym_tasks(replace(tasks, training_reward=tasks.reward))


def test_a_limit_as_long_as_the_horizon_is_no_surprise():
    check_gym_tasks(wrapped(lambda e: gymnasium.wrappers.TimeLimit(e, 6)))


def test_observations_in_double_precision_will_do():
    check_gym_tasks(seen(lambda obs: obs.astype(np.float64)))


def test_without_gymnasium_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ConfigError, match=r"pip install 'borelax\[gym\]'"):
        check_gym_tasks(replace(TWIN, make_env=lambda goal: object()))


def test_the_twin_stands_for_the_family():
    assert TWIN.spec == FAMILY.spec and TWIN.differs_in == FAMILY.differs_in
