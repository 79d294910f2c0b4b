"""A user's Gymnasium tasks as values: nonsense, scales, rewards that disagree."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from borelax.errors import ConfigError
from borelax.tasks.gym_rewards import refuse_disagreement
from borelax.tasks.gym_tasks import ActionScale, GymTasks
from borelax.types import Box, Discrete, Spec
from tests.simulate.gym_worlds import TWIN


def test_rounding_may_differ_now_and_then_but_not_where_episodes_end():
    paid, last = np.zeros(2_000), np.arange(2_000) % 100 == 99
    refuse_disagreement(TWIN, paid + (np.arange(2_000) == 7), paid, last)
    refuse_disagreement(TWIN, paid + 1e-4, paid, last)
    with pytest.raises(ConfigError, match=r"on 3 of 2000 steps: .* says 1 where 0 was"):
        refuse_disagreement(TWIN, paid + (np.arange(2_000) < 3), paid, last)
    with pytest.raises(ConfigError, match=r"on 1 of 20 last steps: .* says 1 where 0"):
        refuse_disagreement(TWIN, paid + (np.arange(2_000) == 199), paid, last)
    with pytest.raises(ConfigError, match=r"on 1 of 2000 steps: .* says nan where 0"):
        told = np.where(np.arange(2_000) == 7, np.nan, paid)
        refuse_disagreement(TWIN, told, paid, last)


BAD = {
    "name": {"name": ""},
    "make_env": {"make_env": None},
    "sample_task": {"sample_task": 3},
    "reward": {"reward": 1.0},
    "spec": {"spec": (2, 2)},
    "horizon": {"spec": Spec(2, Box(2), 0, 1)},
    "action": {"spec": SimpleNamespace(action=spaces.Discrete(2))},
    "obs_dtype": {"spec": Spec(2, Box(2), 3, 1, "float64")},
    "differs_in": {"differs_in": "colour"},
    "starts": {"starts": ("uniform",)},
    "list": {"starts": ["fixed"]},
}


@pytest.mark.parametrize("changed", BAD.values(), ids=BAD)
def test_nonsense_is_refused_when_it_is_made(changed):
    """Of a stand-in, because tests check types before anything else could."""
    given = {f.name: getattr(TWIN, f.name) for f in fields(GymTasks)}
    GymTasks.__post_init__(SimpleNamespace(**given))
    with pytest.raises(ConfigError, match=r"^GymTasks\..*\.$"):
        GymTasks.__post_init__(SimpleNamespace(**(given | changed)))


def test_actions_are_scaled_to_the_box_and_numbered_from_its_start():
    space = spaces.Box(np.float32([-1, 0]), np.float32([1, 10]))
    scale = ActionScale(Spec(2, Box(2), 1, 1), [space])
    given = np.float32([[[-1, -1]], [[0, 0]], [[1, 1]], [[3, -3]]])
    wanted = [[[-1, 0]], [[0, 5]], [[1, 10]], [[1, 0]]]
    np.testing.assert_allclose([scale(x) for x in given], wanted)
    number = ActionScale(Spec(2, Discrete(3), 1, 1), [spaces.Discrete(3, start=-1)])
    assert number(np.int32([2])).tolist() == [1]
