"""Check the package as users get it: ``python tests/check_wheel.py FOLDER``.

The folder's one wheel is installed into a new folder and used from there, away from
the checkout. Ends with 0, or with a sentence and 1.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

INSIDE = {"borelax/py.typed", "borelax/__main__.py"}
INSIDE |= {f"borelax/report/{name}" for name in ("page.css", "player.js")}
INSIDE |= {f"borelax/oracles/{name}.json" for name in ("solved", "searched")}
TINY = ("run", "gridworld", "--preset", "tiny", "--no-deterministic", "--out", "out")
CACHE = Path(tempfile.gettempdir()) / f"borelax-tests-jax-{version('jax')}"


def main(folder: Path) -> None:
    wheel = find_wheel(folder)
    check_content(wheel)
    with tempfile.TemporaryDirectory(prefix="borelax-wheel-") as name:
        home = Path(name).resolve()
        install(wheel, home)
        check_import(home)
        ask(home, [home / "bin" / "borelax", "--version"], wheel.name.split("-")[1])
        ask(home, [sys.executable, "-m", "borelax", "oracle", "gridworld"], "37.214")
        ask(home, [sys.executable, "-m", "borelax", *TINY], "Results: out/results.json")
        results = json.loads((home / "out" / "results.json").read_text())
        demand(results["preset"] == "tiny", f"results.json is odd: {results}")
    print(f"{wheel.name} works outside the checkout.")


def find_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("borelax-*.whl"))
    demand(len(wheels) == 1, f"{folder} must hold one wheel, and holds {len(wheels)}.")
    return wheels[0].resolve()


def check_content(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    demand(names >= INSIDE, f"{wheel.name} lacks {', '.join(sorted(INSIDE - names))}.")
    parts = {name.split("/")[0].split("-")[0] for name in names}
    demand(parts == {"borelax"}, f"{wheel.name} also holds {parts - {'borelax'}}.")


def install(wheel: Path, home: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index"]
    pip += ["--disable-pip-version-check", "--no-deps", "--target", str(home)]
    ask(home, [*pip, str(wheel)], "")


def check_import(home: Path) -> None:
    """Every public name comes from the installed package."""
    script = "import borelax as b; [getattr(b, name) for name in b.__all__]; print(b)"
    ask(home, [sys.executable, "-c", script], str(home / "borelax" / "__init__.py"))


def ask(home: Path, command: list, answer: str) -> None:
    """Run a command in ``home``, with only ``home`` on the path, for an answer."""
    settings = {
        "PYTHONPATH": str(home),
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(CACHE),
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # what takes time is compiling
    }
    ran = subprocess.run(
        command, cwd=home, env=os.environ | settings, capture_output=True, text=True
    )
    words = " ".join(str(word) for word in command)
    demand(ran.returncode == 0, f"`{words}` ended with {ran.returncode}: {ran.stderr}")
    demand(answer in ran.stdout, f"`{words}` did not say {answer!r}: {ran.stdout}")


def demand(condition: bool, sentence: str) -> None:
    if not condition:
        sys.exit(f"check_wheel: {sentence}")


if __name__ == "__main__":
    demand(len(sys.argv) == 2, "name the folder of the wheel.")
    main(Path(sys.argv[1]))
