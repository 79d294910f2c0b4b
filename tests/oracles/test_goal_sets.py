"""Bit sets against Python's own."""

import numpy as np

from borelax.oracles import goal_sets

NUM_GOALS = 150


def some_sets(num_sets: int) -> tuple[list[frozenset], np.ndarray]:
    """Random sets, half of them repeats that differ from others in few goals."""
    chance = np.random.default_rng(0)
    bits = chance.random((num_sets, NUM_GOALS)) < 0.1
    bits[num_sets // 2 :] = bits[: num_sets - num_sets // 2]
    bits[::3, 0] ^= True
    bits[::4, 70] ^= True
    bits[::5, 149] ^= True
    singles = goal_sets.single_goals(NUM_GOALS)
    words = np.zeros((num_sets, singles.shape[1]), np.uint64)
    for goal in range(NUM_GOALS):
        words[bits[:, goal]] |= singles[goal]
    return [frozenset(np.flatnonzero(row).tolist()) for row in bits], words


def test_count_and_overlap() -> None:
    sets, words = some_sets(40)
    assert goal_sets.count(words).tolist() == [len(one) for one in sets]
    assert goal_sets.overlap(words, words[7]).tolist() == [
        bool(s & sets[7]) for s in sets
    ]


def test_groups_hold_equal_sets_and_labels_best_rank_first() -> None:
    sets, words = some_sets(300)
    label = np.arange(300) // 7 % 2
    rank = np.random.default_rng(1).integers(0, 1000, 300)
    order, first = goal_sets.group_equal(words, label, rank=rank)
    assert sorted(order.tolist()) == list(range(300))
    groups = np.split(order, first[1:])
    keys = [{(sets[row], label[row]) for row in group} for group in groups]
    assert all(len(key) == 1 for key in keys)
    assert len(set.union(*keys)) == len(groups) < 300
    assert all(rank[group[0]] == rank[group].max() for group in groups)


def test_no_sets_make_no_groups() -> None:
    order, first = goal_sets.group_equal(np.zeros((0, 2), np.uint64))
    assert len(order) == len(first) == 0
