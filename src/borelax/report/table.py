"""The table that ends a run."""

from typing import Any

from rich.console import Console
from rich.table import Table


def print_results(results: dict[str, Any], console: Console) -> None:
    """Show returns beside the oracle's, the belief's error and the seconds."""
    returns, oracle = results["return"], results["oracle"]
    seeds, best = results["seeds"], oracle["on_test_tasks"]
    title = f"{results['domain']}, {results['preset']}, relabel {results['relabel']}"
    title += f", {seeds} seed{'s' * (seeds > 1)}"
    if results.get("tested_on") == "validation":
        title += ", validation tasks"
    table = Table(title=title, title_style="bold")
    table.add_column("")
    table.add_column("return", justify="right")
    name_of_best = "Bayes-optimal" if oracle["exact"] else "best known search"
    known = oracle["known_task"] is not None
    if known:
        table.add_column(f"of {name_of_best.replace('known ', '')}", justify="right")
    per_episode = zip(*returns["per_episode"], strict=True)
    for number, values in enumerate(per_episode, start=1):
        table.add_row(f"episode {number}", f"{sum(values) / seeds:.2f}")
    table.add_section()
    rows = {
        "borelax, all episodes": returns["mean"],
        name_of_best: oracle["bayes_optimal"] if best is None else best,
        "no agent can exceed": oracle.get("upper_bound"),
        "Thompson sampling, redrawn when ruled out": oracle.get("thompson_per_step"),
        "Thompson sampling, per episode": oracle.get("thompson_per_episode"),
        "without memory": oracle.get("memoryless"),
        "task known": oracle.get("known_task"),
        "borelax, belief frozen at the prior": results["belief"]["frozen_return"],
    }
    for name, value in rows.items():
        if value is not None:
            share = f"{value / best:.1%}" if best else "unknown"
            table.add_row(name, f"{value:.2f}", *([share] if known else []))
    console.print(table)
    console.print(_belief_line(results), highlight=False, soft_wrap=True)
    seconds = ", ".join(f"{k} {v:.1f}" for k, v in results["wall_seconds"].items())
    total = sum(results["wall_seconds"].values())
    line = f"Seconds: {seconds}; {total:.1f} in all."
    console.print(line, highlight=False, soft_wrap=True)


def _belief_line(results: dict[str, Any]) -> str:
    if results["exact_belief"]:
        return "The meta-agent was given the exact posterior."
    belief = results["belief"]
    if not {"prediction_error", "posterior_error"} & belief.keys():
        return "The best possible return and the exact posterior are not known here."
    if "prediction_error" in belief:
        error = belief["prediction_error"]
        return f"Belief: its predictions are {error:.3f} from the exact posterior's."
    line = f"Belief: {belief['posterior_error']:.3f} from the exact posterior"
    if "exact_plan_return" in belief:
        line += f"; the exact plan on it returns {belief['exact_plan_return']:.2f}"
    return line + "."
