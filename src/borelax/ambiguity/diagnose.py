"""Can these logs tell the tasks apart, and if not, what would help?

In: logs, and the tasks' reward function, policies and simulator where they are known.
Out: a ``Diagnosis``. No learning takes place; a minute at most.

What is compared is the last third of the rollouts, once the agents know their tasks:
most of a log looks like that, and a learner sees from how an agent moves whether it
knows, so that the blunders of beginners do not contradict the ways of experts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.random as jr
import numpy as np

from borelax.ambiguity.counterparts import Pairs, count_counterparts
from borelax.ambiguity.coverage import Coverage, cover
from borelax.ambiguity.repair import pays_differently, relabelled, replayed
from borelax.ambiguity.standing import Standing
from borelax.ambiguity.steps import Sample, draw_steps, require_numbers
from borelax.ambiguity.ways import Ways, find_ways
from borelax.errors import require_positive
from borelax.logs import TaskLogs
from borelax.relabel.policies import ReplayPolicies
from borelax.simulate.simulator import RewardFunction, Simulator
from borelax.types import Episodes

FEWEST_ROLLOUTS = 6
"""The last third of the rollouts is looked at, but at least this many."""
VISITS = 24
"""Rollouts that other policies make in each task, to try policy replaying."""
PART = 4
"""How many donors are needed is found out with this fraction of the steps."""


@runtime_checkable
class Display(Protocol):
    """Where progress is shown."""

    def begin(self, label: str, total: int, done: int) -> None:
        """Start."""

    def update(self, done: int, note: Callable[[], str]) -> None:
        """Go on."""

    def end(self) -> None:
        """Stop."""


@dataclass(frozen=True, eq=False)
class Material:
    """Logs, and what else is known of their tasks."""

    logs: TaskLogs
    """``tasks`` may be None, and ``policies`` too."""
    simulator: Simulator | None = None
    """None: neither rewards nor dynamics can be asked."""
    start: str = "fixed"
    """The start distribution of the logs."""

    @property
    def reward(self) -> RewardFunction | None:
        """The reward function, if it and the tasks are known."""
        if self.simulator is None or self.logs.tasks is None:
            return None
        return self.simulator.reward

    def ways(self, seed: int) -> Ways | None:
        """From where one task pays to where another does, if rewards are known."""
        if self.reward is None:
            return None
        rng = np.random.default_rng(seed)
        return find_ways(self.logs.episodes, self.logs.tasks, self.reward, rng)

    def steps_alone(self) -> "Material":
        """The logs without what else is known."""
        return Material(TaskLogs(None, self.logs.episodes))

    @property
    def can_replay(self) -> bool:
        """Whether policies can be run in other tasks."""
        needed = (self.logs.tasks, self.logs.policies, self.simulator)
        return all(x is not None for x in needed)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything that was found out."""

    as_logged: Standing
    pairs: Pairs
    """As logged, in full."""
    sample: Sample
    """The steps that were looked at."""
    coverage: Coverage
    ways: Ways | None
    """From where one task pays to where another does; None: rewards are not known."""
    knows_rewards: bool
    knows_policies: bool
    relabelled: Standing | None
    """After reward relabelling; None: not tried."""
    donors: int | None
    """How many other tasks each must borrow from for that; None: not known."""
    replayed: Standing | None
    """After policy replaying; None: not tried."""

    @property
    def differs_in(self) -> str:
        """What sets the tasks apart, as far as these logs show."""
        rewards = self.pairs.rewards >= self.pairs.transitions
        return "rewards" if rewards else "transitions"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for machines."""
        after = {"relabelled": self.relabelled, "replayed": self.replayed}
        share = np.where(np.isnan(self.pairs.share), -1, self.pairs.share)
        return {
            "verdict": self.as_logged.verdict,
            "as_logged": self.as_logged.to_json(),
            "differs_in": self.differs_in,
            "share_of_steps_that_differ": {
                "rewards": self.pairs.rewards,
                "transitions": self.pairs.transitions,
            },
            "after": {k: v and v.to_json() for k, v in after.items()},
            "donors": self.donors,
            "coverage": self.coverage.to_json(),
            "pairs_without_a_way": self.ways and self.ways.missing,
            "knows": {
                "rewards": self.knows_rewards,
                "policies": self.knows_policies,
            },
            "pairs": [[None if x < 0 else float(x) for x in row] for row in share],
            "errors": self.pairs.error.tolist(),
        }


@dataclass(frozen=True)
class Diagnose:
    """How much to look at; the answer depends on it only by chance."""

    asked: int = 8_000
    """Steps to ask about, of all tasks together."""
    compared: int = 64_000
    """Steps to compare them with."""
    seed: int = 0
    """Which steps."""

    def __post_init__(self) -> None:
        """Refuse to look at nothing."""
        require_positive(self, "asked", "compared")

    def __call__(self, material: Material, display: Display) -> Diagnosis:
        """Look at the logs, and at what would become of them if they were repaired."""
        return self._run(material, display).diagnosis()

    def after(self, relabel: str, material: Material, display: Display) -> Standing:
        """Where the logs stand after ``rewards``, ``policies`` or ``none``."""
        run = self._run(material, display)
        sample = run.sample()
        if relabel == "rewards":
            return run.relabelled(sample, material.logs.num_tasks - 1)
        if relabel == "policies":
            return run.replayed(sample)
        return Standing.of(run.compare("as logged", sample))

    def _run(self, material: Material, display: Display) -> "_Run":
        require_numbers(material.logs.episodes)
        return _Run(self, material, display, np.random.default_rng(self.seed))


@dataclass(frozen=True, eq=False)
class _Run:
    """One diagnosis in the making."""

    settings: Diagnose
    material: Material
    display: Display
    rng: np.random.Generator

    def diagnosis(self) -> Diagnosis:
        material, episodes = self.material, self.material.logs.episodes
        sample = self.sample()
        pairs = self.compare("as logged", sample)
        standing = Standing.of(pairs)
        relabelling = replaying = donors = None
        pays = pairs.rewards >= pairs.transitions
        if standing.verdict != "told apart" and pays and material.reward is not None:
            relabelling = self.relabelled(sample, material.logs.num_tasks - 1)
            donors = self._fewest_donors(sample, relabelling)
        elif standing.verdict != "told apart" and material.can_replay:
            replaying = self.replayed(sample)
        return Diagnosis(
            as_logged=standing,
            pairs=pairs,
            sample=sample,
            coverage=cover(episodes),
            ways=material.ways(self.settings.seed),
            knows_rewards=material.reward is not None,
            knows_policies=material.can_replay,
            relabelled=relabelling,
            donors=donors,
            replayed=replaying,
        )

    def sample(self) -> Sample:
        """Steps of the last third of the logs."""
        logs = self.material.logs
        return self._drawn(logs.episodes, _last_third(logs.num_rollouts))

    def _drawn(self, episodes: Episodes, rollouts: np.ndarray) -> Sample:
        """Steps to ask about from a third of the rollouts, the others to compare."""
        tasks, total = episodes.reward.shape[:2]
        shuffled = self.rng.permutation(rollouts)
        number = max(len(shuffled) // 3, 1)
        asked, others = shuffled[:number], shuffled[number:]
        earlier = np.setdiff1d(np.arange(total), asked)
        count = max(self.settings.compared // tasks, 10)
        return Sample(
            draw_steps(episodes, asked, max(self.settings.asked // tasks, 5), self.rng),
            draw_steps(episodes, others, count, self.rng),
            draw_steps(episodes, earlier, count, self.rng),
        )

    def compare(self, label: str, sample: Sample) -> Pairs:
        """Look at steps, showing progress."""
        material, reward = self.material, self.material.reward
        differs = None
        if reward is not None:
            differs = pays_differently(material.logs.tasks, sample.asked, reward)
        done, total = [0], 2 * sample.asked.reward.size  # each is looked up twice

        def progress(steps: int) -> None:
            done[0] += steps
            self.display.update(min(done[0], total), lambda: "")

        self.display.begin(f"diagnose: {label}", total, 0)
        try:
            return count_counterparts(sample, differs, progress)
        finally:
            self.display.end()

    def relabelled(self, sample: Sample, donors: int) -> Standing:
        """Where the logs stand if half of the steps are borrowed."""
        material, reward = self.material, self.material.reward
        assert reward is not None
        borrowed = relabelled(sample, material.logs.tasks, reward, donors, self.rng)
        return Standing.of(self.compare(f"relabelled, {donors} donors", borrowed))

    def replayed(self, sample: Sample) -> Standing:
        """Where the logs stand if others' policies make half of the steps."""
        visits = self._visits()
        every = np.arange(visits.reward.shape[1])
        joined = replayed(sample, self._drawn(visits, every))
        return Standing.of(self.compare("replayed", joined))

    def _fewest_donors(self, sample: Sample, everyone: Standing) -> int | None:
        """By halving; more donors never hurt."""
        if everyone.verdict != "told apart":
            return None
        low, high, part = 0, self.material.logs.num_tasks - 1, sample.part(PART)
        while high - low > 1:
            middle = (low + high + 1) // 2
            enough = self.relabelled(part, middle).verdict == "told apart"
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _visits(self) -> Episodes:
        """What other tasks' policies do in each task."""
        material = self.material
        assert material.simulator is not None
        self.display.begin("diagnose: replaying policies", VISITS, 0)
        try:
            replay = ReplayPolicies(rollouts=VISITS)
            key = jr.key(self.settings.seed)
            source = replay(
                material.logs, material.simulator, start=material.start, key=key
            )
            return jax.tree.map(np.asarray, source.visits)
        finally:
            self.display.end()


def _last_third(total: int) -> np.ndarray:
    first = min(2 * total // 3, max(total - FEWEST_ROLLOUTS, 0))
    return np.arange(first, total)
