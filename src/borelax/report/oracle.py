"""What ``borelax oracle`` prints."""

from rich.console import Console
from rich.table import Table

from borelax.oracles.gridworld import gridworld_oracle
from borelax.tasks.gridworld import Gridworld

ARROWS = "·↑→↓←"


def print_oracle(gridworld: Gridworld, recompute: bool) -> None:
    """The exact returns, and the order in which the best agent searches the grid."""
    console = Console()
    with console.status("Solving the grid exactly"):
        oracle = gridworld_oracle(gridworld, recompute=recompute)
    size, horizon = gridworld.size, gridworld.horizon
    title = f"Gridworld {size}×{size}, H {horizon}, {gridworld.episodes} episodes"
    table = Table(title=title, title_style="bold")
    table.add_column("exact expected return")
    for number in range(gridworld.episodes):
        table.add_column(f"episode {number + 1}", justify="right")
    table.add_column("total", justify="right")
    names = {
        "Bayes-optimal": "bayes_optimal",
        "Thompson sampling, redrawn when empty": "thompson_per_step",
        "Thompson sampling, per episode": "thompson_per_episode",
        "task known": "known_task",
    }
    for title, name in names.items():
        values = oracle.per_episode.get(name)
        if values is None:
            table.add_row(title, *["too large"] * (gridworld.episodes + 1))
        else:
            table.add_row(title, *(f"{v:.3f}" for v in (*values, sum(values))))
    console.print(table)
    if oracle.plan is None:
        return
    for episode in range(gridworld.episodes):
        part = oracle.plan.search_actions[episode * horizon : (episode + 1) * horizon]
        line = "".join(ARROWS[action] for action in part)
        console.print(f"search, episode {episode + 1}: {line}", highlight=False)
