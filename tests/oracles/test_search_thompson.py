"""Thompson sampling in the plane: against sums by hand, and between its bounds."""

import numpy as np
import pytest

from borelax.oracles.search import midpoints
from borelax.oracles.search_oracle import search_oracle
from borelax.oracles.search_thompson import thompson_returns
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.semicircle import SemiCircle


def on_arc(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def test_one_draw_is_worth_what_its_straight_walk_meets() -> None:
    family = SemiCircle(horizon=20, episodes=1, goal_radius=0.3)
    drawn, goals = on_arc(midpoints(256)), on_arc(midpoints(512))
    place, met = np.zeros_like(drawn), 0.0
    for _ in range(family.horizon):
        place = place + np.clip(drawn - place, -family.step_size, family.step_size)
        away = np.linalg.norm(place[:, None] - goals[None], axis=-1)
        met += (away <= family.goal_radius).mean()
    (simulated,) = thompson_returns(family, redraw=False)
    assert simulated == pytest.approx(met, rel=0.1)


def test_a_draw_that_proves_wrong_is_replaced_by_one_that_may_be_right() -> None:
    """Two steps, each of which reaches any goal: hit at once, or else by the second."""
    family = SemiCircle(horizon=2, episodes=1, goal_radius=0.3, step_size=2.0)
    places = on_arc(midpoints(256))
    near = np.linalg.norm(places[:, None] - places[None], axis=-1) <= 0.3
    second = [near[~hit][:, ~hit].mean() * (~hit).mean() for hit in near]
    expected = 2 * near.mean() + np.mean(second)
    (simulated,) = thompson_returns(family, redraw=True)
    assert simulated == pytest.approx(expected, rel=0.08)
    assert thompson_returns(family, redraw=False)[0] < 0.9 * simulated


def test_where_every_goal_is_everywhere_every_step_pays() -> None:
    family = SemiCircle(horizon=4, episodes=3, goal_radius=2.5)
    for redraw in (False, True):
        assert thompson_returns(family, redraw=redraw) == (4, 4, 4)


@pytest.mark.parametrize("family", [SemiCircle(), EscapeRoom()])
def test_drawing_again_helps_and_no_one_beats_who_knows(family) -> None:
    stored = search_oracle(family)
    once, again = stored.thompson_per_episode, stored.thompson_per_step
    assert len(once) == len(again) == family.episodes
    assert once[0] < again[0] < stored.upper_bound[0]
    assert sum(once) < sum(again) < sum(stored.bayes_optimal)
    assert once[0] < once[1] and again[0] < again[1] < stored.known_task[1]
    simulated = thompson_returns(family, redraw=True)
    np.testing.assert_allclose(simulated, again, rtol=0.01)
