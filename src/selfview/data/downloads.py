"""Where a dataset's files are: under SELFVIEW_DATA, else downloaded. The only network code.

Each checksum below names its publisher. "Confirmed" means that it was compared with a copy of the
file; the others could not be compared.
"""

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from selfview.data.cache import cache_folder
from selfview.data.guard import logger, need
from selfview.errors import DownloadError, InputError

_RETRIES = 2


@dataclass(frozen=True)
class RemoteFile:
    """A file's place under SELFVIEW_DATA, its official home and checksum.

    ``checksum`` is ``algorithm:hex`` as its publisher gives it, or None where none is published:
    then the file is compared with the checksum of its first download.
    """

    name: str
    url: str
    checksum: str | None


def local_folder() -> Path | None:
    """The folder of SELFVIEW_DATA, or None if the variable isn't set."""
    value = os.environ.get("SELFVIEW_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(f"SELFVIEW_DATA names {folder}, which is no folder")
    return folder


def downloads() -> Path:
    """The folder that downloads go to."""
    return cache_folder() / "downloads"


def fetch(file: RemoteFile) -> Path:
    """A verified local copy of the file, downloaded unless it is there."""
    pooch = need("pooch")
    target = downloads() / file.name
    pin = target.with_name(target.name + ".sha256")
    checksum = file.checksum
    if checksum is None and pin.is_file():
        checksum = "sha256:" + pin.read_text(encoding="ascii").strip()
    pooch.get_logger().setLevel("WARNING")
    store = pooch.create(
        downloads(), "", registry={file.name: checksum}, urls={file.name: file.url},
        retry_if_failed=_RETRIES,
    )  # fmt: skip
    new = not target.is_file()
    if new:
        logger.info("downloading %s", file.url)
    try:
        bar = sys.stderr.isatty() and find_spec("tqdm") is not None
        store.fetch(file.name, downloader=pooch.HTTPDownloader(progressbar=bar))
    except ValueError as error:  # pooch found a wrong checksum, and has removed the file
        raise DownloadError(
            f"{file.url} isn't the file its publisher describes (wrong checksum); nothing of it "
            "was opened. Try again later"
        ) from error
    except (OSError, RuntimeError) as error:
        wrong = "" if new else f"{target} isn't the file its publisher describes, and "
        raise DownloadError(
            f"{wrong}can't download {file.url}: {_short(error)}. Fetch it by other means and put "
            f"it at {target}, or set SELFVIEW_DATA to a folder that holds {file.name}"
        ) from error
    if checksum is None and new:
        pin.write_text(pooch.file_hash(str(target), alg="sha256"), encoding="ascii")
        logger.warning(
            "%s: its publisher gives no checksum; later loads compare with this copy", file.url
        )
    return target


def _short(error: BaseException) -> str:
    if type(error).__name__ in ("ConnectionError", "ConnectTimeout"):  # of requests, at length
        return "no connection"
    text = " ".join(str(error).split())
    return (text if len(text) <= 160 else text[:160] + " ...") or type(error).__name__


_IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def _idx_files(folder: str, url: str, sums: str) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(f"{folder}/{name}", url + name, f"md5:{md5}")
        for name, md5 in zip(_IDX, sums.split(), strict=True)
    )


# md5: Zalando's README and torchvision's table (datasets/mnist.py, FashionMNIST). Confirmed.
FASHION_MNIST = _idx_files(
    "fashion-mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d 25c81989df183df01b3e8a0aad5dffbe "
    "bef4ecab320f06d8554ea6380940ec79 bb300cfdad3c16e7a12a480ee83cd310",
)

# md5: torchvision's table (datasets/mnist.py, MNIST). Not confirmed: the copy compared holds
# the same arrays, but was packed again.
MNIST = _idx_files(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "f68b3c2dcbeaaa9fbdd348bbdeb94873 d53e105ee54ea40749a09fcbcd1e9432 "
    "9fb629c4189551a2d022fa330f9573f3 ec29112dd5afa0611ce80d1b7f02629c",
)

EMNIST_NAMES = tuple(
    f"emnist-digits-{part}-{what}-ubyte.gz"
    for part in ("train", "test")
    for what in ("images-idx3", "labels-idx1")
)

EMNIST_LOCAL = tuple(
    tuple(f"{folder}/{name}" for name in EMNIST_NAMES)
    for folder in ("emnist-digits", "emnist", "emnist/gzip")
)

# md5: torchvision's table (datasets/mnist.py, EMNIST). Not confirmed.
EMNIST = (
    RemoteFile(
        "emnist-digits/gzip.zip",
        "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
        "md5:58c8d27c78d21e728a6bc7b3cc06412e",
    ),
)

# sha256: scikit-learn's ARCHIVE (datasets/_twenty_newsgroups.py). Not confirmed: the copy
# compared holds the same posts, but was packed again.
NEWSGROUPS = (
    RemoteFile(
        "20newsgroups/20news-bydate.tar.gz",
        "https://ndownloader.figshare.com/files/5975967",
        "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    ),
)

# No checksum is published for the archives that GitHub packs of a tag; the number of recordings is
# checked after reading.
FSDD = (
    RemoteFile(
        "fsdd/free-spoken-digit-dataset-1.0.10.tar.gz",
        "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.tar.gz",
        None,
    ),
)

# No checksum could be had for PRIDE's files; the imzML names its .ibd by an identifier, which is
# compared when the pair is read.
_PRIDE = "https://ftp.pride.ebi.ac.uk/pride/data/archive/2014/11/PXD001283/"
BLADDER = tuple(
    RemoteFile(
        f"msi/HR2MSImouseurinarybladderS096.{suffix}",
        f"{_PRIDE}HR2MSImouseurinarybladderS096.{suffix}",
        None,
    )
    for suffix in ("imzML", "ibd")
)
