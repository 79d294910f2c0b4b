"""One browser per test file, and a page in it."""

import pytest

from borelax.report.page import page
from tests.report.chromium import browser, chromium
from tests.report.made import bare_run, grid_scenes, pictures


@pytest.fixture(scope="module")
def opened():
    """One browser for all tests of this file."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install the package `chromium`")
    with browser(program) as tab:
        yield tab


@pytest.fixture
def shown(opened, tmp_path):
    """The page of a run made of fixed arrays, open in the browser."""
    run = bare_run(tmp_path / "läufe ☃ & <b>", [{"done": 1, "td_error": [1.0, None]}])
    path = tmp_path / "page.html"
    path.write_text(page(run, pictures(grid_scenes(seeds=2))), "utf-8")
    opened.errors.clear()
    opened.requests.clear()
    opened.open(path)
    return opened
