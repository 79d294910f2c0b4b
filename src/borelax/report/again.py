"""The commands that make a run again: its preset, and what was set beside it."""

import shlex
from typing import Any

from borelax.experiment import Experiment, differences
from borelax.plain import encode
from borelax.presets import PRESETS, RELABELLINGS, preset
from borelax.tasks.family import name_of
from borelax.tasks.mujoco_family import MujocoFamily

RENAMED = {"num_seeds": "seeds", "relabel": "relabelling"}
"""Fields of an experiment whose flags have another name."""


def install_of(experiment: Experiment) -> str:
    """The line that installs what the experiment needs."""
    extra = "[mujoco]" if isinstance(experiment.family, MujocoFamily) else ""
    return shlex.join(["pip", "install", f"borelax{extra}"])


def command_of(experiment: Experiment) -> str | None:
    """A ``borelax run`` line that means this experiment; None if none does."""
    domain, name = name_of(experiment.family), experiment.preset
    if domain not in PRESETS or name not in PRESETS[domain]:
        return None
    base = preset(domain, name)
    words = ["borelax", "run", domain, "--preset", name]
    old, new = base.to_json(), experiment.to_json()
    if experiment.relabel.name != base.relabel.name:
        words += ["--relabel", experiment.relabel.name]
        old = old | {"relabel": encode(RELABELLINGS[experiment.relabel.name])}
    for line in differences(old, new):
        words += _flag(line.split(":", 1)[0], new)
    return shlex.join(words)


def _flag(path: str, settings: dict[str, Any]) -> list[str]:
    value: Any = settings
    names = path.split(".")
    for name in names:
        value = value[name]
    names[0] = RENAMED.get(names[0], names[0])
    flag = "--" + ".".join(names).replace("_", "-")
    if isinstance(value, bool):
        *outer, last = flag.removeprefix("--").split(".")
        return [flag] if value else ["--" + ".".join([*outer, f"no-{last}"])]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, str(value)]
