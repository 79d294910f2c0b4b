"""What ``borelax oracle`` shows of each family: the table, and the picture."""

import pytest
from PIL import Image

from borelax.errors import ConfigError
from borelax.oracles.oracle import solve
from borelax.report.oracle import print_oracle
from borelax.report.oracle_figure import draw_oracle
from borelax.tasks.escape_room import EscapeRoom
from borelax.tasks.gridworld import Gridworld
from borelax.tasks.semicircle import SemiCircle
from borelax.tasks.wind import Wind

STARTS = {
    ".png": b"\x89PNG",
    ".svg": b"<?xml",
    ".pdf": b"%PDF",
}


@pytest.fixture(autouse=True)
def wide(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def rows_of(text: str) -> dict[str, list[float]]:
    lines = [line.strip("│").split("│") for line in text.splitlines() if "│" in line]
    return {name.strip(): [float(x) for x in cells] for name, *cells in lines}


@pytest.mark.parametrize(
    ("family", "least", "most"),
    [
        (SemiCircle(), "Bayes-optimal, at least", "Bayes-optimal, at most"),
        (EscapeRoom(), "Bayes-optimal, at least", "Bayes-optimal, at most"),
        (Wind(), "goal-seeker without memory", "Bayes-optimal"),
    ],
    ids=str,
)
def test_rows_are_in_order_and_add_up(family, least, most, capsys) -> None:
    print_oracle(family)
    out = capsys.readouterr().out
    rows = rows_of(out)
    assert rows[least][-1] < rows[most][-1] <= rows["task known"][-1]
    for values in rows.values():
        assert len(values) == family.episodes + 1
        assert values[-1] == pytest.approx(sum(values[:-1]), abs=0.003)
    assert f"H {family.horizon}" in out and "Picture" not in out
    assert ("exact expected return" in out) == isinstance(family, Wind)


@pytest.mark.parametrize(
    ("family", "suffix"),
    [
        (SemiCircle(), ".png"),
        (EscapeRoom(), ".svg"),
        (Wind(), ".pdf"),
        (Gridworld(3, 6, 2), ".PNG"),
    ],
    ids=str,
)
def test_the_picture_is_of_the_kind_that_its_name_says(
    family, suffix, capsys, tmp_path
) -> None:
    path = tmp_path / "new folder" / f"picture{suffix}"
    print_oracle(family, plot=path)
    assert str(path) in capsys.readouterr().out
    assert path.read_bytes().startswith(STARTS[suffix.lower()])
    assert list(path.parent.iterdir()) == [path], "nothing half-written stays"
    if suffix.lower() == ".png":
        colours = Image.open(path).convert("RGB").getcolors(1_000_000)
        assert colours is not None and len(colours) > 20


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
@pytest.mark.parametrize("family", [Gridworld(3, 6, 2), Wind(), SemiCircle()], ids=str)
def test_equal_solutions_give_equal_bytes(family, kind, tmp_path) -> None:
    paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for path in paths:
        draw_oracle(family, solve(family), path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert b"CreationDate" not in first and b"dc:date" not in first


def test_other_kinds_of_pictures_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("borelax.report.oracle.solve", lambda *_, **__: 1 / 0)
    with pytest.raises(ConfigError, match=r"ends in \.png, \.svg, \.pdf"):
        print_oracle(SemiCircle(), plot=tmp_path / "picture.bmp")
    assert list(tmp_path.iterdir()) == []


def test_a_grid_without_a_plan_cannot_be_drawn(monkeypatch, tmp_path) -> None:
    def refuse(_: Gridworld) -> None:
        raise ConfigError("Too large.")

    monkeypatch.setattr("borelax.oracles.gridworld.plan_search", refuse)
    grid = Gridworld(3, 5, 2)
    with pytest.raises(ConfigError, match="no search to draw"):
        draw_oracle(grid, solve(grid), tmp_path / "grid.png")
    assert list(tmp_path.iterdir()) == []


def test_families_without_an_oracle_are_refused() -> None:
    with pytest.raises(ConfigError, match="no oracle for str"):
        solve("semicircle")
