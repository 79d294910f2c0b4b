"""What logs hold, whatever sets their tasks apart: starts, rewards, tasks unsolved."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from borelax.types import Episodes


@dataclass(frozen=True)
class Coverage:
    """Plain facts about logs."""

    unsolved: tuple[int, ...]
    """Tasks whose best rollout stays below the middle between what beginners usually
    get and what the best rollouts of the tasks usually get."""
    starts: float
    """How widely episodes start: spread of first states in units of the spread of all
    states, mean over coordinates; 0: always the same state."""
    rewarded_steps: float
    """Share of steps that pay more than the middle of the lowest and highest reward."""
    rewarded_tasks: float
    """Share of tasks with at least one such step."""
    constant_reward: float | None
    """The one reward that all steps pay; None: rewards vary."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self) | {"unsolved": list(self.unsolved)}


def cover(episodes: Episodes) -> Coverage:
    """Look at every step."""
    reward = np.asarray(episodes.reward)
    happened = episodes.happened()
    real = np.ones(reward.shape, bool) if happened is None else np.asarray(happened)
    low, high = float(reward[real].min()), float(reward[real].max())
    pays = real & (reward > (low + high) / 2)
    return Coverage(
        unsolved=_unsolved(np.where(real, reward, 0).sum(axis=(2, 3))),
        starts=_spread_of_starts(np.asarray(episodes.obs)),
        rewarded_steps=float(pays.sum() / real.sum()),
        rewarded_tasks=float(pays.any(axis=(1, 2, 3)).mean()),
        constant_reward=low if low == high else None,
    )


def _unsolved(returns: Float[np.ndarray, "N R"]) -> tuple[int, ...]:
    """``returns`` of rollouts, in the order in which they happened."""
    beginners = np.median(returns[:, : max(returns.shape[1] // 10, 1)])
    best = returns.max(axis=1)
    middle = (beginners + np.median(best)) / 2
    if np.median(best) <= beginners:  # nobody learned, or there was nothing to learn
        return ()
    return tuple(np.flatnonzero(best < middle).tolist())


def _spread_of_starts(obs: np.ndarray) -> float:
    """Of ``obs`` [N, R, E, H+1, obs]; a part of the states is enough."""
    first = obs[..., 0, :].reshape(-1, obs.shape[-1]).astype(np.float64)
    stride = max(obs.shape[1] // 50, 1)
    every = obs[:, ::stride].reshape(-1, obs.shape[-1]).astype(np.float64)
    spread = every.std(axis=0)
    moving = spread > 1e-6
    if not moving.any():
        return 0.0
    return float(np.minimum(first.std(axis=0)[moving] / spread[moving], 1).mean())
