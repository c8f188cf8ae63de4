"""SelfView: the paper's method as a scikit-learn estimator. `_phases` is its Algorithm 4."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.estimator.plan import FitPlan
from selfview.estimator.prototypes import PrototypeEmbedder
from selfview.estimator.recipes import RECIPES, SCHEDULES
from selfview.losses import info_nce, swapped_kl
from selfview.networks import encoders
from selfview.networks.encoders import EncoderHead
from selfview.networks.forward import autocast_weights, split_views
from selfview.pairs import VIEWS, two_views
from selfview.targets import adapt_temperature, entropy, marginal_error, scheduled_entropy, sinkhorn
from selfview.training.loop import Phase, Step


@dataclass(eq=False, repr=False, kw_only=True)
class SelfView(PrototypeEmbedder):
    """Small, discriminative embedding of unlabelled rows, learned without augmentations.

    The model makes a view of every row by stepping in the direction that changes its own
    prediction most; a second view is one of the row's nearest rows (in the paper's recipe, another
    such step). Each view is labelled by optimal transport onto equally used prototypes, and the
    model learns to predict the label of one view from the other [1]_.

    Parameters
    ----------
    recipe : {"selfview", "paper"}
        Where values left at "auto" come from: ours, or every value as in the paper.
    n_components : int
        Length of the embedding. With an own `encoder`, its output decides.
    n_prototypes : int
        Number of prototypes k that rows are softly assigned to while learning.
    encoder : {"auto", "mlp", "cnn", "small-cnn", "dense-cnn"} or nn.Module
        "auto" takes a convolutional one for images (n, channels, height, width) or (n, height,
        width), and the perceptron for all else. "cnn" is the paper's, "small-cnn" the same with a
        quarter of the filters, "dense-cnn" (ours) an eighth and a hidden layer of 256 before the
        embedding. A module is copied, with its weights. Those with requires_grad=False are frozen:
        a part with no others also keeps its batch-norm statistics, which it normalises by, and
        drops nothing out.
    batch_norm : {"both", "encoder", "head", "none"}
        Where batch norm stands.
    views : {"adversarial", "random", "random+adversarial", "none"}
        How the two views are made; all but the first are the paper's ablation. With `neighbours`
        the second view is a neighbour, and only the first is made so. "random+adversarial" makes
        both, one of each kind: it takes no neighbours.
    neighbours : "auto" or int
        Of so many nearest rows (by angle for tf-idf-like rows), one, drawn anew each time, is the
        second view. 0: it is made as `views` says. "auto": 10; 0 in the paper's recipe, with
        views="random+adversarial", and for rows on disk that don't fit into the buffer of 256 MiB.
    contrast : "auto" or float
        Weight of a second objective: in the embedding itself, to tell the two views of a row from
        those of the batch's other rows. "auto": 1 where one of them is a neighbour; else, and in
        the paper's recipe, 0.
    adversarial_share : "auto" or float
        BatchShard of the steps in which a view is adversarial; in the others it is the row itself.
        "auto": 1/4 where the other view is a neighbour, else, and in the paper's recipe, 1.
    width : "auto" or int
        Of the perceptron's two hidden layers. "auto": by the number of rows; 1024 in the paper's
        recipe.
    epsilon : "auto" or float
        Length of an adversarial step. "auto": a tenth of the mean row norm; in the paper's recipe a
        fifth, and 20 / sqrt(2000) for tf-idf-like rows (not negative, at most a tenth not zero).
        A number is in the unit of the rows; in the columns' spreads if these are of unlike units,
        one above thirty times the median (except in the paper's recipe, and with an own encoder).
    xi : "auto" or float
        Length of a random step, in the same unit: of the probe at which the direction is found, and
        of a view that is "random". "auto": that of the adversarial step; in the paper's recipe 10,
        times `scale_` for rows whose mean norm is below 2 or above 128.
    sinkhorn_iterations : int
        Rounds of Sinkhorn-Knopp for a target.
    temperature : "adaptive" or float
        Of the targets. "adaptive" keeps their entropy at `target_entropy`.
    target_entropy : "auto" or float
        In nats; "auto" is log sqrt(n_prototypes).
    warmup : "auto" or float
        Epochs in which the target entropy falls from log(n_prototypes). "auto": a fiftieth of the
        epochs; 100 in the paper's recipe, however many epochs are run.
    epochs : "auto" or int
        "auto" is a budget of work that takes minutes on two cores: 300 to 2,000 steps.
    batch_size : int
        Rows in a batch, at most.
    learning_rate : "auto" or float
        Of Adam, at its highest. "auto": 2e-3, and 5e-4 in the paper's recipe.
    schedule : {"auto", "cosine", "drop"}
        How the learning rate goes: up in the first twentieth of the epochs and down to a hundredth
        along a cosine (ours), or down to a fifth from epoch 1,000 on (the paper's).
    axes : {"auto", "principal", "learned"}
        Along which the embedding is given: its principal ones, uncorrelated, sorted by spread and
        with spreads that are brought together (ours), or as the network has learned them (the
        paper's, and with an own encoder).
    precision : {"auto", "float32", "bfloat16"}
        Of training. "auto" takes bfloat16 where the processor computes with it directly.
        `transform` is always in float32.
    device : "auto" or str or torch.device
        "auto" is a CUDA device if there is one.
    random_state : int, RandomState or None
        The same number gives the same weights, bit for bit.
    checkpoint : path or None
        Folder in which to keep the state of training: every 10 seconds (less often if writing it
        takes longer than one), at the end, and on Ctrl-C; the newest two are kept. A fit that
        finds its own state there goes on from it: with the same bits, or with another number of
        threads or on another processor up to rounding. One fit at a time may use it.
    verbose : int
        0 is silent; 1 shows progress on standard error.

    Attributes
    ----------
    embedding_dim_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if fitted on a data frame whose columns have names.
    epsilon_ : float
        The length of an adversarial step that was used.
    scale_ : float or ndarray (n_features_in_,)
        What rows are divided by before they are learned from; an array if columns are of unlike
        units.
    epochs_ : int
        The number of epochs planned; 0 if only `partial_fit` was called.
    history_ : list of dict
        A row an epoch: loss, entropy of the targets, temperature, seconds.
    health_ : dict
        The `outcome` ("sound", "diverged", "collapsed", "too short to tell", "too few rows to tell"
        or "nothing beyond PCA"), the `verdict` that says why and what to change, and its figures.

    References
    ----------
    .. [1] Ntelemis, Jin, Thomas, "A Generic Self-Supervised Framework of Learning Invariant
       Discriminative Features", IEEE TNNLS, 2023 (arXiv 2202.06914).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = SelfView(n_components=10, epochs=2, random_state=0, verbose=0)
    >>> model.fit_transform(X).shape
    (1797, 10)
    """

    n_components: int = field(default=10, kw_only=False)
    recipe: str = "selfview"
    n_prototypes: int = 100
    encoder: str | nn.Module = "auto"
    width: str | int = "auto"
    batch_norm: str = "both"
    views: str = "adversarial"
    adversarial_share: str | float = "auto"
    neighbours: str | int = "auto"
    contrast: str | float = "auto"
    epsilon: str | float = "auto"
    xi: str | float = "auto"
    sinkhorn_iterations: int = 10
    temperature: str | float = "adaptive"
    target_entropy: str | float = "auto"
    warmup: str | float = "auto"
    epochs: str | int = "auto"
    batch_size: int = 256
    learning_rate: str | float = "auto"
    schedule: str = "auto"
    axes: str = "auto"
    precision: str = "auto"
    device: str | torch.device = "auto"
    random_state: Any = None
    checkpoint: Any = None
    verbose: int = 1

    _checks: ClassVar[parameters.Checks] = {
        **PrototypeEmbedder._checks,
        "recipe": partial(parameters.one_of, options=list(RECIPES)),
        "schedule": partial(parameters.one_of, options=["auto", *SCHEDULES]),
        "axes": partial(parameters.one_of, options=("auto", "principal", "learned")),
        "batch_norm": partial(parameters.one_of, options=encoders.BATCH_NORM),
        "views": partial(parameters.one_of, options=list(VIEWS)),
        "n_prototypes": partial(parameters.integer, at_least=2),
        "sinkhorn_iterations": partial(parameters.integer, at_least=1),
        "width": partial(parameters.integer_or, word="auto", at_least=1),
        "neighbours": partial(parameters.integer_or, word="auto", at_least=0),
        "adversarial_share": partial(parameters.positive_or, word="auto", at_most=1.0),
        "contrast": partial(parameters.positive_or, word="auto", or_zero=True),
        "epsilon": partial(parameters.positive_or, word="auto"),
        "xi": partial(parameters.positive_or, word="auto"),
        "temperature": partial(parameters.positive_or, word="adaptive"),
        "target_entropy": partial(parameters.positive_or, word="auto"),
        "warmup": partial(parameters.positive_or, word="auto", or_zero=True),
    }

    def check_parameters(self) -> None:
        super().check_parameters()
        if len(set(VIEWS[self.views])) > 1 and self.neighbours not in ("auto", 0):
            raise InputError(
                f"views={self.views!r} makes both views, got neighbours={self.neighbours!r}, which "
                "asks for a neighbour as the second: set neighbours=0, or name one kind of views"
            )
        highest = math.log(self.n_prototypes)
        if self.target_entropy != "auto" and float(self.target_entropy) > highest:
            raise InputError(
                f"target_entropy must not be above log(n_prototypes) = {highest:.3f}, got "
                f"{self.target_entropy}"
            )

    def _phases(self, network: EncoderHead, plan: FitPlan) -> list[Phase]:
        k, iterations, settings = self.n_prototypes, self.sinkhorn_iterations, plan.settings

        def targets(logits: Tensor, step: Step) -> Tensor:
            """Targets of a view, with the temperature that the last view left (Algorithm 2)."""
            logits = logits.detach().float()
            temperature = float(network.temperature)
            if self.temperature != "adaptive":
                return sinkhorn(logits, temperature, iterations, step.shard)
            done = plan.stream.step(step.epoch) if plan.stream else step.epoch * plan.batches
            progress = done / settings.warmup if settings.warmup else 1.0
            aim = scheduled_entropy(settings.target_entropy, k, progress)
            q, temperature = adapt_temperature(logits, temperature, aim, iterations, step.shard)
            network.temperature.fill_(temperature)
            return q

        def loss(step: Step) -> tuple[Tensor, dict[str, float]]:
            """InfoNCE of neighbours; in every so many steps also the swapped prediction."""
            predicts = step.index % settings.every == 0
            views = self.views if predicts else "none"
            x = two_views(step, network, views, settings, plan.neighbours)
            with autocast_weights(network.layers, plan.device):
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
                pull = 1 + (settings.attraction - 1) * max(
                    0.0, 2 * step.epoch / max(plan.epochs, 1) - 1
                )
                z1, z2 = split_views(z, 2)
                nce = info_nce(z1, z2, step.shard, power=settings.power, attraction=pull)
                value = value + settings.contrast * nce
                metrics["info_nce"] = nce.item()
            return value, metrics

        learned = [p for p in network.parameters() if p.requires_grad]  # an encoder may be frozen
        return [Phase("loss", learned, loss, self._rate(plan))]

    def predict_proba(self, X: Any) -> Any:
        """Soft assignment of every row to the prototypes: (n, n_prototypes), rows sum to 1.

        Parameters
        ----------
        X : rows as in `fit`
        """
        network = self._fitted_network()
        return self._apply(lambda x: torch.softmax(network(x), dim=1), X, self.n_prototypes)
