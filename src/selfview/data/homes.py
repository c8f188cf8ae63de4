"""The official homes of the datasets' files, and who published each checksum.

Confirmed here means: the checksum was compared with a copy of the file. The others are copied from
their publisher and could not be compared.
"""

from __future__ import annotations

from selfview.data.fetch import RemoteFile

_IDX = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def idx_names(folder: str) -> tuple[str, ...]:
    """The four files of an MNIST-like dataset."""
    return tuple(f"{folder}/{name}" for name in _IDX)


def _idx_files(folder: str, home: str, sums: tuple[str, ...]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(f"{folder}/{name}", home + name, f"md5:{md5}")
        for name, md5 in zip(_IDX, sums, strict=True)
    )


# md5: Zalando's README and torchvision's table (datasets/mnist.py, FashionMNIST). Confirmed here.
FASHION_MNIST = _idx_files(
    "fashion-mnist",
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
)

# md5: torchvision's table (datasets/mnist.py, MNIST). Not confirmed here: the copy compared holds
# the same arrays, but was packed again.
MNIST = _idx_files(
    "mnist",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
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

# md5: torchvision's table (datasets/mnist.py, EMNIST). Not confirmed here.
EMNIST = (
    RemoteFile(
        "emnist-digits/gzip.zip",
        "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
        "md5:58c8d27c78d21e728a6bc7b3cc06412e",
    ),
)

# sha256: scikit-learn's ARCHIVE (datasets/_twenty_newsgroups.py). Not confirmed here: the copy
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

# sha256 of copies known to be good that aren't byte for byte the official files (packed again or
# derived): what `selfview data check` compares files of SELFVIEW_DATA with, besides the above.
KNOWN_COPIES = {
    "20newsgroups/20news-bydate.tar.gz": (
        "72957dfa88f079a97df5d0a6025709735e47015cb007a237f0e7181e8691537f"
    ),
    "fsdd/fsdd_recordings.tar.gz": (
        "5e0002bda7bc6528cf44b1f809687011a308a303ea9c68357d874c8991487b4c"
    ),
    "mnist/t10k-images-idx3-ubyte.gz": (
        "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be"
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": (
        "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b"
    ),
    "mnist/train-images-idx3-ubyte.gz": (
        "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971"
    ),
    "mnist/train-labels-idx1-ubyte.gz": (
        "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203"
    ),
    "msi/mouse_bladder_maldi_msi.npz": (
        "d2d2ae47ca396798bd316a0b9186fb1509ed9099dca012d6c72c1316ce7c2174"
    ),
    "rcv1/rcv1_4root_10k_bow.npz": (
        "a24f39a8e4917071bcd875b35d0c8f32c18d85f16cd21486fdb1b39242a82e24"
    ),
}
