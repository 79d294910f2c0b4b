"""Models of one's own: their controls, and a family that runs through the pipeline."""

from dataclasses import dataclass, replace
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.pipeline import Pipeline
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.simulate import mujoco_simulator
from borelax.simulate.mujoco_engine import load_model
from borelax.simulate.mujoco_simulator import MujocoSimulator
from borelax.simulate.policy import RandomPolicy
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.types import Box, Spec


@dataclass(frozen=True)
class TooManyLegs(HalfCheetahVel):
    @property
    def spec(self) -> Spec:
        return Spec(18, Box(8), 3, 1)


def test_actions_must_fit_the_model() -> None:
    with pytest.raises(ConfigError, match=r"TooManyLegs.* must be Box\(6\)"):
        MujocoSimulator(TooManyLegs()).rollouts(
            RandomPolicy(Box(8)),
            jnp.ones(1),
            repeats=1,
            episodes=1,
            start="fixed",
            key=jr.key(0),
        )


SLIDE = (
    "<mujoco><worldbody><body><joint name='j' type='slide'/><geom size='1'/>"
    "</body></worldbody><actuator><motor joint='j' ctrllimited='true' "
    "ctrlrange='2 6'/><motor joint='j'/></actuator></mujoco>"
)


@dataclass(frozen=True)
class Slide:
    """A user's own: a mass on a rail, to be held at a hidden place."""

    starts = ("fixed",)
    differs_in = "rewards"
    model_file = "slide.xml"
    frame_skip = 2
    spec = Spec(2, Box(2), 3, 2)

    def sample_task(self, *, key):
        return jr.uniform(key)

    def reset(self, task, start, default, *, key):
        return default

    def observe(self, before, after):
        return jnp.concatenate([after.qpos, after.qvel])

    def reward(self, task, step):
        return -jnp.abs(step.next_obs[0] - task)


def test_a_family_of_ones_own_is_collected_from(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slide.xml").write_text(SLIDE)
    tiny = preset("half-cheetah-vel", "tiny")
    pipeline = Pipeline(replace(tiny, family=Slide()), tmp_path / "run", Quiet())
    made = pipeline.logs.episodes
    assert made.obs.shape == (3, 4, 2, 4, 2)
    away = np.abs(made.obs[..., 1:, 0] - pipeline.train_tasks()[:, None, None, None])
    np.testing.assert_allclose(made.reward, -away, rtol=1e-6)


def test_controls_are_the_models_own(tmp_path) -> None:
    path = tmp_path / "slide.xml"
    path.write_text(SLIDE)
    family = type("Slide", (TooManyLegs,), {"spec": Spec(18, Box(2), 3, 1)})()
    scale = mujoco_simulator._scaling(family, load_model(str(path)))
    controls = scale(np.array([[[-1.0, 0.5]], [[0.5, 7.0]], [[9.0, -1.0]]]))
    np.testing.assert_array_equal(controls, [[2, 0.5], [5, 1], [6, -1]])
