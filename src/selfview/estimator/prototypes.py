"""What surrounds SelfView's algorithm: a fit's plan, the network, its delivery, its verdict."""

import math
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from selfview import health
from selfview.errors import InputError
from selfview.estimator.clustering import ClusteringMixin
from selfview.estimator.embedder import Embedder
from selfview.estimator.explaining import ExplainMixin
from selfview.estimator.forecast import encoder_name
from selfview.estimator.plan import FitPlan, projected_rows, with_neighbours
from selfview.estimator.recipes import FEW_ROWS, RECIPES, input_scale, settings_of
from selfview.estimator.showing import ShowMixin
from selfview.estimator.verdict import Setting
from selfview.neighbours.across_groups import usable_groups
from selfview.neighbours.precomputed import is_precomputed, linked_rows
from selfview.neighbours.search import Neighbours
from selfview.networks import encoders
from selfview.networks.encoders import EncoderHead, ScaledEncoder
from selfview.networks.start import PAIRS, START_ROWS, locality_start, principal_start
from selfview.rows.base import Rows
from selfview.rows.projection import ProjectedRows
from selfview.rows.stream import Stream
from selfview.training.state import History
from selfview.views import VIEWS
from selfview.whitening import ROWS, STREAM_ROWS, whiten


class PrototypeEmbedder(ClusteringMixin, ExplainMixin, ShowMixin, Embedder):
    """An encoder with a head of prototypes, learned from rows and their neighbours."""

    n_prototypes: int
    batch_norm: str
    temperature: str | float
    epsilon: str | float
    xi: str | float
    contrast: str | float
    target_entropy: str | float
    views: str
    neighbours: Any
    metric: str

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:  # noqa: ARG002
        """Learn the embedding of `X`.

        Parameters
        ----------
        X : ndarray, memmap, sparse matrix, Tensor, DataFrame or torch Dataset
            Rows of features (n, n_features), or images (n, channels, height, width). A data frame
            of mixed columns goes through a `TablePreparation`, `preparation_`.
        y : ignored
            Labels are never looked at.
        groups : array (n,) or None, default None
            The group of every row, such as a speaker, a donor or a day: what differs between groups
            is not to be learned. Three of ten second views are then rows of other groups that show
            the same, found without labels; the others are neighbours in the row's own group.
            `transform` needs no groups, and takes rows of groups never seen. Groups that have
            nothing in common are not mixed, and a warning says so.

        Returns
        -------
        self
        """
        return self._fit(X, groups)

    def fit_transform(self, X: Any, y: Any = None, groups: Any = None) -> Any:  # noqa: ARG002
        """Fit, and embed the same rows: (n, embedding_dim_).

        Parameters
        ----------
        X : rows as in `fit`
        y : ignored
        groups : as in `fit`, default None
        """
        self._fit(X, groups)
        return self.embedding_.copy() if hasattr(self, "embedding_") else self.transform(X)

    def _plan(self, rows: Rows, stream: Stream | None = None) -> FitPlan:
        plan = super()._plan(rows, stream)
        if isinstance(self.n_clusters, int) and self.n_clusters > rows.n:
            raise InputError(
                f"n_clusters must be at most the number of rows, {rows.n}, got {self.n_clusters}"
            )
        if self.recipe == "paper" or isinstance(self.encoder, nn.Module):
            plan = replace(plan, summary=replace(plan.summary, column_stds=()))
        if is_precomputed(self.neighbours):
            if stream:
                raise InputError(
                    "neighbours must be a number in a stream, whose rows come one chunk after the "
                    "other, got row numbers or a graph: call fit"
                )
            plan = replace(plan, links=linked_rows(self.neighbours, rows.n))
        return plan

    def check_parameters(self) -> None:
        super().check_parameters()
        asked = is_precomputed(self.neighbours) or self.neighbours not in ("auto", 0)
        if len(set(VIEWS[self.views])) > 1 and asked:
            got = "a graph" if is_precomputed(self.neighbours) else repr(self.neighbours)
            raise InputError(
                f"views={self.views!r} makes both views, got neighbours={got}, which asks for a "
                "neighbour as the second: set neighbours=0, or name one kind of views"
            )
        highest = math.log(self.n_prototypes)
        if self.target_entropy != "auto" and float(self.target_entropy) > highest:
            expected = f"at most log(n_prototypes) = {highest:.3f}, got {self.target_entropy}"
            raise InputError(f"target_entropy must be {expected}")

    def _identity(self, rows: Rows, plan: FitPlan) -> dict[str, Any]:
        links = {} if plan.links is None else {"neighbours": plan.links.checksum}
        return super()._identity(rows, plan) | links

    def _complete(self, rows: Rows, plan: FitPlan, project: bool = True) -> FitPlan:
        """The plan with settings, neighbours and, if the network shall see them, components."""
        recipe, stream = RECIPES[self.recipe], plan.stream
        folder = None if self.checkpoint is None or stream else Path(self.checkpoint)
        kind = recipe.kind(plan.summary, plan.n, alone=plan.alone)
        groups = plan.groups
        if groups is not None and not usable_groups(groups):
            groups = None
        perceptron = plan.encoder == "mlp"
        if project and kind.components and perceptron and not stream:
            projected = projected_rows(rows, plan.summary, kind, folder, groups)
            plan = replace(plan, shape=projected.shape, projected=projected)
        few = rows.n <= FEW_ROWS and kind.components and not isinstance(self.encoder, nn.Module)
        if self.epochs == "auto" and not stream and (plan.projected or few):
            epochs = max(1, round(recipe.steps(rows.n, self.n_components) / plan.batches))
            # A step of convolutions may cost so much that fewer were planned.
            plan = replace(plan, epochs=epochs if perceptron else min(epochs, plan.epochs))
        plan = replace(plan, settings=settings_of(self, plan))
        if plan.groups is not None:
            self._check_neighbours_of_groups(plan)
        return with_neighbours(plan, rows, groups, self.metric, folder)

    def _check_neighbours_of_groups(self, plan: FitPlan) -> None:
        """Raise InputError if the parameters ask for other neighbours than groups have."""
        if not plan.settings.neighbours:
            raise InputError(
                "neighbours must be at least 1 with groups, whose second views are neighbours; "
                f"this fit takes none (neighbours={self.neighbours!r}, recipe={self.recipe!r})"
            )
        if plan.links or self.metric != "auto":
            name = "neighbours" if plan.links else "metric"
            raise InputError(
                f"{name} must be left out with groups, whose neighbours are found in a way of "
                "their own"
            )

    def _network(self, plan: FitPlan) -> EncoderHead:
        normed = self.batch_norm in ("both", "encoder")
        width = plan.settings.width
        encoder = encoders.make_encoder(plan.encoder, plan.shape, self.n_components, normed, width)
        dim = self._embedding_dim(encoder, plan)
        if plan.projected is not None and RECIPES[self.recipe].start != "random":
            assert isinstance(encoder, nn.Sequential)
            self._start_last_layer(encoder, plan, plan.projected)
        if not isinstance(self.encoder, nn.Module):  # a custom one takes the rows as they are
            scale = 1.0 if plan.projected else input_scale(plan.summary)
            encoder = ScaledEncoder(scale, *encoder.children())
        head = encoders.head(dim, self.n_prototypes, self.batch_norm in ("both", "head"))
        start = 1.0 if self.temperature == "adaptive" else float(self.temperature)
        return EncoderHead(encoder, head, epsilon=plan.settings.epsilon, temperature=start)

    def _start_last_layer(self, encoder: nn.Sequential, plan: FitPlan, seen: ProjectedRows) -> None:
        """Initialise the last layer by the rows, and by their neighbours if there are enough."""
        many = plan.alone and plan.n >= FEW_ROWS and RECIPES[self.recipe].start == "locality"
        if many and isinstance(plan.neighbours, Neighbours):
            some, near = plan.neighbours.pairs(PAIRS, plan.seed)
            locality_start(encoder, seen.pick(some), seen.pick(near))
        else:
            some = np.unique(np.linspace(0, plan.n - 1, START_ROWS).astype(np.intp))
            principal_start(encoder, seen.pick(some))

    def _conclude(self, rows: Rows, plan: FitPlan) -> None:
        self._forget_rows()
        if plan.stream is None:
            self._find_clusters(rows)

    def _finish(self, network: EncoderHead, rows: Rows, plan: FitPlan) -> None:
        if not isinstance(network.encoder, ScaledEncoder):
            return
        if plan.settings.whiten:
            most = STREAM_ROWS if plan.stream else ROWS
            whiten(network.encoder, partial(plan.batch, rows), rows.n, plan.seed, most)
        if plan.projected is not None:
            projection = plan.projected.projection
            network.encoder.fold(projection.mean, projection.scale, projection.basis)

    def _decided(self, plan: FitPlan) -> dict[str, Any]:
        recipe, settings = RECIPES[self.recipe], plan.settings
        values = {
            "encoder": encoder_name(self.network_.encoder),
            "width": settings.width,
            "neighbours": settings.neighbours,
            "contrast": settings.contrast,
            "adversarial_share": 1 / settings.adversarial_every,
            "epsilon": settings.epsilon,
            "xi": settings.xi,
            "target_entropy": settings.target_entropy,
            "warmup": settings.warmup / plan.batches,
            "learning_rate": recipe.peak(self.learning_rate),
            "schedule": recipe.schedule,
            "axes": "principal" if settings.whiten else "learned",
        }
        auto = {
            k: v
            for k, v in values.items()
            if isinstance(g := getattr(self, k), str) and g == "auto"
        }
        return super()._decided(plan) | auto

    def predict_proba(self, X: Any) -> Any:
        """Soft assignment of every row to the prototypes: (n, n_prototypes), rows sum to 1.

        Parameters
        ----------
        X : rows as in `fit`
        """
        network = self._fitted_network()
        return self._apply(lambda x: torch.softmax(network(x), dim=1), X, self.n_prototypes)

    @property
    def epsilon_(self) -> float:
        """Length of an adversarial perturbation."""
        return float(self._fitted_network().epsilon)

    @property
    def scale_(self) -> float | NDArray[np.float32]:
        """What rows are divided by."""
        scale = encoders.scale_of(self._fitted_network().encoder)
        return scale.cpu().numpy() if scale.ndim else float(scale)

    def _headline(self, rows: Rows, plan: FitPlan, network: EncoderHead) -> str:
        scaled = (
            ", columns divided by their standard deviations" if plan.summary.column_stds else ""
        )
        epsilon = f", epsilon {float(network.epsilon):.3g}"
        return super()._headline(rows, plan, network) + epsilon + scaled

    def _diagnose(self, network: EncoderHead, x: Tensor, history: History) -> dict[str, float]:
        p = torch.softmax(network(x).float(), dim=1).cpu().numpy()
        last = history[-1] if history else {}
        return {
            "loss_over_log_k": last.get("loss_over_log_k", math.nan),
            "entropy_over_log_k": health.relative_entropy(p),
            "prototype_use": health.prototype_use(p),
            "marginal_error": last.get("marginal_error", math.nan),
        }

    def _highest_loss(self, rows: Rows, plan: FitPlan) -> float:
        uniform = 2 * math.log(self.n_prototypes)
        return uniform + plan.settings.contrast * math.log(min(rows.n, self.batch_size))

    def _suspects(self, plan: FitPlan) -> list[Setting]:
        given = {"epsilon": self.epsilon, "xi": self.xi, "contrast": self.contrast or "auto"}
        usual = asdict(settings_of(type(self)(recipe=self.recipe), plan))
        settings = [
            Setting(name, float(value), usual[name])
            for name, value in given.items()
            if value != "auto"
        ]
        return super()._suspects(plan) + settings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.n_clusters is not None:
            tags.estimator_type = "clusterer"
        return tags
