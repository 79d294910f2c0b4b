"""MuJoCo's physics against Gymnasium's environments, and who is missing."""

import os
import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from types import ModuleType

import gymnasium
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from borelax.errors import ConfigError
from borelax.simulate import mujoco_engine
from borelax.simulate.mujoco_engine import (
    BatchedSimulations,
    ThreadedSimulations,
    engine,
    load_model,
    mujoco_version,
    simulations,
)
from borelax.tasks.ant_semicircle import AntSemiCircle
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.tasks.mujoco_family import Physics

FAMILIES = {"Ant-v5": AntSemiCircle(), "HalfCheetah-v5": HalfCheetahVel()}
RANDOM = np.random.default_rng(0)


def some_rows(model, count: int) -> np.ndarray:
    """Poses near the default one, and velocities."""
    rows = 0.1 * RANDOM.standard_normal((count, model.nq + model.nv))
    rows[:, : model.nq] += model.qpos0
    return rows.astype(np.float32)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", FAMILIES)
def test_steps_are_those_of_gymnasium(name, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes what it says to a file
    if find_spec("imageio") is None:  # Gymnasium makes films with it, and we do not
        monkeypatch.setitem(sys.modules, "imageio", ModuleType("imageio"))
    family, env = FAMILIES[name], gymnasium.make(name).unwrapped
    model = load_model(family.model_file)
    rows, actions = some_rows(model, 4), RANDOM.uniform(-1, 1, (4, model.nu))
    physics = simulations(model, 4, 1)
    physics.begin(rows)
    moved = physics.step(actions, family.frame_skip)
    env.reset(seed=0)
    for row, action, after in zip(rows, actions, moved, strict=True):
        before = Physics(*map(jnp.asarray, np.split(row, [model.nq])))
        env.data.qacc_warmstart[:] = 0  # which set_state leaves as it was
        env.set_state(*np.split(row.astype(np.float64), [model.nq]))
        _, _, _, _, info = env.step(action)
        np.testing.assert_allclose(after[: model.nq], env.data.qpos, rtol=1e-6)
        np.testing.assert_allclose(after[model.nq :], env.data.qvel, rtol=1e-6)
        seen = family.observe(
            before, Physics(*np.split(jnp.asarray(after), [model.nq]))
        )
        if name == "HalfCheetah-v5":
            np.testing.assert_allclose(seen[-1], info["x_velocity"], atol=1e-5)
    assert env.frame_skip == family.frame_skip
    assert not load_model(family.model_file).qpos0[:2].any()


@pytest.mark.parametrize("kind", [BatchedSimulations, ThreadedSimulations])
@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda f: f.name)
def test_threads_and_batches_change_no_bit(family, kind) -> None:
    model = load_model(family.model_file)
    rows, actions = some_rows(model, 5), RANDOM.uniform(-1, 1, (6, 5, model.nu))

    def end(simulations) -> list[np.ndarray]:
        simulations.begin(some_rows(model, 5))  # an earlier episode must not show
        simulations.step(actions[0], 5)
        simulations.begin(rows)
        return [simulations.step(action, 5) for action in actions]

    alone = end(BatchedSimulations(model, 5, 1))
    for threads in (1, 2):
        np.testing.assert_array_equal(end(kind(model, 5, threads)), alone)


@pytest.mark.parametrize("kind", [BatchedSimulations, ThreadedSimulations])
def test_warnings_are_counted_and_forgotten(kind, tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    model = load_model("half_cheetah.xml")
    physics, rows = kind(model, 2, 1), np.zeros((2, 18), np.float32)
    physics.begin(rows)
    physics.step(np.zeros((2, 6)), 1)
    assert not physics.warnings().any()
    rows[1, 9:] = 1e11
    physics.begin(rows)
    physics.step(np.zeros((2, 6)), 1)
    ((simulation, number),) = np.argwhere(physics.warnings())
    assert simulation == 1 and mujoco_engine.warning_name(int(number)) == "BADQVEL"
    physics.begin(np.zeros((2, 18), np.float32))
    assert not physics.warnings().any()


def test_older_mujocos_are_threaded_by_python(monkeypatch) -> None:
    model = load_model("half_cheetah.xml")
    assert isinstance(simulations(model, 1, 0), BatchedSimulations)
    monkeypatch.setitem(sys.modules, "mujoco.batch", None)
    monkeypatch.setattr(mujoco_engine, "find_spec", lambda name: None)
    assert isinstance(simulations(model, 1, 0), ThreadedSimulations)


def test_models_load_in_silence_and_once(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    mujoco_engine._load.cache_clear()
    model = load_model("half_cheetah.xml")
    assert load_model("half_cheetah.xml") is model
    assert capfd.readouterr().err == "" and os.listdir() == []
    assert mujoco.get_mju_user_warning() is None


def test_models_of_ones_own_are_given_by_path(tmp_path, monkeypatch) -> None:
    path = tmp_path / "ball.xml"
    path.write_text(
        "<mujoco><worldbody><body><freejoint/><geom size='1'/></body>"
        "</worldbody></mujoco>"
    )
    assert load_model(str(path)).nq == 7
    monkeypatch.chdir(tmp_path)
    assert load_model("ball.xml").nq == 7
    before = engine("ball.xml")
    path.write_text(path.read_text().replace("<freejoint/>", "<joint/>"))
    assert load_model("ball.xml").nq == 1, "read again where the file has changed"
    assert engine("ball.xml") != before
    path.with_name("torn.xml").write_text("<mujoco><worldbody>")
    with pytest.raises(ConfigError, match=r"cannot read the model .*torn\.xml: .*XML"):
        load_model("torn.xml")
    with pytest.raises(ConfigError, match=r"There is no MuJoCo model .*moon\.xml"):
        load_model("moon.xml")


def test_a_model_is_all_that_it_reads(tmp_path) -> None:
    path = tmp_path / "many.xml"
    (tmp_path / "shapes").mkdir()
    path.write_text(
        "<mujoco><compiler meshdir='shapes'/><include file='joint.xml'/><asset>"
        "<mesh name='rock' file='rock.obj'/></asset></mujoco>"
    )
    included = tmp_path / "joint.xml"
    included.write_text(
        "<mujoco><worldbody><body><joint/><geom type='mesh' mesh='rock'/></body>"
        "</worldbody></mujoco>"
    )
    rock = tmp_path / "shapes" / "rock.obj"
    faces = "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    rock.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n" + faces)
    mass = load_model(str(path)).body_mass[1]
    engines = {engine(str(path))}
    rock.write_text("v 0 0 0\nv 2 0 0\nv 0 1 0\nv 0 0 1\n" + faces)
    os.utime(rock, (1, 1))  # MuJoCo keeps meshes until their time changes
    assert np.isclose(load_model(str(path)).body_mass[1], 2 * mass)
    engines.add(engine(str(path)))
    included.write_text(included.read_text().replace("<joint/>", "<freejoint/>"))
    assert load_model(str(path)).nv == 6
    assert len(engines | {engine(str(path))}) == 3
    rock.unlink()
    with pytest.raises(ConfigError, match=r"cannot read the model .*rock\.obj"):
        load_model(str(path))


@pytest.mark.parametrize("package", ["mujoco", "gymnasium"])
def test_a_missing_package_is_named(monkeypatch, package: str) -> None:
    mujoco_engine._load.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    if package == "gymnasium":
        monkeypatch.setattr(mujoco_engine, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=rf"{package}.* pip install borelax\[mujoco]"):
        load_model("ant.xml")


def test_a_missing_mujoco_has_no_version(monkeypatch) -> None:
    assert mujoco_version() == mujoco.__version__

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(mujoco_engine, "version", missing)
    with pytest.raises(ConfigError, match=r"pip install borelax\[mujoco]"):
        mujoco_version()
