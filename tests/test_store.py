"""Laws of the store: what is read is what was written, or a sentence says why."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelax import manifest, store
from borelax.errors import DataError
from tests.damage import LIKELY, SMALL, flipped, sealed

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


@given(position=st.integers(0, 10**6), mask=st.integers(1, 255))
@LIKELY
def test_flips_are_found_without_a_manifest_or_change_nothing(tmp_path, position, mask):
    tree, about = {"w": jnp.arange(3.0), "k": jax.random.key(1)}, {"step": 12}
    if not manifest.is_sealed(tmp_path):
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
        "manifest.json": lambda: manifest.open_sealed(tmp_path)["seed"] == 1,
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
            lambda: manifest.open_sealed(folder, verify=False),
            lambda: store.load_arrays(folder / "task-003.npz"),
        ],
        "checkpoint.safetensors": [lambda: store.load_checkpoint(folder, tree)],
        "manifest.json": [lambda: manifest.open_sealed(folder)],
    }
    for name, reads in readers.items():
        whole = (folder / name).read_bytes()
        for length in range(len(whole.rstrip())):
            (folder / name).write_bytes(whole[:length])
            for read in reads:
                with pytest.raises(DataError, match=name):
                    read()
        (folder / name).write_bytes(whole)
    assert manifest.open_sealed(folder)


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
