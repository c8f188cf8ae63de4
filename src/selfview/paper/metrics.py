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
        Metric("acc", "clustering", "kmeans_acc_best", "ACC %", 100),
        Metric("nmi", "clustering", "kmeans_nmi_best", "NMI %", 100),
        Metric("ari", "clustering", "kmeans_ari_best", "ARI %", 100),
        Metric("last acc", "clustering", "kmeans_acc", "ACC %", 100),
        Metric("last nmi", "clustering", "kmeans_nmi", "NMI %", 100),
        Metric("last ari", "clustering", "kmeans_ari", "ARI %", 100),
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
    "linear": 2,  # texts on a fixed fifth of all rows, not on their official test part
    "graph": 2,  # a point votes for itself; texts on all rows
    "mine": 2,  # texts on all rows
    "clustering": 2,  # also of the last ten epochs; texts on all rows
    "regression": 1,
    "curve": 1,
    "layout": 1,
    "transport": 1,
}
ARRAY_MEASURES = ("layout", "transport")  # give arrays for a figure rather than numbers
