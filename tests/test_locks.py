"""Laws of locks: one process at a time, and nobody waits for the dead."""

import errno
import fcntl
import subprocess
import sys

import pytest

from borelax.errors import ConfigError, DataError
from borelax.locks import alone_in

HOLD = "import sys, pathlib; from borelax.locks import alone_in\n"
HOLD += "with alone_in(pathlib.Path(sys.argv[1])): print('held', flush=True); input()"


@pytest.fixture
def other(tmp_path):
    """Another process that holds the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "a")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_another_processs_folder_is_refused_until_it_is_gone(other, tmp_path):
    with (
        pytest.raises(ConfigError, match=r"Another process is at work in .*a\. Wait"),
        alone_in(tmp_path / "a"),
    ):
        raise AssertionError("not reached")
    other.kill()
    with alone_in(tmp_path / "a", wait=True):
        pass
    with alone_in(tmp_path / "a"):
        pass


def test_errors_inside_pass_and_let_go(tmp_path):
    for _ in range(2):
        with pytest.raises(BlockingIOError), alone_in(tmp_path):
            raise BlockingIOError


def test_a_disk_without_locks_is_used_without(tmp_path, monkeypatch):
    def refuse(*_) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    done = []
    with alone_in(tmp_path):
        done.append(1)
    assert done


def test_what_is_no_folder_gets_a_sentence(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(DataError, match="a could not be opened: File exists"):
        alone_in(tmp_path / "a").__enter__()
