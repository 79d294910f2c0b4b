"""The words and numbers of a report: what a run says, in sentences and tables."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from borelax.report.again import command_of, install_of
from borelax.report.meanings import DOMAINS, PHASES, RELABELLINGS
from borelax.report.run_data import RunData
from borelax.report.scene_svg import first_find
from borelax.report.scenes import Scenes
from borelax.report.svg import Bar

BIBTEX = """\
@inproceedings{dorfman2021offline,
  title     = {Offline Meta Reinforcement Learning -- Identifiability Challenges and
               Effective Data Collection Strategies},
  author    = {Dorfman, Ron and Shenfeld, Idan and Tamar, Aviv},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {34},
  year      = {2021},
  note      = {arXiv:2008.02598, earlier: Offline Meta Learning of Exploration},
  url       = {https://arxiv.org/abs/2008.02598}
}
@software{borelax,
  title   = {borelax: learning to explore from logs, in JAX},
  author  = {{The borelax authors}},
  version = {VERSION}
}"""

PHASE_HEAD = ("phase", "state", "seconds")


def title(run: RunData) -> str:
    """The domain in words."""
    return DOMAINS.get(subject(run), subject(run) or run.name)


def subtitle(run: RunData) -> str:
    """Which run this is, as HTML."""
    preset = run.settings.get("preset", "unknown preset")
    seeds = run.settings.get("num_seeds")
    several = f", {seeds} seed{'s' * (seeds != 1)}" if seeds else ""
    chosen_by = (run.settings.get("evaluate") or {}).get("validation")
    tasks = "validation tasks" if chosen_by else ""
    parts = [f"run “{run.name}”", f"preset {preset}{several}", logs(run), tasks]
    return escape(" · ".join(part for part in parts if part))


def unfinished(run: RunData) -> str:
    """What a run without results has done so far."""
    states = ", ".join(f"{phase} {state}" for phase, state in run.states.items())
    return escape(f"This run has no results yet: {states}.")


def numbers(results: dict[str, Any]) -> list[tuple[str, str]]:
    """The big numbers, each with what it is."""
    returns, seeds = results["return"], results["seeds"]
    episodes = len(returns["per_episode"][0])
    spread = f" ± {returns['std']:.2f}" if seeds > 1 else ""
    over = "return" if episodes == 1 else f"return, {episodes} episodes together"
    boxes = [(_number(returns["mean"], 2) + spread, over)]
    share = results.get("fraction_of_bayes_optimal")
    if share is not None:
        best = results["oracle"]["on_test_tasks"]
        boxes.append((f"{100 * share:.1f} %", f"of {_best(results)} ({best:.2f})"))
    total = sum(results["wall_seconds"].values())
    boxes.append((f"{total:,.0f} s", f"of computing{_in_larger_units(total)}"))
    return boxes


def sentence(results: dict[str, Any]) -> str:
    """What the numbers say, for a person in a hurry, as HTML."""
    per_episode = np.array(results["return"]["per_episode"], float).mean(axis=0)
    parts = []
    if len(per_episode) > 1:
        later = per_episode[1:].mean()
        parts.append(
            f"The first episode, in which the agent has to find out, returns "
            f"{_number(per_episode[0], 1)}; later ones {_number(later, 1)} each."
        )
    frozen = results["belief"].get("frozen_return")
    if frozen is not None:
        parts.append(
            "The same agent with its belief frozen at the start returns "
            f"{_number(frozen, 1)} in all."
        )
    if not results["oracle"]["exact"] and results["oracle"].get("upper_bound"):
        bound = results["oracle"]["upper_bound"]
        parts.append(f"No agent can exceed {bound:.1f}.")
    if results["oracle"]["bayes_optimal"] is None:
        parts.append("What the best possible agent returns is not known here.")
    return escape(" ".join(parts))


def bars(results: dict[str, Any]) -> list[Bar]:
    """The run beside the oracles, best first; its own bar in another colour."""
    oracle, returns = results["oracle"], results["return"]
    spread = returns["std"] if results["seeds"] > 1 else None
    on_test = oracle.get("on_test_tasks")
    rows = {
        "task known": oracle.get("known_task"),
        _best(results): oracle.get("bayes_optimal") if on_test is None else on_test,
        "Thompson sampling, redrawn when ruled out": oracle.get("thompson_per_step"),
        "Thompson sampling, per episode": oracle.get("thompson_per_episode"),
        "goal-seeker without memory": oracle.get("memoryless"),
        "borelax, belief frozen": results["belief"].get("frozen_return"),
    }
    found = [Bar(name, float(v), None, 6) for name, v in rows.items() if v is not None]
    relabel = RELABELLINGS.get(results["relabel"], results["relabel"])
    found.append(Bar(f"borelax, {relabel}", float(returns["mean"]), spread, 0))
    return sorted(found, key=lambda bar: -bar.value)


def oracle_bars(results: dict[str, Any]) -> list[Bar]:
    """The same without the run's own."""
    return [bar for bar in bars(results) if "borelax" not in bar.name]


def bars_described(bars: list[Bar]) -> str:
    """The bars in words."""
    return "Returns: " + ", ".join(f"{bar.name} {bar.value:.1f}" for bar in bars) + "."


def bars_caption(results: dict[str, Any]) -> str:
    """What the bars are."""
    whisker = " The line on borelax's bar is one standard deviation over seeds."
    return (
        "Return on the test's tasks, all episodes together, beside agents computed "
        + ("exactly or searched for." + whisker * (results["seeds"] > 1))
    )


def by_episode(values: np.ndarray) -> str:
    """How the return grows, in words."""
    means = [f"{value:.1f}".replace("-", "−") for value in values.mean(axis=1)]
    return f"Mean return by episode: {', '.join(means)}."


def strip_caption(scenes: Scenes, task: int) -> str:
    """What the strip of moments shows."""
    belief = "exact posterior" if scenes.learned is None else "learned belief"
    found = first_find(scenes, 0, task)
    horizon = scenes.reward.shape[-1]
    kind, when = scenes.frame.kind, "The agent never finds it in this rollout."
    if found < scenes.reward[0, task].size:
        episode, step = divmod(found, horizon)
        when = f"It is found in episode {episode + 1}, step {step + 1}."
    if kind == "winds":
        task_words = f"One test task, {scenes.labels[task]}"
        return f"{task_words}: the agent's path (orange) to the goal."
    return (
        f"One test task, {scenes.labels[task]} (star). Blue: the {belief}, "
        f"{scenes.frame.means}. Orange: the agent's path in this episode. {when}"
        + " Any place outside pays, also beyond this picture."
        * (kind == "ring")
    )


def player_caption(run: RunData, scenes: Scenes) -> str:
    """How to use the player."""
    order = bright = ""
    if len(scenes.labels) < scenes.num_tested:
        order = " Tasks are listed from the worst return to the best."
    apart = (run.settings.get("relabel") or {}).get("decode_apart")
    if scenes.frame.kind == "plane" and scenes.learned is not None and not apart:
        bright = (
            " Where the learned belief is bright matters more than how bright: it "
            "learned from agents that went where they were paid."
        )
    return (
        "Move the slider, by pointer or with the arrow keys, or press Play. "
        f"Thin orange: earlier episodes.{order}{bright}"
    )


def episodes_of(run: RunData) -> int:
    """Episodes per rollout in training; 0: unknown."""
    return 0 if run.experiment is None else run.experiment.family.spec.episodes


def facts_section(run: RunData) -> str:
    """Seconds, settings, versions, how to make it again, how to cite."""
    version = str(run.environment.get("borelax", ""))
    return (
        "<h2>What was run</h2>"
        f"{table('Phases', _phase_rows(run), PHASE_HEAD)}"
        f"<h3>Make it again</h3>{_again(run)}"
        f"<h3>Versions</h3>{table('Versions', _flat(run.environment))}"
        "<h3>Cite</h3>"
        f"<pre>{escape(BIBTEX.replace('VERSION', version))}</pre>"
        "<details><summary>Every setting</summary>"
        f"{table('Every setting', _flat(run.settings))}</details>"
    )


def _again(run: RunData) -> str:
    """What to type; and whose the logs are, if not the run's own."""
    command = command_of(run.experiment) if run.experiment else None
    if run.experiment is None or command is None:
        return "<p>No command says it: call borelax.run(experiment, out).</p>"
    typed = f"<pre>{escape(install_of(run.experiment))}\n{escape(command)}</pre>"
    if run.states["collect"] != "done" or "collect" in (run.seconds or {"collect"}):
        return typed
    return (
        f"{typed}<p class='small'>This run spent no time on its logs: they are those "
        "of another run of these settings (<code>--logs</code>). The command makes "
        "them anew.</p>"
    )


def _phase_rows(run: RunData) -> list[tuple[str, ...]]:
    rows = []
    for phase, words in PHASES.items():
        seconds = run.seconds.get(phase)
        rows.append(
            (words, run.states[phase], "" if seconds is None else f"{seconds:.1f}")
        )
    return rows


def table(
    name: str, rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()
) -> str:
    """Rows as HTML, each named by its first cell; scrolls if it is too wide."""
    top = "".join(f'<th scope="col">{escape(word)}</th>' for word in head)
    lines = [f"<tr>{top}</tr>"] if head else []
    for first, *rest in rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    scrolls = f'class="wide" role="region" tabindex="0" aria-label="{escape(name)}"'
    return f"<div {scrolls}><table>{''.join(lines)}</table></div>"


def _flat(value: Any, path: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        rows = []
        for name, inner in value.items():
            rows += _flat(inner, f"{path}.{name}" if path else str(name))
        return rows
    words = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [(path, words)]


def subject(run: RunData) -> str:
    """The domain's name."""
    if run.results is not None:
        return str(run.results.get("domain", ""))
    family = getattr(run.experiment, "family", None)
    return str(getattr(family, "name", ""))


def logs(run: RunData) -> str:
    """What was done with the logs, in words, and whether a belief was learned."""
    relabel = getattr(run.experiment, "relabel", None)
    name = str(getattr(relabel, "name", (run.results or {}).get("relabel", "")))
    exact = ", given the exact posterior" * bool(run.settings.get("exact_belief"))
    return RELABELLINGS.get(name, name) + exact


def _best(results: dict[str, Any]) -> str:
    return "Bayes-optimal" if results["oracle"]["exact"] else "the best known search"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _in_larger_units(seconds: float) -> str:
    if seconds < 120:
        return ", all phases"
    words = f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
    return f", all phases ({words})"
