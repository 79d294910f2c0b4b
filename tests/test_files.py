"""Laws of single files: whole or absent, on disk, and read back or refused."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from borelax import files, manifest, store
from borelax.errors import DataError


def test_json_keeps_order_and_unicode_and_refuses_nan(tmp_path):
    path = tmp_path / "größe.json"
    value = {"b": 1, "a": ["é", None, True, 0.1], "c": {}}
    store.write_json(path, value)
    assert store.read_json(path) == value
    assert list(store.read_json(path)) == ["b", "a", "c"]
    assert "é" in path.read_text("utf-8") and '\n  "a"' in path.read_text("utf-8")
    for bad in (float("nan"), float("inf"), {1, 2}, np.float32(1), "\ud800"):
        with pytest.raises(DataError, match=r"größe\.json was not written"):
            store.write_json(path, {"x": bad})
    assert store.read_json(path) == value


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b'{"a": NaN}', b"\xff", b"[" * 9**6, b"null", b"{} {}"]
)
def test_files_that_are_not_a_json_object_are_refused(tmp_path, data):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"^[^\n]*x\.json[^\n]*$"):
        store.read_json(path)


def test_lines_survive_a_torn_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    bad = {"x": np.float32(np.nan), "y": [jnp.asarray(1.5), float("-inf")], "z": "é"}
    store.append_lines(path, [{"step": 1}, bad])
    rows = [{"step": 1}, {"x": None, "y": [1.5, None], "z": "é"}]
    assert store.read_lines(path) == rows
    whole = path.read_bytes()
    for length in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:length])
        assert store.read_lines(path) == rows[:1]
    store.append_lines(path, [{"step": 2}])
    assert store.read_lines(path) == [{"step": 1}, {"step": 2}]
    path.write_bytes(b'{"st\n{"step": 2}\n')
    with pytest.raises(DataError, match=r"metrics\.jsonl is damaged"):
        store.read_lines(path)


def test_truncate_drops_rows_past_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    store.truncate_lines(path, lambda row: False)
    assert not path.exists()
    store.append_lines(path, [{"step": i} for i in range(5)])
    store.truncate_lines(path, lambda row: row["step"] <= 2)
    assert store.read_lines(path) == [{"step": i} for i in range(3)]
    store.append_lines(path, [{"other": 1}])  # valid JSON, and still not a metric
    with pytest.raises(DataError, match=r"metrics\.jsonl is damaged"):
        store.truncate_lines(path, lambda row: row["step"] <= 1)


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "x.npz": lambda path, i: store.save_arrays(path, {"i": np.asarray(i)}),
    "x.safetensors": lambda path, i: store.save_tree(path, {"i": jnp.asarray(i)}),
    "x.json": lambda path, i: store.write_json(path, {"i": i}),
    "x.jsonl": lambda path, i: store.truncate_lines(path, lambda row: False),
    "checkpoint.safetensors": lambda path, i: store.save_checkpoint(
        path.parent, {"i": jnp.asarray(i)}, {"i": i}
    ),
    "manifest.json": lambda path, i: manifest.seal(path.parent, [], {"i": i}),
}


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, name, step):
    path = tmp_path / name
    store.append_lines(path, [{"old": 1}])
    if name != "x.jsonl":
        WRITERS[name](path, 1)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(DataError, match=f"{name} could not be written: No space"):
            WRITERS[name](path, 2)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_bytes_are_on_disk_before_and_after_the_rename(tmp_path, monkeypatch):
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        calls.append("folder" if is_folder else "file")
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        calls.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    store.write_json(tmp_path / "x.json", {})
    assert calls == ["file", "replace", "folder"]
    store.append_lines(tmp_path / "x.jsonl", [{}])
    assert calls[3:] == ["file", "folder"]


def test_a_killed_write_leaves_the_old_file_and_its_rest_is_removed(
    tmp_path, monkeypatch
):
    path, other = tmp_path / "x.json", tmp_path / ".x.json.b.0123456789abcdef.partial"
    other.touch()  # belongs to x.json.b, which may be in the making
    store.write_json(path, {"i": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(SystemExit))
        patch.setattr(Path, "unlink", lambda *_, **__: None)  # dead men clean nothing
        with pytest.raises(SystemExit):
            store.write_json(path, {"i": 2})
    assert store.read_json(path) == {"i": 1}
    assert len(list(tmp_path.iterdir())) == 3
    store.write_json(path, {"i": 3})
    assert store.read_json(path) == {"i": 3}
    assert set(tmp_path.iterdir()) == {path, other}


READERS: list[Callable[[Path], Any]] = [
    store.load_arrays,
    lambda path: store.load_tree(path, {}),
    store.read_json,
    store.read_lines,
]


@pytest.mark.parametrize("read", READERS)
def test_what_cannot_be_read_is_named(tmp_path, monkeypatch, read):
    with pytest.raises(DataError, match="absent is missing"):
        read(tmp_path / "absent")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read(tmp_path)
    (tmp_path / "x").write_bytes(b"junk\n")
    with pytest.raises(DataError, match="x is damaged"):
        read(tmp_path / "x")

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(DataError, match="x cannot be read: Permission denied"):
        read(tmp_path / "x")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    for name, write in WRITERS.items():
        if name != "x.jsonl":
            with pytest.raises(DataError, match="could not be written"):
                write(tmp_path / "file" / name, 1)
    with pytest.raises(DataError, match="could not be written: Is a directory"):
        store.append_lines(tmp_path, [{}])


def test_what_cannot_be_deleted_is_named(tmp_path, monkeypatch):
    files.delete(tmp_path / "absent")
    (tmp_path / "checkpoint.safetensors").touch()
    store.delete_checkpoint(tmp_path)
    assert not list(tmp_path.iterdir())

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", denied)
    with pytest.raises(DataError, match=r"checkpoint\S* could not be deleted: Perm"):
        store.delete_checkpoint(tmp_path)


def test_hashed_json_notices_any_change_of_meaning(tmp_path):
    path = tmp_path / "about.json"
    files.write_hashed_json(path, {"seed": 1, "name": "é"})
    assert files.read_hashed_json(path, "") == {"seed": 1, "name": "é"}
    whole = path.read_text("utf-8")
    for changed in (whole.replace("1", "2", 1), whole.replace("seed", "sead"), "[]"):
        path.write_text(changed, "utf-8")
        with pytest.raises(DataError, match=r"about\.json is damaged.*Ask Ada\."):
            files.read_hashed_json(path, "Ask Ada.")
