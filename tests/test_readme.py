"""What the README shows must work."""

import re
from pathlib import Path

import pytest

from tests.tiny_run import compiled_quickly

README = (Path(__file__).parents[1] / "README.md").read_text()
MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_examples_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert blocks("python")
    with compiled_quickly():  # as in other files: programs are shared by a process
        for block in blocks("python"):
            exec(block.replace('"quick"', '"tiny"'), {})
    assert "of 37.2" in capsys.readouterr().out
    assert (tmp_path / "runs" / "first" / "results.json").exists()


def test_make_targets_exist() -> None:
    targets = re.findall(r"^make (\w+)", "".join(blocks("sh")), flags=re.MULTILINE)
    assert targets == ["run", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (Path(__file__).parents[1] / link).exists()
