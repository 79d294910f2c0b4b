"""Pages of real (tiny) runs in a real browser: of one run, and of two side by side."""

import pytest

from borelax.report.compare import write_comparison
from borelax.report.write import write_report
from tests.tiny_run import compiled_quickly, copy_finished, finished


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The report of a finished run, and its comparison with one that is not."""
    folder = tmp_path_factory.mktemp("runs")
    run = copy_finished(folder)
    other = copy_finished(folder / "other", without=("[4-5]-*", "results.json"))
    with compiled_quickly():
        return {
            "run": write_report(run),
            "semicircle": write_report(finished("semicircle"), folder / "page.html"),
            "compare": write_comparison([run, other], folder / "compare.html"),
        }


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["run", "semicircle", "compare"])
def test_real_pages_fit_show_the_verdict_and_break_nothing(opened, pages, name, width):
    opened.errors.clear()
    opened.open(pages[name], width)
    wide = opened.eval("document.documentElement.scrollWidth")
    assert wide <= opened.eval("document.documentElement.clientWidth") <= width
    verdict = ".wide table" if name == "compare" else ".numbers b"
    assert opened.box(verdict)["height"] > 0
    told = opened.eval(f"document.querySelector('{verdict}').textContent")
    assert any(letter.isdigit() for letter in told)
    drawn = opened.eval("document.querySelector('.first .agent').outerHTML")
    assert "cx=" in drawn and "NaN" not in drawn
    opened.eval("document.querySelector('.time').focus()")
    opened.press("End", 35)
    moment = opened.eval("document.querySelector('.readout').textContent")
    assert "Episode 1" not in moment
    assert opened.errors == []
