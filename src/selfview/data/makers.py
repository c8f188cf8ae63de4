"""How each named dataset is made from its files, as the paper prepares it."""

import io
import re
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from selfview.data.array_files import npz_arrays, read_idx
from selfview.data.arrays import as_images
from selfview.data.audio import AudioPreparation, read_wav
from selfview.data.dataset import Array, Dataset, Options
from selfview.data.downloads import EMNIST_NAMES
from selfview.data.guard import reading, tar_members, zip_member
from selfview.data.images import ImagePreparation
from selfview.data.labels import encode_labels
from selfview.data.preparation import ArrayPreparation
from selfview.data.spectra import PeakPreparation, fit_imzml
from selfview.data.synthetic import synthetic_msi
from selfview.data.text_files import snippets_of
from selfview.data.texts import fit_vocabulary, strip_post
from selfview.errors import DownloadError, FileFormatError

_DIGITS = tuple("0123456789")
_CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
ROOTS = ("CCAT", "GCAT", "MCAT", "ECAT")
MIN_WORDS = 5
MSI_COLOURS = Path(__file__).with_name("msi_rgb.npz")


def digits(_: tuple[Path, ...]) -> Dataset:
    """scikit-learn's digits, pixels / 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    X = (bunch.data / 16).astype(np.float32)
    return Dataset(
        "digits", X, bunch.target.astype(np.int64), _DIGITS, shape=(8, 8),
        preparation=ArrayPreparation((64,)),
    )  # fmt: skip


def mnist_like(paths: tuple[Path, ...], *, transposed: bool = False) -> Dataset:
    """Four IDX files, train images and labels, then test; pixels / 255."""
    images = [read_idx(p, transposed=transposed) for p in paths[::2]]
    labels = [read_idx(p) for p in paths[1::2]]
    for path, image, label in zip(paths[::2], images, labels, strict=True):
        if image.ndim != 3 or label.shape != (len(image),) or image.dtype != np.uint8:
            raise FileFormatError(
                f"{path} holds {image.shape} images but its labels are {label.shape}"
            )
    n = len(images[0])
    X = as_images(np.concatenate(images))
    clothes = paths[0].parent.name == "fashion-mnist"
    return Dataset(
        "", X, np.concatenate(labels).astype(np.int64), _CLOTHES if clothes else _DIGITS,
        train=np.arange(n), test=np.arange(n, n + len(images[1])),
        preparation=ImagePreparation(1, X.shape[2], X.shape[3], transposed),
    )  # fmt: skip


def emnist(paths: tuple[Path, ...]) -> Dataset:
    """E-MNIST's IDX files, which hold each image transposed."""
    return mnist_like(paths, transposed=True)


def emnist_zip(paths: tuple[Path, ...]) -> Dataset:
    """The official gzip.zip, of which only the four files of the digits are read."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name in EMNIST_NAMES:
            files.append(Path(folder, name))
            files[-1].write_bytes(zip_member(paths[0], f"gzip/{name}"))
        return emnist(tuple(files))


def newsgroups(paths: tuple[Path, ...]) -> Dataset:
    """20 Newsgroups without headers, footers and quotes; tf-idf of 2,000 words.

    Posts with fewer than five different words of the vocabulary are dropped: the reading of "about
    4 words" under which PCA and k-means reproduce the paper's tables.
    """
    members = sorted(tar_members(paths[0], _is_post))
    names = [PurePosixPath(name) for name, _ in members]
    texts = [strip_post(content.decode("latin-1")) for _, content in members]
    preparation, X = fit_vocabulary(texts, 2000, posts=True)
    keep = np.flatnonzero(np.diff(X.indptr) >= MIN_WORDS)
    y, classes = encode_labels([name.parts[-2] for name in names])
    test = np.array(["test" in name.parts[-3] for name in names])[keep]
    ids = np.array(["/".join(name.parts[-2:]) for name in names])[keep]
    return Dataset(
        "20news", X[keep], y[keep], classes, train=np.flatnonzero(~test),
        test=np.flatnonzero(test), ids=ids, preparation=preparation,
        snippets=snippets_of([texts[i] for i in keep]),
    )  # fmt: skip


def _is_post(name: str) -> bool:
    return re.search(r"20news-bydate-(train|test)/[^/]+/\d+$", name) is not None


def reuters(paths: tuple[Path, ...]) -> Dataset:
    """10,000 RCV1 stories of SELFVIEW_DATA: presence of 746 stems, idf, l2 rows times sqrt(746).

    The paper's epsilon of 20 belongs to rows of length sqrt(2000); it is scaled to these.
    """
    presences, y, subset = npz_arrays(paths[0], ("X", "y", "subset"))
    presence = csr_matrix(presences, dtype=np.float64)
    idf = np.log((1 + presence.shape[0]) / (1 + presence.getnnz(axis=0))) + 1
    rows = _sample(np.flatnonzero(presence.getnnz(axis=1) > 0))
    X = _unit_rows(csr_matrix(presence[rows].multiply(idf)))
    return Dataset(
        "reuters", X, y[rows].astype(np.int64), ROOTS,
        further={"subset": subset[rows].astype(np.int64)}, ids=rows,
        epsilon=round(20 * float(np.sqrt(X.shape[1] / 2000)), 1),
        preparation=ArrayPreparation((X.shape[1],)),
    )  # fmt: skip


def reuters_sklearn(_: tuple[Path, ...]) -> Dataset:
    """10,000 stories of scikit-learn's RCV1 with exactly one of the four roots, 2,000 words."""
    from sklearn.datasets import fetch_rcv1

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it tries again, which isn't news
            bunch = fetch_rcv1()
    except OSError as error:
        raise DownloadError(
            f"scikit-learn's fetch_rcv1 can't download RCV1: {error}. Its files come from "
            "https://ndownloader.figshare.com/files/5976069 and go to the folder of "
            "sklearn.datasets.get_data_home(); or set SELFVIEW_DATA to a folder that holds "
            "rcv1/rcv1_4root_10k_bow.npz"
        ) from error
    return reuters_of_rcv1(bunch.data, bunch.target, bunch.target_names, bunch.sample_id)


def reuters_of_rcv1(data: Any, target: Any, names: Any, ids: Array) -> Dataset:
    """RCV1's cosine-normalised log tf-idf, cut to the 2,000 words of most stories."""
    columns = [list(names).index(root) for root in ROOTS]
    roots = np.asarray(target[:, columns].todense())  # (n, 4)
    rows = _sample(np.flatnonzero(roots.sum(axis=1) == 1))
    X = csr_matrix(data[rows], dtype=np.float64)
    words = np.sort(np.argsort(-X.getnnz(axis=0), kind="stable")[:2000])
    X = _unit_rows(csr_matrix(X[:, words]))
    return Dataset(
        "reuters", X, roots[rows].argmax(axis=1).astype(np.int64), ROOTS, ids=ids[rows],
        preparation=ArrayPreparation((X.shape[1],)),
    )  # fmt: skip


def _sample(rows: Array, n: int = 10_000) -> Array:
    """10,000 rows, always the same ones, in the file's order."""
    chosen = np.random.default_rng(0).choice(rows, min(n, rows.size), replace=False)
    return np.sort(chosen)


def _unit_rows(X: csr_matrix) -> csr_matrix:
    from sklearn.preprocessing import normalize

    return csr_matrix(normalize(X) * np.sqrt(X.shape[1]), dtype=np.float32)


def fsdd(paths: tuple[Path, ...]) -> Dataset:
    """Spectrograms of the 3,000 recordings; the digit is the label, the speaker a further one.

    The project calls recordings 0 to 4 of each speaker and digit its test set: ``further["test"]``.
    It is not the `Dataset`'s split: the paper's results are those of a stratified fifth.
    """
    how = AudioPreparation()
    found = sorted(
        (PurePosixPath(name).name, content)
        for name, content in tar_members(
            paths[0], lambda n: "recordings/" in n and n.endswith(".wav")
        )
    )
    parts = [re.fullmatch(r"(\d)_(\w+)_(\d+)\.wav", name) for name, _ in found]
    if len(found) != 3000 or not all(parts):
        raise FileFormatError(f"{paths[0]} holds {len(found):,} recordings instead of 3,000")
    groups = [part.groups() for part in parts if part]
    X = np.empty((len(found), *how.shape), dtype=np.float32)
    for row, (name, content) in zip(X, found, strict=True):
        with reading(f"{paths[0]}: {name}"):
            row[:] = how.row(*read_wav(io.BytesIO(content)))
    speaker = np.array([speaker for _, speaker, _ in groups])
    test = np.array([int(index) < 5 for _, _, index in groups])
    return Dataset(
        "fsdd", X, np.array([int(digit) for digit, _, _ in groups]), _DIGITS,
        further={"speaker": speaker, "test": test.astype(np.int64)},
        shape=(how.frames, how.bins), ids=np.array([name for name, _ in found]), preparation=how,
    )  # fmt: skip


def bladder(paths: tuple[Path, ...]) -> Dataset:
    """79 annotated peaks of a mouse bladder, each divided by its maximum over all spectra.

    Every pixel with a signal is kept, also off the tissue: the paper removed its background by
    hand, and its mask isn't public. The 108 empty spectra are dropped. ``further["segment"]``
    (1 to 6) comes from an algorithm, not from an expert; segments 3 and 4 lie off the tissue, and
    ``further["tissue"]`` is 1 for the others. ``further["rgb"]`` are colours to regress embeddings
    on: the paper regresses on an image whose colours are a 3-d t-SNE of the spectra, which isn't
    public. Ours were made once, by scikit-learn's ``TSNE(3, init="pca", random_state=0)``, the 1st
    to 99th percentile of each coordinate scaled to 0..255.
    """
    X, mz, x, y, ssc = npz_arrays(paths[0], ("X", "mz", "x", "y", "ssc"))
    maxima = X.max(axis=0)
    keep = np.flatnonzero(X.any(axis=1))
    segment = ssc[keep].astype(np.int64)
    further: dict[str, Array] = {
        "segment": segment, "tissue": (~np.isin(segment, (3, 4))).astype(np.int64),
    }  # fmt: skip
    (rgb,) = npz_arrays(MSI_COLOURS, ("rgb",))
    if len(rgb) == len(keep):
        further["rgb"] = rgb
    return Dataset(
        "msi", (X / maxima)[keep].astype(np.float32), further=further,
        coordinates=np.stack([x, y], axis=1)[keep].astype(np.int64),
        ids=keep, preparation=PeakPreparation(mz, maxima),
    )  # fmt: skip


def bladder_imzml(paths: tuple[Path, ...]) -> Dataset:
    """The same image from PRIDE's imzML: 50 to 1000 m/z in 1024 bins; no segments are published."""
    return replace(fit_imzml(paths[0], Options()), epsilon=1.0)


def synthetic(_: tuple[Path, ...]) -> Dataset:
    """The generated tissue of seed 0."""
    return synthetic_msi()
