"""The table of ``borelax bench``."""

from typing import Any

from rich.console import Console
from rich.table import Table


def print_bench(measured: dict[str, Any], console: Console) -> None:
    """One row per phase; rates in units a person can read."""
    devices = ", ".join(measured["environment"]["devices"])
    title = f"{measured['domain']}, {measured['preset']}, on {devices}"
    table = Table(title=title, title_style="bold")
    table.add_column("phase")
    for name in ("per second", "MFLOP each", "GFLOP/s", "matmul GFLOP/s", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("its shape", no_wrap=True)
    for row in measured["phases"]:
        count, rows, inner, columns = row["product"]
        table.add_row(
            row["phase"],
            f"{row['per_second']:,.0f} {row['unit']}",
            f"{row['flops'] / 1e6:,.2f}",
            f"{row['achieved'] / 1e9:,.1f}",
            f"{row['matmul'] / 1e9:,.1f}",
            f"{row['ratio']:.2f}",
            f"{count}·{rows}×{inner}×{columns}",
        )
    console.print(table)
