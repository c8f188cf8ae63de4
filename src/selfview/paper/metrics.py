"""The columns of tables: which number of which measure, and how it is written."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A number that stands in a table."""

    name: str
    measure: str  # of `measuring.MEASURES`
    value: str  # its name among the measure's values
    title: str
    factor: float = 1.0
    decimals: int = 1
    more_is_better: bool = True


METRICS = {
    metric.name: metric
    for metric in (
        Metric("parameters", "cost", "n_parameters", "M parameters", 1e-6, 2, False),
        Metric("seconds", "cost", "epoch_seconds", "s/epoch", 1.0, 2, False),
        Metric("linear", "linear", "linear_accuracy", "linear %", 100),
        Metric("graph", "graph", "graph_accuracy", "graph %", 100),
        Metric("mine", "mine", "mine", "MINE", 1, 2),
        Metric("acc", "clustering", "kmeans_acc", "ACC %", 100),
        Metric("nmi", "clustering", "kmeans_nmi", "NMI %", 100),
        Metric("ari", "clustering", "kmeans_ari", "ARI %", 100),
        Metric("rss", "regression", "regression_rss", "RSS", more_is_better=False),
        # Not in the paper's tables, but in comparisons.
        Metric("r2", "regression", "regression_r2", "R2", 1, 3),
        Metric("knn", "knn", "knn_accuracy", "k-NN %", 100),
        Metric("silhouette", "silhouette", "silhouette", "silhouette", 1, 3),
        Metric("rank", "rank", "effective_rank", "effective rank"),
    )
}

# Versions of the measures. Raise one when its numbers change: records with an older one are then
# measured again from the embeddings that were kept.
VERSIONS = {
    "cost": 1,
    "linear": 1,
    "graph": 1,
    "mine": 1,
    "clustering": 1,
    "regression": 1,
    "layout": 1,
    "transport": 1,
}
ARRAY_MEASURES = ("layout", "transport")  # give arrays for a figure rather than numbers
