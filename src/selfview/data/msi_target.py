"""The colours of the MSI image: a target that every method is regressed on alike.

The paper judges MSI embeddings by a linear regression to an image whose colours are a 3-d t-SNE of
the spectra; its image is not public. Ours was made once, by this module, and is stored beside it:

    python -m selfview.data.msi_target
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PATH = Path(__file__).with_name("msi_rgb.npz")
SEED = 0


def colours_of(points: NDArray[Any]) -> NDArray[np.uint8]:
    """Three coordinates as red, green and blue: the 1st to 99th percentile of each over 0..255."""
    low, high = np.percentile(points, [1, 99], axis=0)
    shares: NDArray[Any] = np.clip((points - low) / (high - low), 0, 1)
    return (255 * shares).round().astype(np.uint8)


def make(X: NDArray[Any]) -> NDArray[np.uint8]:
    """Colours (n, 3) of spectra by a 3-d t-SNE; tens of minutes for the whole image."""
    from sklearn.manifold import TSNE

    return colours_of(TSNE(3, init="pca", random_state=SEED, n_jobs=1).fit_transform(X))


def load(n: int) -> NDArray[np.uint8] | None:
    """The stored colours, if they are of an image of `n` spectra."""
    if not PATH.exists():
        return None
    with np.load(PATH, allow_pickle=False) as stored:
        rgb: NDArray[np.uint8] = stored["rgb"]
    return rgb if len(rgb) == n else None


if __name__ == "__main__":
    from selfview.data.named import load_dataset

    np.savez_compressed(PATH, rgb=make(np.asarray(load_dataset("msi").X)))
