"""One experiment as one value: every phase's settings, to JSON and back."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from borelax.agents.dqn import DQN
from borelax.belief.fit import CellDecoder, FitBelief
from borelax.belief.view import BeliefView
from borelax.collect.collect import Collect
from borelax.errors import ConfigError, require
from borelax.evaluate.evaluate import Evaluate
from borelax.meta.fit import FitMeta
from borelax.relabel.rewards import KeepAsIs, RelabelRewards
from borelax.tasks.gridworld import Gridworld

PARTS = (
    Gridworld,
    Collect,
    DQN,
    RelabelRewards,
    KeepAsIs,
    FitBelief,
    CellDecoder,
    FitMeta,
    BeliefView,
    Evaluate,
)
"""Every dataclass that may stand in an experiment's JSON, named by its ``kind``."""


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run's result; validated when it is made."""

    preset: str = "custom"
    """Where the values came from."""
    seed: int = 0
    """The root of all randomness."""
    num_seeds: int = 1
    """Belief models and meta-agents trained side by side on one set of logs."""
    exact_belief: bool = False
    """Yardstick: give the meta-agent the exact posterior, not the learned belief."""
    family: Gridworld = field(default_factory=Gridworld)
    """The task family."""
    collect: Collect = field(default_factory=Collect)
    """Phase 1."""
    relabel: RelabelRewards | KeepAsIs = field(default_factory=RelabelRewards)
    """Phase 2."""
    belief: FitBelief = field(default_factory=FitBelief)
    """Phase 3."""
    meta: FitMeta = field(default_factory=FitMeta)
    """Phase 4."""
    evaluate: Evaluate = field(default_factory=Evaluate)
    """Phase 5."""

    def __post_init__(self) -> None:
        """Refuse what no phase could run."""
        require(self.num_seeds >= 1, f"At least one seed, not {self.num_seeds}.")
        require(0 <= self.seed < 2**31, "The seed must lie in [0, 2^31).")
        require(
            self.collect.start in self.family.starts,
            f"{self.family.name} has no start called {self.collect.start!r}; choose "
            f"one of {', '.join(self.family.starts)}.",
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values, each dataclass tagged with its ``kind``."""
        return _encode(self)

    @classmethod
    def from_json(cls, value: Any) -> "Experiment":
        """Undo ``to_json``; raises ``ConfigError`` on anything else."""
        experiment = _decode(value, {part.__name__: part for part in (cls, *PARTS)})
        require(isinstance(experiment, cls), "This is not the JSON of an experiment.")
        return experiment


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Lines ``path: old -> new`` for every value that differs between two JSONs."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{path}.{name}" if path else name
            yield from differences(old.get(name), new.get(name), inner)
    elif old != new:
        yield f"{path}: {old} -> {new}"


def _encode(value: Any) -> Any:
    if is_dataclass(value):
        inner = {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
        return {"kind": type(value).__name__, **inner}
    return list(value) if isinstance(value, tuple) else value


def _decode(value: Any, kinds: dict[str, type]) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    kind = kinds.get(value.get("kind", ""))
    if kind is None:
        raise ConfigError(f"Unknown part {value.get('kind')!r} in the configuration.")
    inner = {k: _decode(v, kinds) for k, v in value.items() if k != "kind"}
    unknown = set(inner) - {f.name for f in fields(kind)}
    if unknown:
        raise ConfigError(f"{kind.__name__} has no {', '.join(sorted(unknown))}.")
    try:
        return kind(**inner)
    except TypeError as error:
        raise ConfigError(f"{kind.__name__} cannot be made from {inner}.") from error
