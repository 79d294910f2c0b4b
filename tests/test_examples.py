"""Every example runs, at the smallest size, and its page shows what it holds."""

import ast
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

import borelax
from tests.tiny_run import compiled_quickly

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "your_own_gym_env.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


def test_the_example_runs(example, tmp_path, capsys):
    tiny = borelax.preset("semicircle", "tiny")
    experiment = example["EXPERIMENT"]
    small = replace(tiny, family=example["TASKS"], relabel=experiment.relabel)
    with compiled_quickly():
        example["main"](tmp_path / "run", small)
    assert "Episode 2, the prize is known" in capsys.readouterr().out
    assert (tmp_path / "run" / "results.json").exists()


def test_borelax_takes_less_than_twenty_lines():
    """From the tasks to the results: the two values, and the call that runs them."""
    wanted = {"TASKS", "AGENT", "QUICK", "EXPERIMENT"}
    lines = 1  # borelax.run
    for node in ast.parse(EXAMPLE.read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in wanted:
            lines += node.end_lineno - node.lineno + 1
            wanted.remove(node.targets[0].id)
    assert not wanted and lines < 20


def test_the_page_shows_the_examples_own_lines():
    page = (ROOT / "docs" / "your-environment.md").read_text()
    source = EXAMPLE.read_text()
    blocks = page.split("```python\n")[1:]
    shown = [block.split("```")[0] for block in blocks]
    assert shown and all(block.strip() in source for block in shown if "…" not in block)
