"""The command line: ``borelax run | collect | belief | meta | evaluate | oracle | …``.

Exit codes: 0 done, 2 bad configuration, 3 bad data, 4 numerical failure, 130 stopped,
141 nobody reads what it prints any more.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from borelax import __version__
from borelax.errors import BorelaxError, ConfigError, require

USAGE = """\
borelax learns to explore from logs.

  borelax run DOMAIN        all phases, then a table and report.html
  borelax collect DOMAIN    phase 1 alone: train one agent per task, keep the logs
  borelax belief RUN        phase 3 alone, in the folder of a run
  borelax meta RUN          phase 4 alone
  borelax evaluate RUN      phase 5 alone, then the table
  borelax report RUN        write report.html, the run on one page; or its figures
  borelax compare RUN RUN   several runs side by side on one page
  borelax diagnose LOGS     can these logs tell the tasks apart?
  borelax oracle DOMAIN     what the best possible agents return
  borelax bench DOMAIN      how fast each phase is on this machine
  borelax reproduce table1  the paper's Table 1, each cell beside the published one

Domains: gridworld, semicircle, wind, wind-hard, escape-room, half-cheetah-vel,
ant-semicircle. The last two need `pip install borelax[mujoco]`.
Every setting is a flag: `borelax run gridworld --help` lists them.
A run that was stopped goes on when the same command is given again.
"""

GPU_FLAGS = ("--xla_gpu_enable_triton_gemm=false",)
"""Other kernels for products this small compile longer and run no faster."""
DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


def main(argv: list[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(run_command(sys.argv[1:] if argv is None else argv))


def run_command(argv: list[str]) -> int:
    """Run one command; failures become a sentence and an exit code."""
    try:
        _dispatch(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # as with `borelax … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except BorelaxError as error:
        print(f"borelax: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("borelax: stopped.", file=sys.stderr)
        return 130
    except SystemExit as exit_:  # flags that cannot be parsed, or --help
        return exit_.code if isinstance(exit_.code, int) else 2
    return 0


def _dispatch(argv: list[str]) -> None:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return
    if argv[0] == "--version":
        print(f"borelax {__version__}")
        return
    if argv[0] not in COMMANDS:
        known = ", ".join(COMMANDS)
        raise ConfigError(f"There is no command {argv[0]!r}; choose from {known}.")
    _prepare_jax("--no-deterministic" not in [x.replace("_", "-") for x in argv])
    COMMANDS[argv[0]](argv[0], argv[1:])


def _prepare_jax(deterministic: bool) -> None:
    """Settings that must be made before JAX looks for devices."""
    wanted = [*GPU_FLAGS, *([DETERMINISTIC] if deterministic else [])]
    given = os.environ.get("XLA_FLAGS", "")
    added = [flag for flag in wanted if flag.split("=")[0] not in given]
    os.environ["XLA_FLAGS"] = " ".join([given, *added]).strip()
    import jax

    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
        folder = Path(home) / "borelax" / f"xla-{jax.__version__}"
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def _run(command: str, argv: list[str]) -> None:
    from borelax.options import parse_domain
    from borelax.pipeline import run
    from borelax.report.printed import Printed
    from borelax.report.table import print_results

    experiment, options = parse_domain(command, argv)
    results = run(
        experiment,
        options.folder,
        logs=options.logs,
        checkpoint_seconds=options.checkpoint_seconds,
    )
    print_results(results, Printed())
    print(f"Results: {options.folder / 'results.json'}")
    if options.report:
        from borelax.report.write import report_line

        print(report_line(options.folder, experiment))


def _collect(command: str, argv: list[str]) -> None:
    from borelax.options import parse_domain
    from borelax.pipeline import Pipeline
    from borelax.progress import ProgressDisplay

    experiment, options = parse_domain(command, argv)
    require(options.logs is None, "`borelax collect` makes logs; it takes no --logs.")
    folder, display = options.folder, ProgressDisplay()
    logs = Pipeline(experiment, folder, display, options.checkpoint_seconds).logs
    print(
        f"{logs.num_tasks} tasks × {logs.num_rollouts} rollouts, "
        f"{logs.nbytes / 1e6:.0f} MB in memory: {folder}"
    )


def _phase(command: str, argv: list[str]) -> None:
    from borelax.options import parse_run
    from borelax.pipeline import Pipeline
    from borelax.progress import ProgressDisplay
    from borelax.report.printed import Printed
    from borelax.report.table import print_results
    from borelax.run_folder import require_done
    from borelax.tasks.family import name_of

    experiment, folder, seconds = parse_run(command, argv)
    needed = PHASES_BEFORE[command]
    if experiment.exact_belief:
        needed = tuple(phase for phase in needed if phase != "belief")
    require_done(folder, needed, name_of(experiment.family))
    pipeline = Pipeline(experiment, folder, ProgressDisplay(), seconds)
    if command == "evaluate":
        print_results(pipeline.results(), Printed())
        return
    _ = pipeline.model if command == "belief" else pipeline.policies
    print(f"{command}: done, in {folder}")


def _report(command: str, argv: list[str]) -> None:
    from borelax.options_report import parse_report
    from borelax.report.write import draw_run, write_page

    folder, options = parse_report(command, argv)
    run, pictures = draw_run(folder)
    print(f"Report: {write_page(run, pictures, options.out)}")
    if options.style == "paper":
        from borelax.report.paper import write_figures

        figures = options.figures or folder / "figures"
        for path in write_figures(run, pictures, figures):
            print(f"Figure: {path}")
        for problem in run.problems:
            print(problem, file=sys.stderr)


def _compare(command: str, argv: list[str]) -> None:
    from borelax.options_report import parse_compare
    from borelax.report.compare import write_comparison

    folders, out = parse_compare(command, argv)
    print(f"Comparison: {write_comparison(folders, out)}")


def _diagnose(command: str, argv: list[str]) -> None:
    from borelax.any_logs import open_logs
    from borelax.options import parse_diagnose
    from borelax.progress import ProgressDisplay
    from borelax.report.diagnosis import print_diagnosis, print_json
    from borelax.report.diagnosis_figure import draw_diagnosis
    from borelax.report.printed import Printed

    path, options = parse_diagnose(command, argv)
    material = open_logs(path)
    if not options.ask_rewards:
        material = material.steps_alone()
    diagnosis = options.diagnose(material, ProgressDisplay())
    if options.json:
        print_json(diagnosis)
    else:
        print_diagnosis(diagnosis, str(path), Printed())
    if options.plot is not None:
        draw_diagnosis(diagnosis, options.plot)
        print(f"Picture: {options.plot}", file=sys.stderr if options.json else None)


def _oracle(command: str, argv: list[str]) -> None:
    from borelax.options import parse_oracle
    from borelax.report.oracle import print_oracle

    print_oracle(*parse_oracle(command, argv))


def _bench(command: str, argv: list[str]) -> None:
    from borelax.bench import bench
    from borelax.files import write_json
    from borelax.options import parse_bench
    from borelax.progress import ProgressDisplay
    from borelax.report.bench import print_bench
    from borelax.report.printed import Printed

    experiment, out = parse_bench(command, argv)
    measured = bench(experiment, ProgressDisplay())
    print_bench(measured, Printed())
    if out is not None:
        write_json(out, measured)
        print(f"Figures: {out}")


def _reproduce(command: str, argv: list[str]) -> None:
    from borelax.options import parse_reproduce
    from borelax.report.printed import Printed
    from borelax.report.table1 import print_table1

    table, cells = parse_reproduce(command, argv)
    print_table1(table.run(cells), Printed())
    print(f"Table: {table.out / 'table1.json'}")


PHASES_BEFORE = {
    "belief": ("collect",),
    "meta": ("collect", "belief"),
    "evaluate": ("collect", "belief", "meta"),
}

COMMANDS: dict[str, Callable[[str, list[str]], None]] = {
    "run": _run,
    "collect": _collect,
    "belief": _phase,
    "meta": _phase,
    "evaluate": _phase,
    "report": _report,
    "compare": _compare,
    "diagnose": _diagnose,
    "oracle": _oracle,
    "bench": _bench,
    "reproduce": _reproduce,
}
