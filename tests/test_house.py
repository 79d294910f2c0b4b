"""The house rules of docs/architecture.md, checked on the source text itself.

Import arrows point one way, from a layer to the layers before it (``LAYERS``). Inside
a layer nothing is imported, but for the pairs in ``SIDEWAYS``, each for a reason:

- ``store`` and ``manifest`` build on ``files``, and ``logs`` on both: one code writes
  bytes, and the others say what the bytes mean.
- ``logs`` that are read are filled shard by shard, in place, as ``learn`` fills them
  when they are made.
- ``belief.fit`` and ``meta.fit`` learn from what phase 2 gives, so they name its
  interface, ``relabel.source``; how rollouts were relabelled they cannot see.
- ``relabel.states`` puts a belief beside each observation, so it names the belief's
  interface, ``belief.view``; training (``meta.fit``) and the deployed policy
  (``meta.policy``) both use it, so that they build the same hyper-states.
- ``presets_gridworld``, ``presets_plane`` and ``presets_mujoco`` hold values of
  ``experiment``, which ``presets`` looks up by name.
- ``pipeline`` works in a ``run_folder``, which keeps a ``journal``, and all three show
  ``progress``; ``bench`` shows it too, and notes a run's environment.
- ``report.run_data`` and ``report.trained`` read what a ``run_folder`` holds, and
  ``report.trained`` the tasks on which ``pipeline`` tests.
- ``any_logs`` reads what a ``run_folder`` holds.
- ``reproduce`` is several runs: a ``pipeline`` each, in a ``run_folder`` each.
- ``__main__`` is ``cli``, which reads ``options`` and ``options_report``.

``borelax/__init__.py`` names the public functions wherever they live, lazily.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import borelax

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "borelax"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): ast.parse(
        path.read_text("utf-8")
    )
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name != "__init__.py"
}
FILES = sorted([*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")])

LAYERS = [
    "types errors",
    "tasks agents learn files locks manifest store logs plain",
    "simulate",
    "collect relabel belief meta evaluate",
    "ambiguity oracles experiment presets presets_gridworld presets_plane "
    "presets_mujoco outputs",
    "progress journal run_folder any_logs pipeline bench reproduce report",
    "options options_report cli __main__",
]
LAYER_OF = {name: i for i, layer in enumerate(LAYERS) for name in layer.split()}
SIDEWAYS = {
    "store": {"files"},
    "manifest": {"files"},
    "logs": {"files", "store", "learn"},
    "belief.fit": {"relabel.source"},
    "relabel.states": {"belief.view"},
    "meta.fit": {"belief.view", "relabel.source", "relabel.states"},
    "meta.policy": {"belief.view", "relabel.states"},
    "presets": {
        "experiment",
        "presets_gridworld",
        "presets_plane",
        "presets_mujoco",
    },
    "presets_gridworld": {"experiment"},
    "presets_plane": {"experiment"},
    "presets_mujoco": {"experiment"},
    "journal": {"progress"},
    "run_folder": {"journal", "progress"},
    "pipeline": {"run_folder", "progress"},
    "bench": {"run_folder", "progress"},
    "any_logs": {"run_folder"},
    "reproduce": {"pipeline", "run_folder", "progress"},
    "report.run_data": {"run_folder"},
    "report.trained": {"pipeline", "run_folder"},
    "cli": {"options", "options_report"},
    "__main__": {"cli"},
}


def imports(tree: ast.AST) -> Iterator[str]:
    """Full names of all modules imported anywhere in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports name their package"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(name: str) -> set[str]:
    """Modules of borelax that the module ``name`` imports, without the package."""
    found = {full.removeprefix("borelax.") for full in imports(MODULES[name])}
    return found & MODULES.keys()


def functions(tree: ast.AST, depth: int = 1) -> Iterator[tuple[ast.AST, int]]:
    """Every function of a file, and how many functions deep it stands."""
    for node in ast.iter_child_nodes(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function:
            yield node, depth
        yield from functions(node, depth + is_function)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short_and_finished(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) < 300
    for word in ("TO" + "DO", "FIX" + "ME"):
        assert word not in text


@pytest.mark.parametrize("name", MODULES)
def test_functions_are_short_and_flat(name):
    for function, depth in functions(MODULES[name]):
        assert function.end_lineno - function.lineno + 1 < 50, ast.unparse(function)
        assert depth <= 2, f"{function.name} is a function in a function in a function"


@pytest.mark.parametrize("name", MODULES)
def test_import_arrows_point_one_way(name):
    part = name.split(".")[0]
    others = {other for other in own_imports(name) if other.split(".")[0] != part}
    layer_of = {other: LAYER_OF[other.split(".")[0]] for other in others}
    later = {other for other in others if layer_of[other] > LAYER_OF[part]}
    beside = {other for other in others if layer_of[other] == LAYER_OF[part]}
    assert not later, "an arrow points the wrong way"
    assert beside == SIDEWAYS.get(name, set()), "say why in this file's docstring"


def test_every_exception_is_still_needed():
    assert SIDEWAYS.keys() <= MODULES.keys()
    assert {name.split(".")[0] for name in MODULES} == LAYER_OF.keys()


@pytest.mark.parametrize("name", MODULES)
def test_no_pickle_and_no_settings_at_import(name):
    banned = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    assert not {full.split(".")[0] for full in imports(MODULES[name])} & banned
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant) and node.value.value is False
    configures = "config.update(" in ast.unparse(MODULES[name])
    assert not configures or name == "cli"  # in a function: see the next test


FRESH = """
import importlib, json, pkgutil, sys
import borelax
seen = {"package": sorted(sys.modules)}
for phase in ("collect.collect", "relabel.rewards", "relabel.policies", "belief.fit",
              "meta.fit", "meta.policy", "evaluate.evaluate",
              "simulate.of_family"):
    importlib.import_module(f"borelax.{phase}")
seen["phases"] = sorted(sys.modules)
importlib.import_module("borelax.pipeline")
seen["pipeline"] = sorted(sys.modules)
import jax
before = dict(jax.config.values)
for module in pkgutil.walk_packages(borelax.__path__, "borelax."):
    importlib.import_module(module.name)
seen["settings"] = [name for name, value in jax.config.values.items()
                    if value != before.get(name)]
from jax._src import xla_bridge
seen["device"] = xla_bridge.backends_are_initialized()
print(json.dumps(seen))
"""


def test_importing_is_light_and_starts_nothing():
    command = [sys.executable, "-c", FRESH, "--help", "--no-such-flag"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = json.loads(ran.stdout)
    assert not {"jax", "numpy", "rich", "tyro"} & set(seen["package"])
    heavy = {"tyro", "matplotlib", "mujoco", "gymnasium", "minari", "ray"}
    assert not (heavy | {"rich"}) & set(seen["phases"])
    assert not heavy & set(seen["pipeline"])
    assert seen["settings"] == [] and seen["device"] is False and ran.stderr == ""


def test_public_names_are_there():
    assert {"preset", "run", "Experiment", "Gridworld"} <= set(borelax.__all__)
    for name in borelax.__all__:
        assert name in dir(borelax) and getattr(borelax, name).__name__ == name
        assert getattr(borelax, name).__module__.startswith("borelax.")
    assert borelax.preset("gridworld", "tiny").family == borelax.Gridworld()
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = borelax.nonsense
