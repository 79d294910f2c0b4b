"""One finished tiny run per process and domain, which tests copy and do things to.

All tests use the same shapes and flags, so that each program is compiled once, and
with few optimisations: what takes time here is compiling.
"""

import atexit
import contextlib
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import pytest

from borelax.cli import run_command
from borelax.evaluate.evaluate import Evaluate
from borelax.experiment import Experiment
from borelax.pipeline import Pipeline
from borelax.presets import preset
from borelax.progress import Quiet
from borelax.types import Episodes

EXPERIMENT = preset("gridworld", "tiny")
FLAGS = (
    *("--preset", "tiny", "--checkpoint-seconds", "0", "--no-deterministic"),
    "--no-report",
)


@contextlib.contextmanager
def compiled_quickly() -> Iterator[None]:
    """Programs compiled here are compiled in half the time, and slower."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", before)


@compiled_quickly()
def command(*words: object) -> int:
    """The exit code of ``borelax WORDS``, run in this process."""
    with mock.patch.dict(os.environ):  # it sets XLA_FLAGS
        return run_command([str(word) for word in words])


def run_tiny(out: Path, *flags: object, domain: str = "gridworld") -> int:
    """The exit code of a whole tiny run."""
    return command("run", domain, *FLAGS, "--out", out, *flags)


def finished(domain: str = "gridworld") -> Path:
    """The folder of a tiny run that nothing disturbed; not to be written to.

    What it printed lies beside it, in ``printed.txt``.
    """
    return _finished(domain)


@cache
def _finished(domain: str) -> Path:
    parent = Path(tempfile.mkdtemp(prefix="borelax-tests-"))
    atexit.register(shutil.rmtree, parent)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run_tiny(parent / "run", domain=domain) == 0
    (parent / "printed.txt").write_text(printed.getvalue())
    return parent / "run"


def copy_finished(
    target: Path, *, without: tuple[str, ...] = (), domain: str = "gridworld"
) -> Path:
    """A copy of the finished run, with some of its folders left out."""
    ignore = shutil.ignore_patterns(*without)
    return Path(shutil.copytree(finished(domain), target / "run", ignore=ignore))


@compiled_quickly()
def work_out(folder: Path, experiment: Experiment = EXPERIMENT) -> None:
    """All phases of the tiny run, without the command line and the table."""
    _ = Pipeline(experiment, folder, Quiet(), checkpoint_seconds=0.0).rollouts


def note_tests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Policies and tasks of all tests from now on, in which every step pays 1."""
    evaluate, noted = Evaluate.__call__, []

    def note(self: Evaluate, simulator, tasks, policies, *, key) -> Episodes:
        noted.append((policies, tasks))
        made = evaluate(self, simulator, tasks, policies, key=key)
        return replace(made, reward=jnp.ones_like(made.reward))

    monkeypatch.setattr(Evaluate, "__call__", note)
    return noted


def shas(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file that the phases left behind."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("[1-5]-*/**/*"))
        if path.is_file()
    }


def start_tiny(out: Path) -> subprocess.Popen[str]:
    """A whole tiny run in an interpreter of its own."""
    cache_dir = jax.config.jax_compilation_cache_dir
    own = {
        "JAX_COMPILATION_CACHE_DIR": str(cache_dir),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    words = ["run", "gridworld", *FLAGS, "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "borelax", *words],
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
