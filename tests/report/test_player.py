"""Laws of the player: in a real browser it says what the arrays say; it stays small."""

import base64
import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest

from borelax.report.page import document, page
from borelax.report.player import Shown, fitted, pack, player_html, shown_words
from tests.report.made import (
    ant_scenes,
    bare_run,
    grid_scenes,
    pictures,
    plane_scenes,
    ring_scenes,
    wind_scenes,
)

LEFT, RIGHT, HOME, END = (
    ("ArrowLeft", 37),
    ("ArrowRight", 39),
    ("Home", 36),
    ("End", 35),
)


def readout(tab) -> str:
    return tab.eval("document.querySelector('.readout').textContent")


def agent(tab) -> tuple[float, float]:
    """The agent's place in the first drawing, in cells."""
    script = "(a => [a.cx.baseVal.value, a.cy.baseVal.value])"
    x, y = tab.eval(f"{script}(document.querySelector('.first .agent'))")
    return round(x * 3 / 400 - 0.5, 3), round(2.5 - y * 3 / 400, 3)


def test_the_slider_moves_by_keyboard_and_shows_the_moment(shown):
    assert readout(shown).startswith("Episode 1 of 2, step 0 of 3. Return so far 0.0.")
    assert agent(shown) == (0, 0)
    shown.eval("document.querySelector('.time').focus()")
    shown.press(*RIGHT)
    assert "step 1 of 3. Reward −0.10; return so far −0.1." in readout(shown)
    assert agent(shown) == (1, 0)
    shown.press(*END)
    assert "Episode 2 of 2, step 3 of 3" in readout(shown)
    assert "learned belief 100 %, exact posterior 100 %" in readout(shown)
    shown.press(*LEFT)
    assert "step 2 of 3" in readout(shown)
    shown.press(*HOME)
    assert "Episode 1 of 2, step 0 of 3" in readout(shown)
    assert "learned belief 25 %" in readout(shown)
    assert shown.errors == []


def test_belief_shades_are_those_of_the_arrays(shown):
    spots = "[...document.querySelectorAll('.first .belief')]"
    shades = f"{spots}.map(e => +e.getAttribute('fill-opacity'))"
    assert shown.eval(shades)[2] == pytest.approx(0.5, abs=0.01)  # the root of 1/4
    shown.eval("document.querySelector('.time').focus()")
    shown.press(*END)
    assert shown.eval(shades)[2] == 1 and shown.eval(shades)[8] == 0


def test_the_slider_moves_by_pointer(shown):
    box = shown.box(".time")
    y = box["y"] + box["height"] / 2
    shown.drag((box["x"] + 8, y), (box["x"] + box["width"] - 2, y))
    assert "Episode 2 of 2, step 3 of 3" in readout(shown)
    box = shown.box(".rewards")
    at = (box["x"] + 2.5 / 8 * box["width"], box["y"] + 10)
    shown.drag(at, at)  # a click on the third of eight moments
    assert "Episode 1 of 2, step 2 of 3" in readout(shown)
    assert shown.errors == []


def test_play_runs_to_the_end_and_pauses(shown):
    play = "document.querySelector('.play')"
    shown.eval(f"{play}.focus()")
    shown.press(" ", 32)
    assert shown.eval(f"{play}.textContent") == "Pause"
    shown.eval(f"{play}.click()")
    assert shown.eval(f"{play}.textContent") == "Play"
    shown.eval(f"{play}.click()")
    for _ in range(100):
        if shown.eval(f"{play}.textContent") == "Play":
            break
        time.sleep(0.1)
    assert "Episode 2 of 2, step 3 of 3" in readout(shown)


def test_task_and_seed_are_chosen(shown):
    names = shown.eval("[...document.querySelector('.task').options].map(o => o.text)")
    assert names == ["goal in the corner", "goal at the top <ß>"]
    change = "(s => {s.value = '1'; s.dispatchEvent(new Event('change'))})"
    shown.eval(f"{change}(document.querySelector('.task'))")
    shown.eval("document.querySelector('.time').focus()")
    shown.press(*END)
    assert "return so far −0.6" in readout(shown)
    shown.eval(f"{change}(document.querySelector('.seed'))")
    assert shown.errors == []


@pytest.mark.parametrize(
    ("scenes", "said"),
    [
        (plane_scenes(), "Reward expected at the true goal: learned belief 0."),
        (
            ring_scenes(),
            "through the true door a step is expected to lead: learned belief 100 %",
        ),
        (wind_scenes(), "Believed wind (0.040, −0.020), true wind (0.040, −0.020)."),
    ],
    ids=lambda x: getattr(getattr(x, "frame", None), "kind", ""),
)
def test_every_kind_of_world_is_played(opened, tmp_path, scenes, said):
    path = tmp_path / "page.html"
    path.write_text(page(bare_run(tmp_path / "run"), pictures(scenes)), "utf-8")
    opened.errors.clear()
    opened.open(path)
    opened.eval("document.querySelector('.time').focus()")
    opened.press(*END)
    assert said in readout(opened) and "step 3 of 3" in readout(opened)
    places = "[...document.querySelectorAll('.first path, .first circle')]"
    assert "NaN" not in opened.eval(f"{places}.map(e => e.outerHTML).join('')")
    assert opened.errors == []


@pytest.mark.parametrize(
    "scenes", [grid_scenes(), wind_scenes()], ids=["cells", "winds"]
)
def test_what_is_not_a_number_is_said_and_breaks_nothing(opened, tmp_path, scenes):
    reward, place, learned = (
        np.array(x) for x in (scenes.reward, scenes.place, scenes.learned)
    )
    reward[0, 0, 0, 1], place[0, 0, 0, 2], learned[0, 0, 2] = np.nan, np.inf, np.nan
    broken = replace(scenes, reward=reward, place=place, learned=learned)
    text = page(bare_run(tmp_path / "run"), pictures(broken))
    assert "The player could not" not in text and "Paths could not" not in text
    assert not re.search(r"\bnan\b", text.lower())
    path = tmp_path / "page.html"
    path.write_text(text, "utf-8")
    opened.errors.clear()
    opened.open(path)
    opened.eval("document.querySelector('.time').focus()")
    opened.press(*RIGHT)
    assert "not a number" not in readout(opened)
    opened.press(*RIGHT)
    told = readout(opened)
    assert "Reward not a number; return so far not a number." in told
    assert re.search(r"(learned belief|Believed wind \() ?not a number", told)
    assert opened.eval("document.querySelectorAll('.rewards .bar').length") == 5
    opened.press(*RIGHT)
    assert "Reward 1.00; return so far not a number." in readout(opened)
    drawn = opened.eval("[...document.querySelectorAll('svg')].map(s => s.outerHTML)")
    assert not any("NaN" in svg for svg in drawn)
    assert opened.errors == []


@pytest.mark.parametrize(
    ("most_bytes", "shown", "words"),
    [
        (20e6, Shown(2, (0, 1, 2, 3, 4, 5)), "6 of 1,000 test tasks, 2 of 2 seeds."),
        (6e6, Shown(1, (0, 1, 2, 3, 4, 5)), "6 of 1,000 test tasks, 1 of 2 seeds."),
        (2e6, Shown(1, (0, 4)), "2 of 1,000 test tasks, 1 of 2 seeds."),
        (1e6, Shown(1, (4,)), "1 of 1,000 test tasks, 1 of 2 seeds."),
        (3e5, Shown(1, (4,), 4), "2 seeds, the belief once in 4 steps, and in between"),
    ],
)
def test_a_player_keeps_to_its_size_and_says_what_it_left_out(most_bytes, shown, words):
    scenes = ant_scenes(seeds=2)
    found, data = fitted(scenes, int(most_bytes), task=4)
    assert found == shown and words in shown_words(scenes, shown)
    assert len(data) <= most_bytes
    assert len(player_html(scenes, "a", int(most_bytes), 4)) <= most_bytes + 4_000


def test_what_fits_in_no_way_is_refused():
    with pytest.raises(ValueError, match="too long for a page"):
        fitted(ant_scenes(), 10_000, task=0)


def test_packing_keeps_places_and_rewards_of_every_step():
    scenes = ant_scenes()
    packed = pack(scenes, Shown(1, (3, 5), every=8), task=5)
    np.testing.assert_allclose(packed["reward"], scenes.reward[:, [3, 5]], atol=1e-4)
    np.testing.assert_allclose(packed["place"], scenes.place[:, [3, 5]], atol=1e-3)
    shades = np.frombuffer(base64.b64decode(packed["learned"][0][1]), np.uint8)
    kept = scenes.learned[0, 5, ::8].ravel()
    np.testing.assert_allclose(shades / 254, kept, atol=0.003)


def test_a_thinned_player_shows_the_latest_belief_and_says_so(opened, tmp_path):
    scenes = grid_scenes()
    learned = np.zeros_like(scenes.learned)
    learned[..., 2] = [0, 0, 0, 0, 0.25, 1, 1]
    scenes = replace(scenes, learned=learned, exact=learned)
    everything, data = fitted(scenes, 10_000, task=0)
    whole = player_html(scenes, "a", 10_000, 0)
    thin = json.dumps(pack(scenes, Shown(1, (0,), every=4), 0))
    path = tmp_path / "page.html"
    path.write_text(document("t", whole.replace(data, thin)), "utf-8")
    assert everything.every == 1
    opened.errors.clear()
    opened.open(path)
    opened.eval("document.querySelector('.time').focus()")
    opened.press(*END)  # step 6: the latest belief is that of step 4
    assert "learned belief 25 %" in readout(opened)
    assert "The belief of 2 steps ago" in readout(opened)
    assert opened.errors == []
