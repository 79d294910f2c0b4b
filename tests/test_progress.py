"""Laws of the progress display: a bar on a terminal, plain lines elsewhere."""

import io

from rich.console import Console

from borelax.progress import ProgressDisplay, Quiet


def shown(display: ProgressDisplay, notes: list[str]) -> None:
    """Two of five updates, continued to four."""
    display.begin("belief", total=5, done=2)
    for done in (3, 4):
        display.update(done, lambda done=done: notes.append(done) or f"loss {done}.5")
    display.end()


def test_a_terminal_shows_a_bar():
    out, notes = io.StringIO(), []
    shown(ProgressDisplay(Console(file=out, force_terminal=True, width=120)), notes)
    text = out.getvalue()
    assert "\x1b[" in text and "━" in text
    assert "belief" in text and "4/5" in text and "loss 4.5" in text


def test_elsewhere_there_are_plain_lines_now_and_then():
    out, notes = io.StringIO(), []
    display = ProgressDisplay(Console(file=out, width=20))
    display.seconds_between_lines = 0.0
    shown(display, notes)
    lines = out.getvalue().splitlines()
    assert len(lines) == 2, "a line is not broken at the width of no terminal"
    assert lines[0].startswith("belief: 3/5, ") and lines[0].endswith(
        " s left, loss 3.5"
    )
    assert lines[1].startswith("belief: 4/5, ") and "\x1b" not in out.getvalue()
    display.prefix = "second run: "
    shown(display, notes)
    assert out.getvalue().splitlines()[2].startswith("second run: belief: 3/5, ")


def test_lines_are_rare_and_notes_are_asked_for_only_when_shown():
    out, notes = io.StringIO(), []
    shown(ProgressDisplay(Console(file=out)), notes)
    assert out.getvalue() == "" and notes == []


def test_quiet_shows_nothing(capsys):
    display = Quiet()
    display.seconds_between_lines = 0.0
    shown(display, [])
    assert capsys.readouterr() == ("", "")


def test_a_display_is_used_for_one_phase_after_another():
    out = io.StringIO()
    display = ProgressDisplay(Console(file=out, force_terminal=True, width=120))
    for label in ("collect", "meta"):
        display.begin(label, total=1, done=0)
        display.update(1, lambda: "")
        display.end()
        display.end()  # an error after the end may end it again
    assert "collect" in out.getvalue() and "meta" in out.getvalue()


def test_on_a_narrow_terminal_counts_are_not_cut_for_the_metrics():
    out, notes = io.StringIO(), []
    shown(ProgressDisplay(Console(file=out, force_terminal=True, width=80)), notes)
    assert "4/5" in out.getvalue() and notes == []
