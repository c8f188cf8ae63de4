"""A mass-spectrometry image made up from a known truth, with an instrument's flaws."""

import numpy as np
from numpy.typing import NDArray

from selfview.data.dataset import Dataset
from selfview.data.spectra import ImzMLPreparation
from selfview.errors import InputError

REGIONS = ("off tissue", "ground", "rim", "nucleus left", "nucleus right", "tract")
_LOW, _HIGH = 50.0, 1000.0


def synthetic_msi(
    *, width: int = 80, height: int = 80, bins: int = 1024, peaks: int = 180, seed: int = 0
) -> Dataset:
    """A tissue of five regions on a background, 1,024 m/z bins, with its truth as labels.

    Each region has its own profile over shared peaks (Gaussian, wider at high m/z, with isotopes);
    matrix peaks stand everywhere and are all there is off the tissue. Ion counts are Poisson,
    pixels differ in yield, the detector has a falling baseline and a noise floor, and some pixels
    are nearly lost.

    Parameters
    ----------
    width, height : int, default 80
        Pixels.
    bins : int, default 1024
        m/z bins between 50 and 1000.
    peaks : int, default 180
        Peaks of the tissue, isotopes not counted.
    seed : int, default 0
        The same seed gives the same image, bit for bit.

    Returns
    -------
    Dataset
        ``y`` is the region, ``classes`` its name, ``coordinates`` the pixel; bins are divided by
        their maximum as the paper's MSI.

    Examples
    --------
    >>> from selfview.data import synthetic_msi
    >>> synthetic_msi(width=20, height=16).X.shape
    (320, 1024)
    """
    if min(width, height) < 8 or bins < 16 or peaks < 8:
        raise InputError("a synthetic image needs 8 x 8 pixels, 16 bins and 8 peaks at least")
    rng = np.random.default_rng(seed)
    truth, share = _tissue(width, height, rng)  # (n,), (n, regions)
    profiles = _profiles(bins, peaks, rng)  # (regions, bins)
    # Yield varies smoothly across the section (matrix crystals) and from shot to shot.
    row, column = np.divmod(np.arange(width * height), width)
    drift = 1 + 0.25 * np.sin(2.1 * column / width + 1) * np.cos(2.7 * row / height)
    gain = drift * rng.lognormal(0, 0.25, truth.size)
    expected = 40 * gain[:, None] * (share @ profiles)
    axis = np.linspace(0, 1, bins)
    baseline = 0.6 * np.exp(-3 * axis)
    counts = rng.poisson(expected + baseline).astype(np.float32)
    noise = rng.normal(0, 0.35, counts.shape).astype(np.float32)
    X = np.maximum(counts + noise, 0)
    lost = rng.random(truth.size) < 0.005
    X[lost] *= 0.05
    maxima = X.max(axis=0)
    maxima[maxima == 0] = 1
    return Dataset(
        "synthetic-msi", (X / maxima).astype(np.float32), truth, REGIONS,
        further={"lost": lost.astype(np.int64)},
        coordinates=np.stack([column + 1, row + 1], axis=1), source="generated",
        preparation=ImzMLPreparation((_LOW, _HIGH), bins, maxima),
    )  # fmt: skip


def _tissue(
    width: int, height: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The region of each pixel, and how much of each region its laser spot hits."""
    from scipy.ndimage import gaussian_filter

    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    angle = np.arctan2(y, x)
    wave = 0.05 * np.sin(3 * angle + rng.uniform(0, 6)) + 0.04 * np.sin(
        5 * angle + rng.uniform(0, 6)
    )
    radius = np.hypot(x / 0.9, y / 0.8) + wave
    truth = np.zeros((height, width), dtype=np.int64)
    truth[radius < 1] = 1
    truth[(radius < 1) & (radius > 0.82)] = 2
    truth[np.hypot((x + 0.35) / 0.24, (y + 0.12) / 0.34) < 1] = 3
    truth[np.hypot((x - 0.35) / 0.24, (y + 0.12) / 0.34) < 1] = 4
    truth[(np.abs(y - 0.38 + 0.2 * x**2) < 0.09) & (radius < 0.82)] = 5
    share = np.stack(
        [gaussian_filter((truth == k).astype(float), 0.6) for k in range(len(REGIONS))], axis=-1
    )
    return truth.ravel(), share.reshape(truth.size, -1)


def _profiles(bins: int, peaks: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Expected counts of each region in each bin, before the yield."""
    mass = np.linspace(_LOW, _HIGH, bins)
    step = mass[1] - mass[0]
    shapes = np.zeros((peaks, bins))
    for shape, centre in zip(shapes, rng.uniform(_LOW + 30, _HIGH - 10, peaks), strict=True):
        isotope = centre / 1500  # carbon-13 grows with mass
        for k, height in enumerate((1.0, isotope, isotope**2 / 2)):
            sigma = step * (0.5 + 0.5 * centre / _HIGH)
            shape += height * np.exp(-0.5 * ((mass - centre - 1.00336 * k) / sigma) ** 2)
    shared = rng.lognormal(-1.5, 1.0, peaks)  # what all of the tissue has in common
    levels = np.zeros((len(REGIONS), peaks))
    for region in range(1, len(REGIONS)):
        own = rng.random(peaks) < 0.2
        levels[region] = shared * np.where(own, rng.lognormal(0.5, 0.7, peaks), 0.7)
    matrix = rng.random(peaks) < 0.15
    levels[0, matrix] = 2 * shared[matrix]
    levels[1:, matrix] = shared[matrix]
    return levels @ shapes / 10
