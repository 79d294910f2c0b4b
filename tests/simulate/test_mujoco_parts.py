"""The tasks of a MuJoCo simulation in parts, each on a thread of its own."""

from dataclasses import dataclass
from unittest.mock import Mock

import equinox as eqx
import pytest

from borelax.simulate import mujoco_engine, mujoco_simulator
from borelax.simulate.mujoco_simulator import divide
from borelax.simulate.policy import RandomPolicy
from borelax.tasks.half_cheetah_vel import HalfCheetahVel
from borelax.types import Box
from tests.simulate.mujoco_runs import FAMILIES, agents, noting, run


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_threads_change_no_bit(family) -> None:
    odd = [run(family, noting(family, 3), threads=t) for t in (1, 2)]
    assert eqx.tree_equal(*odd), "all in one part"
    even = [run(family, agents(family, 6), 6, threads=t) for t in (1, 2, 3)]
    assert eqx.tree_equal(*even[:2]), "two parts and one"
    assert eqx.tree_equal(*even[1:]), "three parts and two"


@dataclass(frozen=True)
class Traced(HalfCheetahVel):
    """Notes when it is compiled."""

    noted = Mock()

    def observe(self, before, after):
        self.noted()
        return super().observe(before, after)


@pytest.mark.parametrize(
    ("tasks", "threads", "divided"),
    [
        (40, 2, (2, 1)),
        (21, 2, (3, 1)),  # thirds, rather than all in one
        (41, 2, (1, 2)),
        (100, 16, (4, 4)),
        (90, 16, (3, 6)),
        (8, 3, (4, 1)),
        (2, 16, (1, 16)),
        (1, 1, (1, 1)),
        (6, 3, (3, 1)),
    ],
)
def test_parts_are_equal_and_occupy_all_threads(tasks, threads, divided) -> None:
    assert divide(tasks, threads) == divided


def test_parts_load_and_compile_once(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    mujoco_engine._load.cache_clear()
    run(Traced(horizon=3), RandomPolicy(Box(6)), 6, threads=3)
    assert Traced.noted.call_count == 2  # for the first observation and for others
    assert mujoco_engine._load.cache_info().misses == 1
    assert not list(tmp_path.iterdir())  # where MuJoCo would complain of the model


def test_an_interrupt_ends_all_parts(monkeypatch) -> None:
    monkeypatch.setattr(mujoco_simulator, "wait", Mock(side_effect=KeyboardInterrupt))
    steps = Mock()
    monkeypatch.setattr(mujoco_simulator, "_refuse_unstable", steps)
    with pytest.raises(KeyboardInterrupt):
        run(HalfCheetahVel(horizon=5_000), RandomPolicy(Box(6)), 4, threads=2)
    assert steps.call_count < 1_000
