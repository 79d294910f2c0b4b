"""Sets of goals as bits: goal i of a set is bit i % 64 of 64-bit word i // 64.

A table of N sets is an array [N, words], so any number of goals fits and set algebra
is ``&``, ``|`` and ``~`` on whole tables.
"""

import numpy as np


def single_goals(num_goals: int) -> np.ndarray:
    """The sets {0}, {1}, … as rows [num_goals, words]."""
    words = max(1, -(-num_goals // 64))
    goals = np.arange(num_goals)
    sets = np.zeros((num_goals, words), np.uint64)
    sets[goals, goals // 64] = np.left_shift(
        np.uint64(1), (goals % 64).astype(np.uint64)
    )
    return sets


def count(sets: np.ndarray) -> np.ndarray:
    """Number of goals in each set: [N, words] to [N]."""
    return np.bitwise_count(sets).sum(axis=-1, dtype=np.int32)


def overlap(sets: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether each set shares a goal with ``other``, one set or one per row: [N]."""
    return ((sets & other) != 0).any(axis=-1)


def group_equal(
    sets: np.ndarray, *labels: np.ndarray, rank: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """An order that brings equal rows together, and where in it each group starts.

    Rows are equal if their set and every label [N] are. Within a group, rows come in
    descending order of the integers ``rank`` [N], if given.
    """
    columns = [*labels, *sets.T]
    by = columns if rank is None else [-rank, *columns]
    order = np.lexsort(by)
    differs = np.zeros(len(order), bool)
    differs[:1] = True
    for column in columns:
        ordered = column[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(differs)
