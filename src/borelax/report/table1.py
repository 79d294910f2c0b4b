"""The table of ``borelax reproduce table1``."""

from typing import Any

from rich.console import Console
from rich.table import Table


def print_table1(table1: dict[str, Any], console: Console) -> None:
    """One row per cell that is done, beside what was published."""
    table = Table(title=f"Table 1, {table1['preset']}", title_style="bold")
    table.add_column("cell", no_wrap=True)
    for name in ("return", "per episode", "published", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in table1["cells"]:
        returns = cell["return"]
        table.add_row(
            cell["cell"],
            _spread(returns["mean"], returns["std"] if cell["seeds"] > 1 else None),
            ", ".join(f"{value:.1f}" for value in _per_episode(returns)),
            _published(cell["published"]),
            f"{sum(cell['wall_seconds'].values()):,.0f}",
        )
    console.print(table)
    for line in _notes(table1):
        console.print(line, highlight=False, soft_wrap=True)


def _per_episode(returns: dict[str, Any]) -> list[float]:
    """Means over seeds."""
    seeds = len(returns["per_episode"])
    return [sum(values) / seeds for values in zip(*returns["per_episode"], strict=True)]


def _spread(mean: float, std: float | None) -> str:
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def _published(published: dict[str, Any] | None) -> str:
    """The number beside ours; a star where it is another method's."""
    if published is None:
        return "–"
    star = " *" if published["per_episode"] else ""
    return _spread(published["mean"], published["std"]) + star


def _notes(table1: dict[str, Any]) -> list[str]:
    """What the table does not say itself."""
    notes = ["Returns are summed over both episodes; ± is the deviation over seeds."]
    if table1["meta_updates"] is not None:
        notes.append(
            f"Meta-agents were trained for {table1['meta_updates']:,} updates."
        )
    for published in (cell["published"] for cell in table1["cells"]):
        if published and published["per_episode"]:
            values = ", ".join(f"{value:.1f}" for value in published["per_episode"])
            seeds = published["seeds"]
            notes.append(
                f"* {published['method']}, {seeds} seeds; {values} per episode."
            )
    if any("collect" not in cell["wall_seconds"] for cell in table1["cells"]):
        notes.append("Seconds of what cells share are those of the cell that made it.")
    if table1["missing"]:
        notes.append(f"Not done yet: {', '.join(table1['missing'])}.")
    return list(dict.fromkeys(notes))
