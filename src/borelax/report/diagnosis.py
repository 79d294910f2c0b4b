"""What ``borelax diagnose`` prints: a table, a verdict, or JSON."""

import json

from rich.console import Console
from rich.table import Table

from borelax.ambiguity.diagnose import Diagnosis
from borelax.ambiguity.standing import Standing
from borelax.ambiguity.verdict import sentences


def print_diagnosis(diagnosis: Diagnosis, title: str, console: Console) -> None:
    """Pairs of tasks before and after repair, facts about the logs, the verdict."""
    table = Table(title=title, title_style="bold")
    table.add_column("pairs of tasks")
    for name in ("told apart", "ambiguous", "unclear", "alike", "counterparts"):
        table.add_column(name, justify="right")
    rows = {
        "as logged": diagnosis.as_logged,
        "rewards relabelled": diagnosis.relabelled,
        "policies replayed": diagnosis.replayed,
    }
    for name, standing in rows.items():
        if standing is not None:
            table.add_row(name, *_cells(standing))
    console.print(table)
    coverage = diagnosis.coverage
    facts = (
        f"Starts spread over {coverage.starts:.0%} of the spread of all states; "
        f"{coverage.rewarded_steps:.1%} of the steps and {coverage.rewarded_tasks:.0%} "
        "of the tasks have rewards in the upper half."
    )
    for line in (facts, *sentences(diagnosis)):
        console.print(line, highlight=False, soft_wrap=True)


def print_json(diagnosis: Diagnosis) -> None:
    """The same for machines, on standard output."""
    content = diagnosis.to_json() | {"sentences": sentences(diagnosis)}
    print(json.dumps(content, indent=2, allow_nan=False))


def _cells(standing: Standing) -> list[str]:
    shares = (standing.told_apart, standing.ambiguous, standing.unclear, standing.alike)
    found = standing.counterparts
    matched = "" if found is None else f"{found:.0%} ± {standing.error or 0:.0%}"
    return [*(f"{share:.0%}" for share in shares), matched]
