"""What is stored must be what is computed."""

import json

import pytest

from borelax.oracles import gridworld as oracles
from borelax.oracles.gridworld import SOLVED, SOLVED_GRIDS, gridworld_oracle
from borelax.oracles.gridworld_plan import plan_of_path
from borelax.tasks.gridworld import Gridworld


@pytest.mark.parametrize("world", SOLVED_GRIDS, ids=str)
def test_stored_equals_computed(world: Gridworld) -> None:
    stored = gridworld_oracle(world)
    computed = gridworld_oracle(world, recompute=True)
    assert stored.to_json() == pytest.approx(computed.to_json(), rel=1e-12)
    for name, per_episode in stored.per_episode.items():
        assert per_episode == pytest.approx(computed.per_episode[name])
    assert stored.plan.search_actions == computed.plan.search_actions
    by_cells = plan_of_path(world, list(stored.plan.search_cells(world)))
    assert by_cells.value == pytest.approx(stored.bayes_optimal)


def test_stored_grids_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(world: Gridworld) -> None:
        raise AssertionError(f"computed {world}")

    monkeypatch.setattr(oracles, "_compute", refuse)
    assert gridworld_oracle(Gridworld()).bayes_optimal == pytest.approx(37.2142857143)
    with pytest.raises(AssertionError, match="computed"):
        gridworld_oracle(Gridworld(step_reward=-0.2))


def test_order_of_the_oracles_and_keys_of_the_json() -> None:
    found = gridworld_oracle(Gridworld(3, 6, 2, 5.0, 1.0)).to_json()
    assert found.pop("exact") is True
    names = ["thompson_per_episode", "thompson_per_step", "bayes_optimal", "known_task"]
    assert sorted(found) == sorted(names)
    values = [found[name] for name in names]
    assert values == sorted(values)


def test_writing_gives_the_stored_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setattr(oracles, "SOLVED", tmp_path / "solved.json")
    monkeypatch.setattr(oracles, "SOLVED_GRIDS", SOLVED_GRIDS[1:])
    oracles.solve_and_save()
    written = json.loads((tmp_path / "solved.json").read_text())
    stored = json.loads(SOLVED.read_text())
    assert [one["gridworld"] for one in written] == [
        one["gridworld"] for one in stored[1:]
    ]
    assert gridworld_oracle(SOLVED_GRIDS[1]) == gridworld_oracle(SOLVED_GRIDS[1], True)
