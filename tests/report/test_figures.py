"""Laws of figures: equal arrays give equal bytes, and drawings say what arrays say."""

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from borelax.ambiguity.diagnose import Diagnose, Material
from borelax.logs import TaskLogs
from borelax.progress import Quiet
from borelax.report import paper, write
from borelax.report.diagnosis_figure import draw_diagnosis
from borelax.report.drawing import draw_moment, new_figure
from borelax.report.film import MOST_FRAMES, film, film_moments
from borelax.report.page import Pictures
from borelax.report.paper import (
    bars_figure,
    belief_figure,
    curves_figure,
    episodes_figure,
    paths_figure,
    write_figures,
)
from borelax.report.run_data import Curve
from borelax.report.scene_svg import (
    belief_strip,
    first_find,
    moments_of,
    paths,
    telling_task,
)
from borelax.report.svg import Bar, Series, bar_chart, line_chart, number, spread, ticks
from borelax.report.write import draw_run
from tests.ambiguity.two_rooms import VISITORS
from tests.report.made import (
    bare_run,
    grid_scenes,
    pictures,
    plane_scenes,
    wind_scenes,
)
from tests.tiny_run import command, compiled_quickly, finished

BARS = [Bar("task known", 4.0), Bar("borelax, ß & <x>", -1.5, 0.5, 1)]
LINES = [Series("a", np.arange(4.0), np.array([[1, 3], [2, 4], [np.nan] * 2, [0, 0]]))]


def made(kind: str) -> dict[str, bytes]:
    grid, plane = grid_scenes(), plane_scenes()
    return {
        "grid": belief_figure(grid, 0, 0, kind),
        "plane": belief_figure(plane, 0, 0, kind),
        "wind": belief_figure(wind_scenes(), 0, 0, kind),
        "paths": paths_figure(pictures(grid), kind),
        "bars": bars_figure(BARS, kind),
        "episodes": episodes_figure(LINES, 2, kind),
    }


@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_equal_arrays_give_equal_bytes(kind):
    first = made(kind)
    assert first == made(kind)
    for data in first.values():
        assert data.startswith(b"%PDF" if kind == "pdf" else b"<?xml")
        assert b"CreationDate" not in data and b"dc:date" not in data


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_equal_diagnoses_give_equal_bytes(kind, tmp_path):
    material = Material(TaskLogs(None, VISITORS))
    diagnosis = Diagnose(asked=40, compared=120)(material, Quiet())
    paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for path in paths:
        draw_diagnosis(diagnosis, path)
    first, second = (path.read_bytes() for path in paths)
    assert first == second
    assert b"CreationDate" not in first and b"dc:date" not in first


def test_a_wind_is_drawn_as_believed_beside_the_true_one():
    scenes = wind_scenes()
    steps = scenes.reward.shape[-1]
    with new_figure(3.0, 3.0) as figure:
        for episode, step in ((0, 0), (scenes.reward.shape[2] - 1, steps)):
            axes = figure.add_subplot()
            draw_moment(axes, scenes, scenes.learned, (0, 0, episode, step))
            (rose,) = axes.child_axes
            true, believed = (line.get_xydata()[0] for line in rose.lines[-2:])
            np.testing.assert_allclose(true, scenes.goals[0])
            expected = scenes.learned[0, 0, episode * steps + step]
            np.testing.assert_allclose(believed, expected)


AGAIN = """
import hashlib
from tests.report.test_figures import made
print(hashlib.sha256(made("svg")["grid"]).hexdigest())
"""


def test_another_process_gives_the_same_bytes():
    command = [sys.executable, "-c", AGAIN]
    hashes = {subprocess.check_output(command, text=True) for _ in range(2)}
    assert len(hashes) == 1


def test_curves_with_gaps_are_drawn(tmp_path):
    run = bare_run(tmp_path / "run")
    curves = (Curve("meta", "q_mean", LINES[0].x, LINES[0].values),)
    object.__setattr__(run, "curves", curves)
    assert curves_figure(run, "svg") == curves_figure(run, "svg")


@pytest.mark.parametrize("kind", ["WEBP", "GIF"])
def test_films_move_and_are_the_same_every_time(kind):
    scenes = grid_scenes()
    data = film(scenes, 0, 0, kind)
    assert data == film(scenes, 0, 0, kind)
    image = Image.open(io.BytesIO(data))
    assert image.is_animated and image.n_frames >= 6  # equal pictures may be merged


def test_long_films_skip_moments_but_never_an_end():
    assert film_moments(2, 3) == [(e, s) for e in range(2) for s in range(4)]
    long = film_moments(2, 200)
    assert len(long) <= MOST_FRAMES + 4 and {(0, 200), (1, 200)} <= set(long)


def test_every_figure_of_a_real_run_is_written(tmp_path):
    with compiled_quickly():
        run, pictures = draw_run(finished())
        written = write_figures(run, pictures, tmp_path / "figures")
    assert run.problems == []
    names = {path.name for path in written}
    assert names >= {f"{name}.svg" for name in ("belief", "paths", "returns", "curves")}
    assert {"belief.pdf", "search.webp"} <= names
    assert all(path.stat().st_size > 500 for path in written)


def test_one_drawing_serves_page_and_figures_and_reasons_are_printed(
    tmp_path, capsys, monkeypatch
):
    drawn = []
    monkeypatch.setattr(write, "draw", lambda run: drawn.append(run) or Pictures())
    monkeypatch.setattr(paper, "curves_figure", lambda *_: 1 / 0)
    out = ("--out", tmp_path / "page.html", "--figures", tmp_path / "figures")
    assert command("report", finished(), "--style", "paper", *out) == 0
    said = capsys.readouterr()
    assert len(drawn) == 1 and "Figure:" in said.out
    for kind in ("svg", "pdf"):
        assert f"curves.{kind} could not be made: division by zero" in said.err
    monkeypatch.setattr(paper, "bars_figure", lambda *_: 1 / 0)
    assert command("report", finished(), "--style", "paper", *out) == 3
    assert "No figure of" in capsys.readouterr().err


def test_lines_are_means_with_gaps_where_nothing_is_known():
    mean, low, high = spread(LINES[0])
    assert mean[[0, 1, 3]].tolist() == [2, 3, 0] and np.isnan(mean[2])
    assert low[0] == 1 and high[0] == 3
    text = line_chart(LINES, x_label="x", described="a & b", dots=True)
    svg = ET.fromstring(text)
    assert svg.get("aria-label") == "a & b"
    kinds = [e.get("class") for e in svg.iter("path")]
    assert kinds.count("line c0") == 2 and kinds.count("band c0") == 2
    assert len(list(svg.iter("circle"))) == 3


def test_bars_are_as_long_as_their_values():
    svg = ET.fromstring(bar_chart(BARS, described="x"))
    positive, negative = (float(e.get("width")) for e in svg.iter("rect"))
    assert positive / negative == pytest.approx(4 / 1.5, rel=0.01)
    words = [e.text for e in svg.iter("text")]
    assert words == ["task known", "4.0", "borelax, ß & <x>", "−1.5"]


def test_a_wide_spread_pushes_no_number_out_of_the_picture():
    bars = [Bar("borelax", 92.0, 60.0), Bar("frozen", -79.0, 10.0)]
    svg = ET.fromstring(bar_chart(bars, described="x"))
    width = float(svg.get("viewBox").split()[2])
    places = [float(e.get(name)) for e in svg.iter("line") for name in ("x1", "x2")]
    assert min(places) >= 0 and max(places) <= width
    values = [e for e in svg.iter("text") if e.get("class") == "value"]
    assert all(float(e.get("x")) <= width - 60 for e in values)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (-1, 1, [-1, -0.5, 0, 0.5, 1]), (3, 3, [3])],
)
def test_ticks_are_round_numbers_within(low, high, expected):
    found = ticks(float(low), float(high), most=6)
    assert found == pytest.approx(expected)


def test_numbers_are_short():
    assert [number(x) for x in (0.0, -1.5, 12500.0, 2e6, 1e-5)] == [
        "0",
        "−1.5",
        "12.5k",
        "2M",
        "1e−05",
    ]


def test_moments_tell_search_find_and_return():
    scenes = grid_scenes()
    assert first_find(scenes, 0, 0) == 1 and first_find(scenes, 0, 1) == 6
    assert telling_task(scenes) == 0
    assert moments_of(scenes, 0, 0) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 2)]
    assert moments_of(scenes, 0, 1)[-1] == (1, 3)  # never found: the end
    strip = belief_strip(scenes, 0, 0)
    assert next(words for words, _ in strip) == "episode 1, step 0"
    assert all(ET.fromstring(svg) is not None for _, svg in strip)


def test_paths_are_drawn_where_they_went():
    scenes = plane_scenes()
    text = paths(scenes.frame, scenes.place[0, :, 0], scenes.goals, "one path")
    d = re.search(r'class="thin c0" d="([^"]+)"', text)[1]
    points = [tuple(map(float, p.split())) for p in d.removeprefix("M").split("L")]
    assert points[0] == (100.0, 100.0)  # the centre, 1.6 of 3.2 from the left and top
    assert points[-1] == (100.0, pytest.approx(43.75, abs=0.1))
