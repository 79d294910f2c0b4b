"""Laws of the page: in a real browser, with fixed scenes, and with things missing."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from borelax.report.compare import comparison
from borelax.report.page import Pictures, document, page
from borelax.report.player import player_html
from borelax.report.run_data import Problems, read_run
from tests.report.made import (
    bare_run,
    grid_scenes,
    pictures,
    plane_scenes,
    ring_scenes,
    wind_scenes,
)

VOID = {"meta", "link", "input", "br", "img"}


def test_a_verdict_that_fails_takes_no_heading_with_it(tmp_path):
    run = bare_run(tmp_path / "run")
    object.__setattr__(run, "results", {"domain": "wind"})
    text = page(run, Pictures())
    assert "The verdict could not be made" in text
    assert text.count("<h1>") == 1 and "<h1>Wind: reach a place" in text


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, False), (390, True)])
def test_the_page_fits_asks_for_nothing_and_follows_the_theme(
    shown, tmp_path, width, dark
):
    shown.open(tmp_path / "page.html", width, dark)
    assert shown.eval("document.documentElement.scrollWidth") <= width
    colour = shown.eval("getComputedStyle(document.body).backgroundColor")
    dark_page = sum(int(x) for x in re.findall(r"\d+", colour)[:3]) < 200
    assert dark_page == dark
    urls = {url.split(":")[0] for url in shown.requests}
    assert urls <= {"file", "data", "about"} and shown.errors == []


def test_every_drawing_has_words(shown):
    drawings = "[...document.querySelectorAll('svg')]"
    words = shown.eval(f"{drawings}.map(s => s.getAttribute('aria-label'))")
    figures = "[...document.querySelectorAll('figure')]"
    words += shown.eval(
        f"{figures}.map(f => f.querySelector('figcaption').textContent)"
    )
    assert len(words) > 10 and all(word.strip() for word in words)
    assert shown.eval("document.title") and shown.eval("document.documentElement.lang")


def test_the_page_is_whole_for_those_who_hear_it_or_use_keys(shown, tmp_path):
    compared = tmp_path / "compared.html"
    runs = [read_run(tmp_path / "läufe ☃ & <b>")] * 2
    compared.write_text(comparison(runs, [pictures(grid_scenes())] * 2), "utf-8")
    for path in (tmp_path / "page.html", compared):
        shown.open(path)
        assert shown.eval("document.querySelectorAll('main h1').length") == 1
        assert shown.eval("document.body.children[0].tagName") == "MAIN"
        for what, wanted in (
            ("th", "e.scope"),
            (".wide", "e.tabIndex === 0 && e.getAttribute('aria-label')"),
            ("table", "e.closest('.wide')"),
            (".rewards", "e.closest('figure').querySelector('figcaption')"),
        ):
            found = f"[...document.querySelectorAll('{what}')]"
            assert shown.eval(f"{found}.length") > 0
            assert shown.eval(f"{found}.every(e => {wanted})"), what
    assert shown.errors == []


class Balanced(HTMLParser):
    """Checks that tags close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    "scenes", [grid_scenes(), plane_scenes(), ring_scenes(), wind_scenes(), None]
)
def test_pages_are_whole_whatever_there_is(tmp_path, scenes):
    run = bare_run(tmp_path / "run")
    found = Pictures() if scenes is None else pictures(scenes)
    text = page(run, found)
    Balanced(text)
    for section in ("Returns", "Paths", "The player", "Learning curves", "The verdict"):
        assert f"{section} could not be made" not in text
    assert ("Step through a test rollout" in text) == (scenes is not None)
    assert "This run has no results yet" in text and "begun" in text


def test_a_belief_that_was_not_learned_is_not_spoken_of(tmp_path):
    run, learned = bare_run(tmp_path / "run"), plane_scenes()
    given = replace(learned, learned=None)
    texts = [page(run, pictures(scenes)) for scenes in (learned, given)]
    assert ["learned belief is bright" in text for text in texts] == [True, False]
    Balanced(texts[1])


@pytest.mark.parametrize("apart", [False, True])
def test_a_belief_of_those_who_were_paid_is_said_to_be_too_bright(tmp_path, apart):
    run = bare_run(tmp_path / "run")
    run.settings["relabel"] = {"kind": "RelabelRewards", "decode_apart": apart}
    text = page(run, pictures(plane_scenes()))
    assert ("matters more than how bright" in text) == (not apart)


def test_names_cannot_break_the_page(tmp_path):
    run = bare_run(tmp_path / "</script><script>alert('ß')<")
    text = page(run, pictures(grid_scenes()))
    Balanced(text)
    assert "<script>alert" not in text and "goal at the top <ß>" not in text


def test_a_curve_without_numbers_is_drawn_and_said(tmp_path):
    rows = [{"done": n, "q_mean": [None, None]} for n in range(1, 4)]
    text = page(bare_run(tmp_path / "run", rows), Pictures())
    Balanced(text)
    assert "q_mean: no finite values" in text
    assert not re.search(r"\bnan\b", text.lower())


def test_what_fails_is_named_on_the_page(tmp_path):
    run = bare_run(tmp_path / "run")
    broken = pictures(grid_scenes())
    object.__setattr__(broken, "further", "no array")
    text = page(run, broken)
    assert "Returns could not be made" in text and "Missing on this page" in text
    problems = Problems()
    assert problems.attempt("A picture", lambda: 1 / 0) is None
    assert problems == ["A picture could not be made: division by zero"]


def test_equal_scenes_give_equal_pages():
    assert player_html(grid_scenes(), "a") == player_html(grid_scenes(), "a")
    assert document("t", "b") == document("t", "b")
