"""Where logs stand: how many pairs of tasks are told apart, ambiguous, or neither.

In: ``Pairs``. Out: counts and one word.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from borelax.ambiguity.counterparts import LEVEL, Pairs

HALF = 0.5
"""Two tasks are told apart if most of the steps that tell them have a counterpart."""


@dataclass(frozen=True)
class Standing:
    """Shares of all pairs of tasks."""

    told_apart: float
    """Most of their telling steps have a counterpart, at the 5 % level."""
    ambiguous: float
    """Most have none, at the 5 % level."""
    alike: float
    """Nothing in the logs tells them."""
    counterparts: float | None
    """Share of telling steps with a counterpart, over all pairs; None: none tell."""
    error: float | None
    """Its standard error, over rollouts."""

    @classmethod
    def of(cls, pairs: Pairs) -> "Standing":
        """Count the pairs."""
        upper = np.triu_indices(len(pairs.share), 1)
        share, error = pairs.share[upper], pairs.error[upper]
        margin = NormalDist().inv_cdf(1 - LEVEL) * error
        tells = not np.isnan(pairs.total)
        return cls(
            told_apart=float((share - margin > HALF).mean()),
            ambiguous=float((share + margin < HALF).mean()),
            alike=float(np.isnan(share).mean()),
            counterparts=pairs.total if tells else None,
            error=pairs.total_error if tells else None,
        )

    @property
    def unclear(self) -> float:
        """The rest: too few data to say."""
        return max(1 - self.told_apart - self.ambiguous - self.alike, 0.0)

    @property
    def verdict(self) -> str:
        """One of: told apart, ambiguous, alike, unclear.

        Definition 1 calls data ambiguous if two tasks are; at the 5 % level, chance
        makes that of one pair in twenty.
        """
        if self.alike == 1:
            return "alike"
        if self.ambiguous > LEVEL:
            return "ambiguous"
        enough = self.told_apart >= (1 - LEVEL) * (1 - self.alike)
        return "told apart" if enough else "unclear"

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "verdict": self.verdict,
            "pairs": {
                "told_apart": self.told_apart,
                "ambiguous": self.ambiguous,
                "unclear": self.unclear,
                "alike": self.alike,
            },
            "counterparts": self.counterparts,
            "counterparts_error": self.error,
        }
