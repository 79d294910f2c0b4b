"""Who waits for whom, and what suits a machine."""

from concurrent.futures import Future, ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest

from borelax.simulate import mujoco_groups
from borelax.simulate.mujoco_groups import AtOnce, Group, arrange, beside, play
from borelax.simulate.mujoco_programs import Made, Moment, Programs


class Noted(Future):
    """A step of the physics that says when somebody waits for it."""

    def __init__(self, happened: list, part: slice):
        super().__init__()
        self.note = lambda: happened.append(("waits", part.start))

    def result(self, timeout: float | None = None) -> np.ndarray:
        self.note()
        return np.zeros((1, 1), np.float32)


def test_a_group_decides_while_the_other_moves() -> None:
    happened: list[tuple[str, int]] = []
    moment = Mock(spec=Moment, action=np.zeros((1, 1)))

    def move(action: np.ndarray, part: slice) -> Noted:
        happened.append(("moves", part.start))
        return Noted(happened, part)

    def advance(policies, tasks, made, moment, rows):
        happened.append(("decides", policies))
        return made, moment

    def check(step: int, part: slice) -> None:
        happened.append((f"step {step}", part.start))

    groups = [
        Group(slice(n, n + 1), n, None, Mock(spec=Made), moment) for n in range(2)
    ]
    play(groups, move, Programs(Mock(), advance), 2, check)

    def turn(step: int, group: int, *last: str) -> list[tuple[str, int]]:
        return [(what, group) for what in ("waits", f"step {step}", "decides", *last)]

    assert happened == [
        ("moves", 0),
        ("moves", 1),  # asked for before anyone waits
        *turn(0, 0, "moves"),
        *turn(0, 1, "moves"),  # while the first moves again
        *turn(1, 0),  # the last action is not taken
        *turn(1, 1),
    ]


@pytest.mark.parametrize(
    ("cores", "asked", "found"),
    [
        (1, (0, 0), (1, 1)),
        (11, (0, 0), (11, 1)),
        (12, (0, 0), (11, 2)),  # one core decides
        (16, (4, 0), (4, 2)),
        (16, (16, 0), (16, 2)),  # threads change no bit, so no groups
        (16, (0, 1), (16, 1)),  # none is needed to
        (16, (0, 2), (15, 2)),
        (2, (0, 2), (2, 2)),  # half of the physics is too much to give
    ],
)
def test_many_cores_leave_one_to_decide(monkeypatch, cores, asked, found) -> None:
    monkeypatch.setattr(mujoco_groups, "cores", lambda: cores)
    assert arrange(*asked, 3) == found
    assert arrange(*asked, 1)[1] == 1, "one task is one group"


def test_one_group_waits_for_nobody() -> None:
    one, two = beside(1), beside(2)
    assert isinstance(one, AtOnce) and isinstance(two, ThreadPoolExecutor)
    with one, two:
        for thread in (one, two):
            assert thread.submit(np.add, 1, 2).result() == 3
    with pytest.raises(ZeroDivisionError):
        one.submit(lambda: 1 / 0)
