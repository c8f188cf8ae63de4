"""SelfView: the paper's method as a scikit-learn estimator. `_phases` is its Algorithm 4."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn

from selfview.estimator import clustering, parameters
from selfview.estimator.pairs import two_views
from selfview.estimator.plan import FitPlan
from selfview.estimator.prototypes import PrototypeEmbedder
from selfview.losses import info_nce, swapped_kl
from selfview.networks import encoders
from selfview.networks.encoders import EncoderHead
from selfview.networks.forward import split_views
from selfview.targets import adapt_temperature, entropy, marginal_error, scheduled_entropy, sinkhorn
from selfview.training.loop import Phase, Step
from selfview.views import VIEWS


@dataclass(eq=False, repr=False, kw_only=True)
class SelfView(PrototypeEmbedder):
    """Small, discriminative embedding of unlabelled rows, learned without augmentations.

    Two views of a row should have similar embeddings: the row and one of its nearest rows
    (InfoNCE). In every fourth step the row's view is adversarial (VAT), and each view also predicts
    the other's assignment to prototypes by optimal transport (SwAV's loss). The last two are the
    method of Ntelemis, Jin and Thomas, IEEE TNNLS, 2023 (arXiv 2202.06914).

    Parameters
    ----------
    n_components : int, default 10
        Length of the embedding. With a user's own `encoder`, its output decides.
    recipe : {"selfview", "paper"}, default "selfview"
        Where "auto" values come from: selfview's default, or the paper.
    n_prototypes : int, default 100
        Number of prototypes k.
    n_clusters : int, "auto" or None, default None
        Number of clusters of the embedding, found after the fit: `labels_`, `predict`,
        `cluster_proba`. "auto" chooses it by the gaps between eigenvalues.
    encoder : {"auto", "mlp", "cnn", "small-cnn", "dense-cnn"} or nn.Module, default "auto"
        "auto": "dense-cnn" for images (n, channels, height, width) or (n, height, width), if there
        are at most 1,000 of them, or they have more than 64 x 64 colour pixels, or they are a
        stream (the paper's recipe: "cnn" for all images). Else "mlp", which learns on principal
        components of the rows (the paper's recipe: on the rows).
        A module is copied with its weights, takes the rows as they are, and keeps parts frozen
        whose weights have requires_grad=False.
    width : "auto" or int, default "auto"
        Of the perceptron's two hidden layers. "auto": 128 below 1,000 rows, 256 below 40,000, 512
        from there on; 1,024 in the paper's recipe and in `partial_fit`.
    batch_norm : {"both", "encoder", "head", "none"}, default "both"
        Where batch norm is used.
    views : {"adversarial", "random", "random+adversarial", "none"}, default "adversarial"
        Perturbation of the views. With `neighbours` it makes the first view only;
        "random+adversarial" makes both and takes no neighbours.
    adversarial_share : "auto" or float, default "auto"
        Share of the steps with perturbed views and the swapped prediction. "auto": 1/4; 1 in the
        paper's recipe. With contrast=0 it is 1.
    neighbours : "auto", int, array (n, k) of int or sparse matrix (n, n), default "auto"
        Number of nearest rows that the second view is drawn from; 0 perturbs the row instead.
        "auto": 6, and a random walk over them, from 1,000 rows on; 10 below, and with groups; 30
        for tf-idf-like rows; 0 in the paper's recipe, with views="random+adversarial", and above
        ten million rows without the extra "ann". An array holds the row numbers of neighbours,
        nearest first; of a sparse graph every stored entry is a link, whatever its value. Not part
        of a saved model.
    metric : str, default "auto"
        By which neighbours are searched for: a name that scikit-learn knows, for the rows as they
        are. "auto": Euclidean distance or angle, in principal components.
    contrast : "auto" or float, default "auto"
        Weight of InfoNCE. "auto": 1 with neighbours, else 0.
    epsilon : "auto" or float, default "auto"
        Length of an adversarial perturbation, in the unit of the rows (in standard deviations if
        columns are divided by them). "auto": a tenth of the centred rows' root mean square length;
        of the mean row norm for images and custom encoders. In the paper's recipe a fifth of that
        norm, 20 / sqrt(2000) of it for tf-idf-like rows (non-negative, at most 10 % non-zero).
    xi : "auto" or float, default "auto"
        Length of a random perturbation: a random view, and the start of VAT's power iteration.
        "auto": epsilon; in the paper's recipe 10, times `scale_`.
    sinkhorn_iterations : int, default 10
        Iterations of Sinkhorn-Knopp.
    temperature : "adaptive" or float, default "adaptive"
        Of the optimal transport. "adaptive" keeps the entropy of the targets at `target_entropy`.
    target_entropy : "auto" or float, default "auto"
        In nats. "auto": log sqrt(n_prototypes).
    warmup : "auto" or float, default "auto"
        Epochs until the target entropy is reached. "auto": 1/50 of all; 100 in the paper's recipe.
    epochs : "auto" or int, default "auto"
        "auto", in steps of the perceptron, for n rows: 40 + n / 4 below 1,000 rows, 300 +
        n / 25 below 5,000, then 500 sqrt(n / 5000), twice that from 40,000 on; 2.5 times as many
        for up to 3 components. The same for up to 1,000 images; more of them, and the paper's
        recipe, have 300 to 2,000 by their cost, and a custom encoder has 2,000.
    batch_size : int, default 256
        Rows in a batch, at most.
    learning_rate : "auto" or float, default "auto"
        Highest learning rate of Adam. "auto": 2e-3; 5e-4 in the paper's recipe.
    schedule : {"auto", "cosine", "drop"}, default "auto"
        Of the learning rate. "auto": "cosine", with a warm-up in the first twentieth; in the
        paper's recipe "drop", to a fifth from epoch 1,000 on.
    axes : {"auto", "principal", "learned"}, default "auto"
        "principal": local whitening of the embedding. "auto": "principal"; "learned" in the
        paper's recipe and with a custom encoder.
    precision : {"auto", "float32", "bfloat16"}, default "auto"
        Of training. "auto": bfloat16 where the processor computes with it directly.
    device : "auto" or str or torch.device, default "auto"
        "auto": a CUDA device if there is one.
    random_state : int, RandomState or None, default None
        The same number gives the same weights, bit for bit.
    checkpoint : path or None, default None
        Folder for the state of training, written every 10 seconds, at the end and on Ctrl-C. A fit
        that finds its own state there resumes. One fit at a time may use it.
    on_epoch : callable or None, default None
        Called after every epoch with an `EpochEnd`: `epoch`, `epochs`, `metrics`, and
        `embedding()` as it would be if the fit ended there. If it returns True, the fit ends there.
        Of several processes only the first calls it. It isn't part of a saved model.
    max_seconds : float or None, default None
        The fit ends after the first step that is done so many seconds after its beginning; those
        before a resume count too. `health_["stopped"]` tells by what a fit was ended early.
    verbose : int, default 1
        0 is silent; 1 shows progress on standard error.

    Attributes
    ----------
    encoder_ : nn.Module
    embedding_dim_, n_features_in_, epochs_, n_clusters_ : int
    feature_names_in_ : ndarray of str, if the rows were a data frame
    preparation_ : TablePreparation of a data frame of mixed columns, or None
    epsilon_ : float
    scale_ : float or ndarray (n_features_in_,), what rows are divided by
    history_ : list of dict, the metrics of every epoch
    embedding_ : ndarray (n, embedding_dim_), of rows of `fit` in memory, up to 16 MiB
    labels_ : ndarray (n,), clusters of the rows of `fit`, if `n_clusters` is set
    cluster_stability_ : dict, how stable clusters of half of the rows are, by their number
    health_ : dict, the `outcome`, the `verdict` in words, and what they were found from

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 8))
    >>> SelfView(n_components=3, epochs=2, random_state=0, verbose=0).fit_transform(X).shape
    (100, 3)
    """

    n_prototypes: int = 100
    n_clusters: int | str | None = None
    encoder: str | nn.Module = "auto"
    width: str | int = "auto"
    batch_norm: str = "both"
    views: str = "adversarial"
    adversarial_share: str | float = "auto"
    neighbours: Any = "auto"
    metric: str = "auto"
    contrast: str | float = "auto"
    epsilon: str | float = "auto"
    xi: str | float = "auto"
    sinkhorn_iterations: int = 10
    temperature: str | float = "adaptive"
    target_entropy: str | float = "auto"
    warmup: str | float = "auto"
    axes: str = "auto"

    _checks: ClassVar[parameters.Checks] = {
        **PrototypeEmbedder._checks,
        "axes": partial(parameters.one_of, options=("auto", "principal", "learned")),
        "batch_norm": partial(parameters.one_of, options=encoders.BATCH_NORM),
        "views": partial(parameters.one_of, options=list(VIEWS)),
        "n_prototypes": partial(parameters.integer, at_least=2),
        "n_clusters": clustering.n_clusters,
        "sinkhorn_iterations": partial(parameters.integer, at_least=1),
        "width": partial(parameters.integer_or, word="auto", at_least=1),
        "neighbours": parameters.neighbours,
        "metric": parameters.metric,
        "adversarial_share": partial(parameters.positive_or, word="auto", at_most=1.0),
        "contrast": partial(parameters.positive_or, word="auto", or_zero=True),
        "epsilon": partial(parameters.positive_or, word="auto"),
        "xi": partial(parameters.positive_or, word="auto"),
        "temperature": partial(parameters.positive_or, word="adaptive"),
        "target_entropy": partial(parameters.positive_or, word="auto"),
        "warmup": partial(parameters.positive_or, word="auto", or_zero=True),
    }

    def _phases(self, network: EncoderHead, plan: FitPlan) -> list[Phase]:
        """The paper's Algorithm 4: one loss of two views, and one step of Adam on it."""
        k, iterations, settings = self.n_prototypes, self.sinkhorn_iterations, plan.settings
        learns = any(p.requires_grad for p in network.encoder.parameters())
        # Of a frozen encoder only the prediction has anything to learn.
        every = settings.adversarial_every if learns else 1

        def targets(logits: Tensor, step: Step) -> Tensor:
            """Targets of a view (Algorithm 1), at a temperature that goes on adapting (2)."""
            logits = logits.detach().float()
            temperature = float(network.temperature)
            if self.temperature != "adaptive":
                return sinkhorn(logits, temperature, iterations, step.shard)
            done = plan.stream.step(step.epoch) if plan.stream else step.epoch * plan.batches
            progress = done / settings.warmup if settings.warmup else 1.0
            aim = scheduled_entropy(settings.target_entropy, k, progress)  # Eq. 8
            q, temperature = adapt_temperature(logits, temperature, aim, iterations, step.shard)
            network.temperature.fill_(temperature)
            return q

        def loss(step: Step) -> tuple[Tensor, dict[str, float]]:
            """InfoNCE of two views; in every so many steps also the swapped prediction."""
            predicts = step.number % every == 0
            views = self.views if predicts else "none"
            x = two_views(step, network, views, settings, plan.neighbours)  # Eq. 2, Algorithm 3
            z = network.features(x, parts=2)
            logits = network.logits(z, parts=2) if predicts else None
            value, metrics = z.new_zeros(()), {}
            if logits is not None:  # two views, two targets, each predicted from the other (Eq. 6)
                o1, o2 = split_views(logits, 2)
                q1 = targets(o1, step)
                q2 = targets(o2, step)
                value = swapped_kl(q1, o1, q2, o2)
                metrics = {
                    "loss_over_log_k": value.item() / math.log(k),
                    "entropy": float(entropy(q2, step.shard)),
                    "temperature": float(network.temperature),
                    "marginal_error": marginal_error(q2, step.shard),
                }
            if settings.contrast:
                z1, z2 = split_views(z, 2)
                attraction = settings.attraction_at(step.epoch / max(plan.epochs, 1))
                nce = info_nce(z1, z2, step.shard, power=settings.power, attraction=attraction)
                value = value + settings.contrast * nce
                metrics["info_nce"] = nce.item()
            return value, metrics

        learned = [p for p in network.parameters() if p.requires_grad]  # an encoder may be frozen
        return [Phase("loss", learned, loss, self._rate(plan))]
