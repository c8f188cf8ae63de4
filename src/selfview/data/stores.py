"""HDF5 files and Zarr stores: arrays by name in a tree of groups, read in blocks.

Links inside an HDF5 file, and datasets whose bytes lie in other files, are errors: a file shows
what it holds and nothing else. Zarr arrays are decoded by a list of known codecs, because one of
numcodecs' is pickle.
"""

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data import guard
from selfview.data.cache import cache_key, cached_array
from selfview.data.dataset import Array, Rows
from selfview.data.guard import MAX_DEFLATE, check_allocation, need, reading, regular_file
from selfview.data.npy import native, write_rows
from selfview.data.sparse import csr_of
from selfview.errors import FileFormatError, InputError

HDF5 = (".h5", ".hdf5", ".h5ad")
ZARR = ".zarr"
_MAX_ZSTD = 2**16  # ratio by which a chunk of one value may expand, and more than any other
_CODECS = {
    *("blosc", "bz2", "crc32c", "gzip", "lz4", "lzma", "shuffle", "zlib", "zstd"),
    *("bytes", "delta", "fixedscaleoffset", "sharding_indexed", "transpose"),
    *("vlen-utf8", "vlen-bytes", "default"),
}


@dataclass(frozen=True)
class Store:
    """A store that is open: its root, and the files that it consists of."""

    path: Path
    root: Any  # h5py.File, zarr.Group or zarr.Array
    files: tuple[Path, ...]

    def node(self, name: str) -> Any:
        """The array or group of this name, or None; links are an error."""
        found = self.root
        for part in name.split("/"):
            if not hasattr(found, "keys") or part not in found:
                return None
            if hasattr(found, "id"):  # HDF5
                link = found.get(part, getlink=True)
                if type(link).__name__ != "HardLink":
                    raise FileFormatError(f"{self.path} [{name}] is a link, which isn't followed")
            found = found[part]
        return found

    def keys(self, name: str) -> list[str]:
        """The names in a group, sorted; none if there is no such group."""
        group = self.node(name)
        return sorted(map(str, group.keys())) if hasattr(group, "keys") else []

    def array(self, name: str) -> Any:
        """The array of this name, its declared size compared with what the store can hold."""
        found = self.root if name == "" else self.node(name)
        where = f"{self.path} [{name}]"
        if found is None or hasattr(found, "keys") or found.shape is None:
            raise FileFormatError(f"{where} is not an array")
        if getattr(found, "is_virtual", False) or getattr(found, "external", None):
            raise FileFormatError(f"{where} lies in other files, which aren't opened")
        if hasattr(found, "metadata"):
            _check_codecs(where, found)
        nbytes = math.prod(found.shape) * max(1, found.dtype.itemsize)
        if nbytes > guard.IN_MEMORY:
            held = found.id.get_storage_size() if hasattr(found, "id") else self._size()
            if nbytes > held * (MAX_DEFLATE if hasattr(found, "id") else _MAX_ZSTD):
                raise FileFormatError(f"{where} declares {nbytes:,} bytes, which it can't hold")
        chunk = math.prod(found.chunks or (1,)) * found.dtype.itemsize
        if chunk > nbytes:
            check_allocation(where, chunk)
        return found

    def _size(self) -> int:
        return sum(file.stat().st_size for file in self.files)

    def numbers(self, name: str) -> Array:
        """An array of numbers: in memory if small, mapped if large."""
        array = self.array(name)
        where = f"{self.path} [{name}]"
        if array.dtype.kind not in "biuf" or array.ndim == 0:
            raise FileFormatError(f"{where} holds {array.dtype} of shape {array.shape}, not rows")
        nbytes = math.prod(array.shape) * array.dtype.itemsize
        if nbytes <= guard.IN_MEMORY:
            return native(np.asarray(array[...]))
        offset = array.id.get_offset() if hasattr(array, "id") and array.chunks is None else None
        if offset is not None and array.dtype.isnative:
            return np.memmap(self.path, array.dtype, "r", offset, array.shape)
        dtype = native(np.empty(0, array.dtype)).dtype

        def write(path: Path) -> None:
            write_rows(path, tuple(array.shape[1:]), dtype, _blocks(array))

        return cached_array(cache_key(self.files, "store", name), nbytes, write)

    def values(self, name: str) -> Array:
        """A value for each row: numbers, or texts as they are or as codes of categories."""
        found = self.node(name)
        if hasattr(found, "keys") and "codes" in found and "categories" in found:
            return self.decoded(self.values(f"{name}/codes"), f"{name}/categories")
        if hasattr(found, "keys") and "values" in found and "mask" in found:
            kept = self.values(f"{name}/values").astype(object)
            kept[self.values(f"{name}/mask").astype(bool)] = ""
            return kept.astype(str)
        array = self.array(name)
        if array.ndim != 1:
            raise FileFormatError(
                f"{self.path} [{name}] has shape {array.shape}, not a value a row"
            )
        check_allocation(self.path, array.shape[0] * 64)
        if array.dtype.kind in "biuf":
            return native(np.asarray(array[...]))
        texts = array.asstr()[...] if hasattr(array, "asstr") else array[...]
        return np.array([str(text) for text in texts.tolist()])  # zarr: numpy's StringDType

    def decoded(self, codes: Array, name: str) -> Array:
        """The category of each code, an empty text for the code -1; `name` is of the categories."""
        categories = self.values(name)
        if codes.dtype.kind not in "iu" or (len(codes) and codes.max() >= len(categories)):
            raise FileFormatError(f"{self.path} [{name}] lacks categories that codes stand for")
        names = np.append(categories.astype(str), "")
        return np.asarray(names[np.where(codes < 0, len(categories), codes)])

    def rows(self, name: str) -> Rows:
        """A dense array, or the CSR or CSC matrix that a group holds as AnnData writes it."""
        found = self.node(name) if name else self.root
        if not hasattr(found, "keys"):
            return self.numbers(name)
        if not {"data", "indices", "indptr"} <= {*found.keys()}:
            raise FileFormatError(f"{self.path} [{name}] is a group, not rows")
        kind = found.attrs.get("encoding-type", found.attrs.get("h5sparse_format", "csr"))
        shape = found.attrs.get("shape", found.attrs.get("h5sparse_shape"))
        parts = [self.numbers(f"{name}/{part}") for part in ("data", "indices", "indptr")]
        form = _text(kind).removesuffix("_matrix")
        return csr_of(self.path, form, np.asarray(shape), *parts)

    def axes(self) -> dict[str, int]:
        """The names of all arrays, links aside, with their number of axes; texts have one."""
        names = _arrays_under(self.root) if hasattr(self.root, "keys") else [""]
        found = {name: self.node(name) if name else self.root for name in names}
        return {n: a.ndim if a.dtype.kind in "biuf" else 1 for n, a in found.items() if a.shape}


def stored_axes(path: Path) -> dict[str, int]:
    """The arrays of an HDF5 file or Zarr store, with their number of axes."""
    with open_store(path) as store:
        return store.axes()


def stored_rows(path: Path, name: str) -> Rows:
    """The array of this name: in memory if small, mapped if large."""
    with open_store(path) as store:
        return store.rows(name)


def stored_values(path: Path, name: str) -> Array:
    """The array of this name, which holds a number or a text for each row."""
    with open_store(path) as store:
        return store.values(name)


def is_anndata(path: Path) -> bool:
    """Whether the path is that of an AnnData file or store."""
    suffix = path.suffix.lower()
    parts = (path / "obs", path / "var")
    return suffix == ".h5ad" or (suffix == ZARR and all(part.is_dir() for part in parts))


@contextmanager
def open_store(source: Path) -> Iterator[Store]:
    """The HDF5 file or Zarr store, open for reading."""
    if source.suffix.lower() in HDF5:
        h5py = need("h5py")
        path = regular_file(source)
        with reading(path, "an HDF5 file"), h5py.File(path, "r", locking=False) as root:
            yield Store(path, root, (path,))
    else:
        zarr = need("zarr", "anndata")
        files = _ordinary_files(source)
        with reading(source, "a Zarr store"):
            # Consolidated metadata could differ from that of the arrays, which is checked.
            yield Store(source, _zarr_root(zarr, source), files)


def _zarr_root(zarr: Any, path: Path) -> Any:
    if (path / ".zarray").is_file():
        return zarr.open_array(path, mode="r")
    if (path / "zarr.json").is_file() and b'"array"' in (path / "zarr.json").read_bytes()[:10_000]:
        return zarr.open_array(path, mode="r")
    return zarr.open_group(path, mode="r", use_consolidated=False)


def _ordinary_files(path: Path) -> tuple[Path, ...]:
    """All files of a store; a link would lead outside, and a pipe would block."""
    if not path.is_dir():
        raise InputError(f"{path} is not a folder, as a Zarr store is")
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            file = Path(folder, name)
            mode = file.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise FileFormatError(f"{file} is a link or no ordinary file")
        found += [Path(folder, name) for name in names]
    return tuple(sorted(found))


def _check_codecs(where: str, array: Any) -> None:
    facts = array.metadata.to_dict()
    used = _named([facts.get(key) for key in ("codecs", "compressor", "filters")])
    unknown = sorted({name.removeprefix("numcodecs.") for name in used} - _CODECS)
    if unknown:
        raise FileFormatError(f"{where} is packed by {', '.join(unknown)}, which isn't read")


def _named(value: Any) -> Iterator[str]:
    """The names of codecs in metadata, at any depth: shards hold codecs of their own."""
    if isinstance(value, dict):
        yield from (str(value[key]) for key in ("id", "name") if key in value)
        yield from _named(value.get("configuration"))
        yield from _named([value.get(key) for key in ("codecs", "index_codecs")])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _named(each.to_dict() if hasattr(each, "to_dict") else each)
    elif hasattr(value, "get_config"):
        yield from _named(value.get_config())


def _blocks(array: Any) -> Iterator[Array]:
    """Blocks of rows; whole chunks, unless a stripe of chunks is much larger than a block."""
    each = max(1, math.prod(array.shape[1:]) * array.dtype.itemsize)
    step = max(1, guard.BLOCK // each)
    chunk = (getattr(array, "shards", None) or array.chunks or (1,))[0]
    if chunk * each <= 8 * guard.BLOCK:
        step = max(step // chunk, 1) * chunk
    for start in range(0, array.shape[0], step):
        yield np.asarray(array[start : start + step])


def _arrays_under(group: Any, start: str = "") -> list[str]:
    if hasattr(group, "visititems"):  # HDF5: each object once, also where links form a ring
        found: list[str] = []
        group.visititems(lambda name, node: found.append(name) if hasattr(node, "shape") else None)
        return sorted(found)
    names = []
    for name in sorted(map(str, group.keys())):
        node = group[name]
        names += _arrays_under(node, f"{start}{name}/") if hasattr(node, "keys") else [start + name]
    return names


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
