"""Laws of sealed folders: complete, whole, and known by what is in them."""

import json
import os
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelax import files, manifest, store
from borelax.errors import DataError
from borelax.files import write_hashed_json
from tests.damage import LIKELY, SMALL, flipped, sealed


def test_sealed_folder_opens(tmp_path):
    folder = sealed(tmp_path / "1-logs")
    assert manifest.is_sealed(folder) and not manifest.is_sealed(tmp_path)
    assert manifest.open_sealed(folder) == {"seed": 1, "ü": [0.1]}
    shas = manifest.sealed_files(folder)
    assert list(shas) == ["naïve/größe.json", "task-003.npz"]
    loaded = store.load_arrays(folder / "task-003.npz", shas["task-003.npz"])
    assert loaded.keys() == SMALL.keys()
    with pytest.raises(DataError, match="SHA-256"):
        store.load_arrays(folder / "task-003.npz", "0" * 64)


def test_identity_reads_names_and_hashes_alone(tmp_path):
    folder = sealed(tmp_path)
    names, first = (
        [*manifest.sealed_files(folder), "manifest.json"],
        manifest.identity(folder),
    )
    manifest.seal(folder, names, {"wall_seconds": 3.5})
    assert manifest.identity(folder) == first
    manifest.seal(folder, names[:1], {})
    assert manifest.identity(folder) != first
    store.save_arrays(folder / "task-003.npz", {"a": SMALL["a"] + 1, "b": SMALL["b"]})
    manifest.seal(folder, names, {})
    assert manifest.identity(folder) != first


@given(position=st.integers(0, 10**6), mask=st.integers(1, 255), which=st.booleans())
@LIKELY
def test_every_flipped_byte_of_a_sealed_file_is_found(tmp_path, position, mask, which):
    folder = tmp_path if manifest.is_sealed(tmp_path) else sealed(tmp_path)
    path = folder / ("task-003.npz" if which else "naïve/größe.json")
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, position, mask))
    with pytest.raises(DataError, match="SHA-256 differs from the manifest"):
        manifest.open_sealed(folder)
    path.write_bytes(whole)


def test_a_folder_that_is_not_whole_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"not complete.*Run its phase again"):
        manifest.open_sealed(tmp_path)
    with pytest.raises(DataError, match=r"absent\.npz is missing"):
        manifest.seal(tmp_path, ["absent.npz"], {})
    for outside in ("../x", "/etc/hosts", ""):
        with pytest.raises(DataError, match="is not a file in"):
            manifest.seal(tmp_path, [outside], {})
    sealed(tmp_path)
    (tmp_path / "task-003.npz").unlink()
    with pytest.raises(
        DataError, match=r"task-003\.npz is missing\. Delete the folder"
    ):
        manifest.open_sealed(tmp_path)
    content = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    content["about"]["seed"] = 2
    store.write_json(tmp_path / "manifest.json", content)
    with pytest.raises(DataError, match=r"manifest\.json is damaged"):
        manifest.open_sealed(tmp_path)
    write_hashed_json(tmp_path / "manifest.json", {"schema": 2})
    with pytest.raises(DataError, match=r"manifest\.json comes from another version"):
        manifest.open_sealed(tmp_path)


@pytest.mark.parametrize("links", [True, False])
def test_a_copy_has_the_same_bytes_and_identity(tmp_path, monkeypatch, links):
    source, target = sealed(tmp_path / "source"), tmp_path / "target"
    if not links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError("another disk")))
    (source / "metrics.jsonl").touch()  # not sealed, so not copied
    manifest.copy_sealed(source, target)
    assert manifest.open_sealed(target) == manifest.open_sealed(source)
    assert manifest.identity(target) == manifest.identity(source)
    names = {str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()}
    assert names == {*manifest.sealed_files(source), "manifest.json"}
    for name in names:
        assert (target / name).read_bytes() == (source / name).read_bytes()
        shared = (target / name).samefile(source / name)
        assert shared == (links and name != "manifest.json")


def test_lines_that_could_be_appended_to_are_not_shared(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    files.append_lines(source / "metrics.jsonl", [{"loss": 1.0}])
    manifest.seal(source, ["metrics.jsonl"], {})
    manifest.copy_sealed(source, target)
    files.append_lines(target / "metrics.jsonl", [{"loss": 0.5}])
    manifest.open_sealed(source)


@pytest.mark.parametrize("name", ["task-003.npz", "naïve/größe.json", "manifest.json"])
def test_damage_is_not_copied(tmp_path, name):
    source, target = sealed(tmp_path / "source"), tmp_path / "target"
    whole = (source / name).read_bytes()
    for data in (flipped(whole, 40, 1), whole[:-3], None):
        (source / name).unlink()
        if data is not None:
            (source / name).write_bytes(data)
        with pytest.raises(DataError, match=name):
            manifest.copy_sealed(source, target)
        assert not manifest.is_sealed(target)
        (source / name).write_bytes(whole)


def test_half_a_copy_is_not_sealed(tmp_path, monkeypatch):
    source, target = sealed(tmp_path / "source"), tmp_path / "target"
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            manifest.copy_sealed(source, target)
    assert (target / "task-003.npz").exists() and not manifest.is_sealed(target)
    manifest.copy_sealed(source, target)
    assert manifest.identity(target) == manifest.identity(source)
