"""Laws of the store: what is read is what was written, or a sentence says why."""

import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelax import store
from borelax.errors import DataError
from borelax.files import write_hashed_json

BASE = np.arange(24).reshape(4, 6)
ARRAYS = {
    "bool": BASE % 2 == 0,
    "uint8": BASE.astype(np.uint8),
    "int32": BASE.astype(np.int32),
    "float32": BASE.astype(np.float32) / 7,
    "float64": BASE / 7,
    "complex64": BASE.astype(np.complex64) * 1j,
    "text": np.asarray(["a", "é"]),
    "big_endian": BASE.astype(">f4"),
    "zero_d": np.asarray(3.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "fortran": np.asfortranarray(BASE),
    "transposed": BASE.T,
    "strided": BASE[::2, ::-1],
    "größe/β": np.float32([np.nan, np.inf]),
}
SMALL = {"a": np.arange(3, dtype=np.float32), "b": np.asarray(True)}
LIKELY = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Net(eqx.Module):
    weight: jax.Array | np.ndarray
    rest: dict[str, Any]
    activation: Callable[..., Any] = jax.nn.relu


def make_net() -> Net:
    rest = {
        "bf16": jnp.asarray([1.5, -2.0], jnp.bfloat16),
        "bool": jnp.asarray([True, False]),
        "uint8": np.arange(3, dtype=np.uint8),
        "int32": jnp.asarray(7, jnp.int32),
        "none": None,
        "empty": jnp.zeros((0, 2)),
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(4, impl="rbg"), 2),
        "rate": 0.5,
        "fortran": np.asfortranarray(BASE.astype(np.float32)),
    }
    return Net(BASE.astype(np.float32).T, rest)


def data_of(leaf: Any) -> np.ndarray:
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def assert_same_arrays(tree: Any, other: Any) -> None:
    ours, theirs = (jax.tree.leaves(eqx.filter(x, eqx.is_array)) for x in (tree, other))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert data_of(x).tobytes() == data_of(y).tobytes()


def flipped(data: bytes, position: int, mask: int) -> bytes:
    changed = bytearray(data)
    changed[position % len(data)] ^= mask
    return bytes(changed)


def sealed(folder: Path) -> Path:
    store.save_arrays(folder / "task-003.npz", SMALL)
    store.write_json(folder / "naïve/größe.json", {"β": [1, 2.5, None]})
    store.seal(folder, ["task-003.npz", "naïve/größe.json"], {"seed": 1, "ü": [0.1]})
    return folder


@pytest.mark.parametrize("compress", [True, False])
def test_arrays_come_back(tmp_path, compress):
    path = tmp_path / "new" / "folder" / "x.npz"
    store.save_arrays(path, ARRAYS, compress)
    loaded = store.load_arrays(path)
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype, name
        assert loaded[name].shape == array.shape, name
        np.testing.assert_array_equal(loaded[name], array)
    with np.load(path, allow_pickle=False) as plain:  # any NumPy can read it
        assert set(plain.files) == set(ARRAYS)


def test_very_compressible_arrays_are_no_bomb(tmp_path):
    zeros = np.zeros(20_000_000, np.uint8)
    store.save_arrays(tmp_path / "x.npz", {"zeros": zeros})
    assert (tmp_path / "x.npz").stat().st_size < 30_000
    assert store.load_arrays(tmp_path / "x.npz")["zeros"].shape == zeros.shape


def test_equal_inputs_equal_bytes(tmp_path):
    turned = dict(reversed([(k, np.asfortranarray(v)) for k, v in ARRAYS.items()]))
    turned["zero_d"] = ARRAYS["zero_d"]
    store.save_arrays(tmp_path / "a.npz", ARRAYS)
    store.save_arrays(tmp_path / "b.npz", turned)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {info.date_time[0] for info in archive.infolist()} == {1980}
    for name in ("a", "b"):
        store.save_checkpoint(tmp_path / name, make_net(), {"x": 1, "y": 2})
    first, second = (tmp_path / x / "checkpoint.safetensors" for x in "ab")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    "dtype", [object, jnp.bfloat16, jnp.float8_e5m2, [("a", "f4")]]
)
def test_arrays_that_npz_would_change_are_refused(tmp_path, dtype):
    with pytest.raises(DataError, match=r"x\.npz was not written.*'odd'"):
        store.save_arrays(tmp_path / "x.npz", {"odd": np.zeros(2, dtype)})
    assert not list(tmp_path.iterdir())


def npz_claiming(shape: tuple[int, ...], honest: bool) -> bytes:
    """An .npz of 8 bytes whose header claims ``shape`` float64 numbers."""
    member = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.npy", member.getvalue() + bytes(8))
        if not honest:  # let the zip directory claim the same size
            archive.filelist[0].file_size += 8 * int(np.prod(shape)) - 8
    return file.getvalue()


@pytest.mark.parametrize("honest", [True, False])
def test_a_header_that_claims_a_terabyte_is_refused(tmp_path, honest):
    path = tmp_path / "x.npz"
    path.write_bytes(npz_claiming((1,), honest))
    assert store.load_arrays(path)["big"].shape == (1,)
    path.write_bytes(npz_claiming((2**37,), honest))
    with pytest.raises(
        DataError, match=r"x\.npz is damaged.*claims 1099511627\d+ byte"
    ):
        store.load_arrays(path)
    path.write_bytes(npz_claiming((2,), honest=True))  # plausible, and still wrong
    with pytest.raises(DataError, match=r"x\.npz is damaged.*claims 144 bytes"):
        store.load_arrays(path)


def test_files_of_plain_numpy_are_read_unless_a_member_is_lost(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, **SMALL)
    assert store.load_arrays(path).keys() == SMALL.keys()
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 32] = 99  # a comment that swallows the next entry
    path.write_bytes(data)
    with np.load(path) as lenient:
        assert lenient.files == ["a"]
    with pytest.raises(DataError, match=r"x\.npz is damaged"):
        store.load_arrays(path)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    path, file = tmp_path / "bomb.npz", io.BytesIO()
    np.savez(file, a=np.zeros(10_000))
    with zipfile.ZipFile(file, "a") as archive:
        archive.filelist *= 50
        archive.comment, archive.comment = b"x", b""  # have the directory rewritten
    path.write_bytes(file.getvalue())
    with pytest.raises(DataError, match=r"bomb\.npz is damaged"):
        store.load_arrays(path)


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.asarray([{}], object))
    with pytest.raises(DataError, match=r"x\.npz"):
        store.load_arrays(tmp_path / "x.npz")


@pytest.mark.parametrize("shapes_only", [True, False])
def test_trees_come_back(tmp_path, shapes_only):
    net = make_net()
    like = eqx.filter_eval_shape(make_net) if shapes_only else net
    like = eqx.tree_at(lambda n: n.rest["rate"], like, 0.75)
    store.save_tree(tmp_path / "net.safetensors", net)
    loaded = store.load_tree(tmp_path / "net.safetensors", like)
    assert_same_arrays(loaded, net)
    arrays = jax.tree.leaves(eqx.filter(loaded, eqx.is_array))
    assert all(isinstance(leaf, jax.Array) for leaf in arrays)
    assert loaded.rest["rate"] == 0.75  # not an array: comes from like
    assert loaded.activation is jax.nn.relu
    draw = jax.random.uniform(loaded.rest["key"])
    assert draw == jax.random.uniform(net.rest["key"])


@pytest.mark.parametrize("tree", [jnp.ones(3), {}, (1, None, "a")])
def test_bare_and_empty_trees_come_back(tmp_path, tree):
    store.save_tree(tmp_path / "t.safetensors", tree)
    loaded = store.load_tree(tmp_path / "t.safetensors", tree)
    assert_same_arrays(loaded, tree)
    assert jax.tree.structure(loaded) == jax.tree.structure(tree)


@pytest.mark.parametrize(
    "like",
    [
        {"w": jnp.ones((2, 4)), "key": jax.random.key(0)},
        {"w": jnp.ones((2, 3), jnp.int32), "key": jax.random.key(0)},
        {"w": 1.0, "key": jax.random.key(0)},
        {"w": jnp.ones((2, 3)), "key": jax.random.key(0), "more": jnp.ones(1)},
        {"w": jnp.ones((2, 3)), "key": jax.random.key(0, impl="rbg")},
        {"w": jnp.ones((2, 3)), "key": jnp.ones(2, jnp.uint32)},
    ],
)
def test_a_tree_that_does_not_fit_is_refused(tmp_path, like):
    path = tmp_path / "t.safetensors"
    store.save_tree(path, {"w": jnp.ones((2, 3)), "key": jax.random.key(0)})
    with pytest.raises(DataError, match=r"t\.safetensors.*leaf \['(w|key|more)'\] is "):
        store.load_tree(path, like)


@pytest.mark.parametrize("leaf", [np.ones(2), np.ones(2, ">f4"), np.asarray(["a"])])
def test_leaves_that_jax_would_change_are_refused(tmp_path, leaf):
    with pytest.raises(DataError, match=r"t\.safetensors cannot hold leaf \['odd'\]"):
        store.save_tree(tmp_path / "t.safetensors", {"odd": leaf})


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


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "x.npz": lambda path, i: store.save_arrays(path, {"i": np.asarray(i)}),
    "x.safetensors": lambda path, i: store.save_tree(path, {"i": jnp.asarray(i)}),
    "x.json": lambda path, i: store.write_json(path, {"i": i}),
    "x.jsonl": lambda path, i: store.truncate_lines(path, lambda row: False),
    "checkpoint.safetensors": lambda path, i: store.save_checkpoint(
        path.parent, {"i": jnp.asarray(i)}, {"i": i}
    ),
    "manifest.json": lambda path, i: store.seal(path.parent, [], {"i": i}),
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


def test_sealed_folder_opens(tmp_path):
    folder = sealed(tmp_path / "1-logs")
    assert store.is_sealed(folder) and not store.is_sealed(tmp_path)
    assert store.open_sealed(folder) == {"seed": 1, "ü": [0.1]}
    shas = store.sealed_files(folder)
    assert list(shas) == ["naïve/größe.json", "task-003.npz"]
    loaded = store.load_arrays(folder / "task-003.npz", shas["task-003.npz"])
    assert loaded.keys() == SMALL.keys()
    with pytest.raises(DataError, match="SHA-256"):
        store.load_arrays(folder / "task-003.npz", "0" * 64)


def test_identity_reads_names_and_hashes_alone(tmp_path):
    folder = sealed(tmp_path)
    names, first = (
        [*store.sealed_files(folder), "manifest.json"],
        store.identity(folder),
    )
    store.seal(folder, names, {"wall_seconds": 3.5})
    assert store.identity(folder) == first
    store.seal(folder, names[:1], {})
    assert store.identity(folder) != first
    store.save_arrays(folder / "task-003.npz", {"a": SMALL["a"] + 1, "b": SMALL["b"]})
    store.seal(folder, names, {})
    assert store.identity(folder) != first


@given(position=st.integers(0, 10**6), mask=st.integers(1, 255), which=st.booleans())
@LIKELY
def test_every_flipped_byte_of_a_sealed_file_is_found(tmp_path, position, mask, which):
    folder = tmp_path if store.is_sealed(tmp_path) else sealed(tmp_path)
    path = folder / ("task-003.npz" if which else "naïve/größe.json")
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, position, mask))
    with pytest.raises(DataError, match="SHA-256 differs from the manifest"):
        store.open_sealed(folder)
    path.write_bytes(whole)


@given(position=st.integers(0, 10**6), mask=st.integers(1, 255))
@LIKELY
def test_flips_are_found_without_a_manifest_or_change_nothing(tmp_path, position, mask):
    tree, about = {"w": jnp.arange(3.0), "k": jax.random.key(1)}, {"step": 12}
    if not store.is_sealed(tmp_path):
        sealed(tmp_path)
        store.save_checkpoint(tmp_path, tree, about)

    def found() -> bool:
        store.load_arrays(tmp_path / "task-003.npz")
        return False

    def same_checkpoint() -> bool:
        loaded, told = store.load_checkpoint(tmp_path, tree) or (None, None)
        assert_same_arrays(loaded, tree)
        return told == about

    checks: dict[str, Callable[[], bool]] = {
        "task-003.npz": found,
        "checkpoint.safetensors": same_checkpoint,
        "manifest.json": lambda: store.open_sealed(tmp_path)["seed"] == 1,
    }
    for name, check in checks.items():
        path = tmp_path / name
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, position, mask))
        try:
            assert check()
        except DataError as error:
            assert str(path.name) in str(error) and "\n" not in str(error)
        finally:
            path.write_bytes(whole)


def test_every_truncation_is_found(tmp_path):
    folder, tree = sealed(tmp_path), {"w": jnp.arange(3.0)}
    store.save_checkpoint(folder, tree, {"step": 1})
    readers: dict[str, list[Callable[[], Any]]] = {
        "task-003.npz": [
            lambda: store.open_sealed(folder, verify=False),
            lambda: store.load_arrays(folder / "task-003.npz"),
        ],
        "checkpoint.safetensors": [lambda: store.load_checkpoint(folder, tree)],
        "manifest.json": [lambda: store.open_sealed(folder)],
    }
    for name, reads in readers.items():
        whole = (folder / name).read_bytes()
        for length in range(len(whole.rstrip())):
            (folder / name).write_bytes(whole[:length])
            for read in reads:
                with pytest.raises(DataError, match=name):
                    read()
        (folder / name).write_bytes(whole)
    assert store.open_sealed(folder)


def test_a_folder_that_is_not_whole_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"not complete.*Run its phase again"):
        store.open_sealed(tmp_path)
    with pytest.raises(DataError, match=r"absent\.npz is missing"):
        store.seal(tmp_path, ["absent.npz"], {})
    for outside in ("../x", "/etc/hosts", ""):
        with pytest.raises(DataError, match="is not a file in"):
            store.seal(tmp_path, [outside], {})
    sealed(tmp_path)
    (tmp_path / "task-003.npz").unlink()
    with pytest.raises(
        DataError, match=r"task-003\.npz is missing\. Delete the folder"
    ):
        store.open_sealed(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    manifest["about"]["seed"] = 2
    store.write_json(tmp_path / "manifest.json", manifest)
    with pytest.raises(DataError, match=r"manifest\.json is damaged"):
        store.open_sealed(tmp_path)
    write_hashed_json(tmp_path / "manifest.json", {"schema": 2})
    with pytest.raises(DataError, match=r"manifest\.json comes from another version"):
        store.open_sealed(tmp_path)


def test_checkpoints_keep_the_newest_with_its_words(tmp_path):
    assert store.load_checkpoint(tmp_path / "none", {}) is None
    for step in range(3):
        store.save_checkpoint(tmp_path, {"w": jnp.full(2, step)}, {"step": step})
    tree, about = store.load_checkpoint(tmp_path, {"w": jnp.zeros(2, int)}) or ({}, {})
    assert about == {"step": 2} and tree["w"].tolist() == [2, 2]
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / "checkpoint.safetensors").write_bytes(b"junk")
    with pytest.raises(DataError, match="Delete it to start the phase over"):
        store.load_checkpoint(tmp_path, {})


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
