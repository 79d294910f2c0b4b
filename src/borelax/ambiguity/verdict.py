"""A diagnosis in a few plain sentences."""

from borelax.ambiguity.counterparts import LEVEL
from borelax.ambiguity.diagnose import Diagnosis
from borelax.ambiguity.standing import Standing

MOST_NAMED = 10
"""Tasks that are named one by one."""


def sentences(diagnosis: Diagnosis) -> list[str]:
    """What was found, what would help, and what cannot be known."""
    return [
        *_as_logged(diagnosis),
        *_remedies(diagnosis),
        *_coverage(diagnosis),
        *_unknown(diagnosis),
    ]


def _as_logged(diagnosis: Diagnosis) -> list[str]:
    standing, kind = diagnosis.as_logged, diagnosis.differs_in
    pairs = f"{standing.ambiguous:.0%} of the pairs of tasks are ambiguous"
    said = {
        "told apart": "Told apart: as they are, these logs tell the tasks apart.",
        "ambiguous": f"Ambiguous: {pairs}. Where their {kind} differ, mostly only one "
        "of the two was there, so that one task could have made both logs.",
        "unclear": f"Unclear: {pairs} and {standing.told_apart:.0%} are told apart; "
        "for the others there are too few data.",
        "alike": "Alike: nothing in these logs shows that the tasks differ.",
    }
    if standing.counterparts is None:
        return [said[standing.verdict]]
    matched = (
        f"Of the steps that tell a task from another, {standing.counterparts:.0%} "
        f"± {standing.error or 0:.0%} have a counterpart: the same was done in another "
        "task, and something else came of it."
    )
    return [said[standing.verdict], matched]


def _remedies(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.as_logged.verdict == "told apart":
        return ["No relabelling or replaying is needed."]
    if diagnosis.relabelled is not None:
        return [
            _remedy("Reward relabelling (--relabel rewards)", diagnosis.relabelled)
        ] + ([] if diagnosis.donors is None else [_donors(diagnosis.donors)])
    if diagnosis.replayed is not None:
        return [_remedy("Policy replaying (--relabel policies)", diagnosis.replayed)]
    if diagnosis.differs_in == "rewards":
        return ["The tasks differ in rewards: relabelling them is the repair to try."]
    return ["The tasks differ in transitions: replay policies when collecting."]


def _remedy(name: str, after: Standing) -> str:
    if after.verdict == "told apart":
        told = f"{after.told_apart:.0%} of the pairs are then told apart"
        return f"{name} repairs this: {told}."
    return (
        f"{name} does not repair all of this: {after.told_apart:.0%} of the pairs are "
        f"then told apart, {after.ambiguous:.0%} stay ambiguous."
    )


def _donors(number: int) -> str:
    if number == 1:
        return "It is enough that each task borrows from one other."
    return f"Each task must borrow from at least {number} others."


def _coverage(diagnosis: Diagnosis) -> list[str]:
    coverage, said = diagnosis.coverage, []
    if coverage.constant_reward is not None:
        said.append(
            f"Every step of these logs pays {coverage.constant_reward:g}: there is no "
            "reward to learn from."
        )
    if coverage.unsolved:
        named = ", ".join(str(task) for task in coverage.unsolved[:MOST_NAMED])
        more = len(coverage.unsolved) - MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        said.append(f"Never solved in these logs: task {named}{rest}.")
    ways = diagnosis.ways
    if ways is not None and ways.missing > LEVEL:
        said.append(
            f"For {ways.missing:.0%} of the pairs of tasks none of {ways.episodes:,} "
            "episodes goes from where the first pays to where the second does: how to "
            "search on is not shown. More starts, or agents that wander, would show it."
        )
    return said


def _unknown(diagnosis: Diagnosis) -> list[str]:
    repaired = diagnosis.as_logged.verdict == "told apart"
    if not diagnosis.knows_rewards:
        return [
            "The reward function is not known: where only one task has been, whether "
            "the others would have paid the same is a guess from those nearby"
            + ("." if repaired else ", and relabelling could not be tried.")
        ]
    if not (repaired or diagnosis.knows_policies or diagnosis.relabelled):
        return ["The agents' policies are not known: replaying could not be tried."]
    return []
