"""How long a fit and its measures will take on one core: an estimate, from measured steps.

For one core of an AMD EPYC with AVX2 in float32 and 256 rows. By the records in results/, a step of
an autoencoder takes 50 ms for a million parameters of the perceptron in it, of the adversarial one
130; the 85 ms of our own method, and its seconds with convolutions, are rougher.
"""

import math

from selfview.paper.datasets import KNOWN
from selfview.paper.grid import Fit
from selfview.paper.methods import METHODS

BATCH = 256
SECONDS_PER_MILLION = 0.085  # parameters, a step of our method with a perceptron
CNN_STEP = {True: 1.6, False: 0.25}  # seconds a step of ours: the paper's convolutions, our own
CPC_STEP_PER_ROW_OF_NET = {True: 4.0, False: 0.55}  # seconds a step: images; per million, vectors
VIEW_SHARE = {"none": 0.4, "random": 0.4, "random+adversarial": 0.7}
GRAPH_ROWS = 20_000


def rows_of(fit: Fit) -> int:
    """Rows that are fitted."""
    return fit.rows or KNOWN[fit.dataset].rows


def training_seconds(fit: Fit) -> float:
    """Of the fit itself."""
    method, subject, rows = METHODS[fit.method], KNOWN[fit.dataset], rows_of(fit)
    if not method.learned:
        return _classical(fit, rows)
    steps = max(1, math.ceil(rows / BATCH)) * (fit.epochs or 1)
    millions = subject.parameters / 1e6
    settings = dict(fit.settings)
    if fit.method == "cpc":
        images = subject.images
        step = CPC_STEP_PER_ROW_OF_NET[images] * (1.0 if images else millions)
    else:
        papers = settings.get("recipe") == "paper" or settings.get("encoder") == "cnn"
        own = CNN_STEP[papers] if subject.images else SECONDS_PER_MILLION * millions
        step = own * method.share * VIEW_SHARE.get(str(settings.get("views")), 1.0)
    return steps * step * min(1.0, rows / BATCH)


def _classical(fit: Fit, rows: int) -> float:
    fitted = dict(fit.settings).get("fit_rows") or rows
    thousands, all_thousands = fitted / 1000, rows / 1000
    match fit.method:
        case "isomap":
            return 0.6 * thousands**2 + all_thousands
        case "lle":
            return 0.4 * thousands**2 + all_thousands
        case "umap":
            return 15 + 3 * all_thousands
        case "nmf":
            return 3 * all_thousands
    return 0.2 * all_thousands


def measure_seconds(fit: Fit, measure: str) -> float:
    """Of one measure of the embedding."""
    subject, rows = KNOWN[fit.dataset], rows_of(fit)
    thousands = min(rows, GRAPH_ROWS) / 1000
    if subject.images and measure in ("graph", "clustering", "layout"):
        thousands /= 7  # of the test rows only
    wide = 6.0 if fit.method == "raw" else 1.0
    match measure:
        case "graph" | "layout":
            return 6 * thousands * (2.0 if wide > 1 else 1.0)
        case "mine":
            return 7 * (1.5 if wide > 1 else 1.0)
        case "linear" | "clustering":
            return (0.5 + 0.4 * thousands) * wide
        case "regression":
            return 0.1
    return 0.0
