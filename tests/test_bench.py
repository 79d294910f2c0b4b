"""The benchmark counts what it says it counts."""

import io
import itertools
import json

import jax
import jax.numpy as jnp
from pytest import approx
from rich.console import Console

from borelax.bench import PRODUCTS, Clock, count_flops, matmul_rate
from borelax.report.bench import print_bench
from tests.tiny_run import command

LEFT, RIGHT = jnp.ones((6, 5)), jnp.ones((5, 7))


def test_a_product_costs_two_operations_per_term() -> None:
    assert count_flops(jnp.matmul, LEFT, RIGHT) == 2 * 6 * 5 * 7


def test_loops_cost_every_turn() -> None:
    """Also where XLA itself counts one: in scans, in scans of scans, under jit."""

    def turns(x, length):
        return jax.lax.scan(lambda x, _: (x @ x, None), x, length=length)[0]

    square = 2 * 5**3
    assert count_flops(lambda x: turns(x, 9), jnp.ones((5, 5))) == approx(
        9 * square, rel=0.02
    )
    nested = jax.jit(
        lambda x: jax.lax.scan(lambda x, _: (turns(x, 3), None), x, length=4)[0]
    )
    assert count_flops(nested, jnp.ones((5, 5))) == approx(12 * square, rel=0.05)


def test_what_is_no_array_is_left_alone() -> None:
    assert count_flops(lambda x, name: x @ x, jnp.ones((4, 4)), "name") == 2 * 4**3


def test_the_clock_leaves_out_the_chunk_that_compiles(monkeypatch) -> None:
    times = iter([100.0, 103.0, 105.0, 109.0])
    monkeypatch.setattr("borelax.bench.time.perf_counter", lambda: next(times))
    clock = Clock()
    for done in range(4):
        clock.record(done, {})
    assert clock.seconds_per_chunk() == 2.0


def test_a_matmuls_rate_counts_all_products(monkeypatch) -> None:
    clock = itertools.count(0.0)  # every call takes one second
    monkeypatch.setattr("borelax.bench.time.perf_counter", lambda: next(clock))
    assert matmul_rate((3, 8, 4, 5)) == PRODUCTS * 2 * 3 * 8 * 4 * 5


def test_every_phase_is_measured(tmp_path, capsys) -> None:
    domain = "escape-room"
    file = tmp_path / "speed.json"
    words = ("--preset", "tiny", "--no-deterministic", "--out", file)
    assert command("bench", domain, *words) == 0
    measured = json.loads(file.read_text())
    assert measured["domain"] == domain and measured["environment"]["devices"]
    phases = {phase["phase"]: phase for phase in measured["phases"]}
    assert list(phases) == ["collect", "belief", "meta", "evaluate"]
    for phase in phases.values():
        assert phase["achieved"] == approx(phase["per_second"] * phase["flops"])
        assert phase["ratio"] == approx(phase["achieved"] / phase["matmul"])
        assert phase["flops"] > 100 and phase["per_second"] > 0
    assert phases["evaluate"]["unit"] == "steps"
    assert "GFLOP/s" in capsys.readouterr().out


def test_the_table_shows_the_figures() -> None:
    row = {
        "phase": "meta",
        "unit": "updates",
        "per_second": 1234.0,
        "flops": 2e6,
        "achieved": 2.468e9,
        "product": [3, 512, 128, 64],
        "matmul": 9.872e9,
        "ratio": 0.25,
    }
    environment = {"devices": ["cpu"]}
    measured = {"domain": "wind", "preset": "quick", "environment": environment}
    out = io.StringIO()
    print_bench(measured | {"phases": [row]}, Console(file=out, width=120))
    shown = out.getvalue()
    for text in ("1,234 updates", "2.00", "2.5", "9.9", "0.25", "3·512×128×64"):
        assert text in shown
