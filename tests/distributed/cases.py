"""Cases that one process and many run alike: each returns named arrays to compare."""

import warnings

import numpy as np
import torch
from torch import nn

from selfview import CollapseWarning, InputError, SelfView, SelfViewError
from selfview.baselines import (
    CPC,
    AdversarialAutoEncoder,
    SparseAutoEncoder,
    VariationalAutoEncoder,
)
from selfview.cli.embed import embedded
from selfview.distributed import current
from selfview.neighbours import search
from selfview.rows.conversion import as_rows
from selfview.targets import adapt_temperature, entropy, marginal_error, sinkhorn
from selfview.training.batch_norm import synchronised
from selfview.training.loop import TrainingError
from selfview.views import random_perturbation

# Rounding of bfloat16 would hide what is compared: one and two processes sum in another order.
COMMON = dict(batch_size=256, random_state=0, verbose=0, precision="float32")


def rows(n, dim=16):
    rng = np.random.default_rng(1)
    centres = 4 * rng.normal(size=(5, dim))
    return (centres[rng.integers(5, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


def free(network, name):
    """Is it a bias that a batch norm takes off again?

    Its gradient is zero but for rounding, which Adam scales up to whole steps, in one process as in
    many.
    """
    layer, _, kind = name.rpartition(".")
    linear = isinstance(network.get_submodule(layer), nn.Linear | nn.Conv1d | nn.Conv2d)
    return linear and kind == "bias" and layer != "head.6"


def joined(tensors):
    return torch.cat([t.detach().double().flatten() for t in tensors]).numpy()


def numbers(model):
    """The curves of a fitted model, its weights, batch norms' variances, and whole state."""
    curves = {
        name: np.array([row[name] for row in model.history_])
        for name in model.history_[0]
        if name not in ("epoch", "seconds")
    }
    network = model.network_
    weights = [p for name, p in network.named_parameters() if not free(network, name)]
    buffers = [b for name, b in network.named_buffers() if name.endswith("running_var")]
    state = network.state_dict().values()
    sets = {"weights": weights, "variances": buffers, "state": state}
    return curves | {name: joined(tensors) for name, tensors in sets.items() if tensors}


def fitted(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        return numbers(model.fit(X))


def smooth_model(epochs, **options):
    """A model whose training does not amplify rounding: few kinks, short views, a small rate.

    The head has ReLUs, and the policy of the temperature has thresholds. With this seed nothing
    comes within rounding of one; with others, noise of 1e-7 in the rows moves a loss by 2e-4.
    """
    torch.manual_seed(3)
    layers = [nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 32)]
    encoder = nn.Sequential(*layers, nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 4))
    given = COMMON | dict(n_prototypes=20, epsilon=0.5, learning_rate=3e-4)
    given |= dict(sinkhorn_iterations=3, random_state=3) | options
    return SelfView(encoder=encoder, epochs=epochs, **given)


def fifty_steps():
    return fitted(smooth_model(50), rows(256))


def fifty_uneven_steps():
    return fitted(smooth_model(25), rows(509))  # batches of 255 and 254 rows


def perceptron():
    # With 61 rows, one stands at the kink of a ReLU: noise of 1e-7 moves its gradients by 6e-3.
    return fitted(SelfView(epochs=2, **COMMON), rows(59))


def convolutions():
    images = rows(23, 12 * 12).reshape(23, 1, 12, 12)
    return fitted(SelfView(epochs=2, **COMMON), images)


def baselines():
    found = {}
    kinds = (AdversarialAutoEncoder, SparseAutoEncoder, VariationalAutoEncoder, CPC)
    for kind in kinds:
        # A small rate: Adam moves a weight by about that, whatever rounding decides its direction.
        given = dict(n_components=3, epochs=2, recipe="paper", learning_rate=1e-4, **COMMON)
        if kind is not CPC:
            given["batch_norm"] = False  # none but the encoder's own
            given["encoder"] = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
            torch.manual_seed(5)
            given["encoder"].apply(lambda m: getattr(m, "reset_parameters", lambda: None)())
        for name, value in fitted(kind(**given), rows(21)).items():
            found[f"{kind.__name__}.{name}"] = value
    return found


def batch_norm():
    """Two passes through batch norms: outputs, gradients, and what is remembered."""
    shard = current().shard(9)
    torch.manual_seed(0)
    flat, images = nn.BatchNorm1d(3), nn.BatchNorm2d(2, momentum=None)
    plain = nn.BatchNorm1d(3, affine=False, track_running_stats=False)
    network = nn.ModuleList([flat, images, plain, flat])
    found = {}
    x = (100 + torch.randn(9, 3))[shard.rows].requires_grad_()
    pictures = torch.randn(9, 2, 4, 5)[shard.rows].requires_grad_()
    slopes = torch.randn(9, 3)[shard.rows], torch.randn(9, 2, 4, 5)[shard.rows]
    with synchronised(network, current()):
        for _ in range(2):
            outs = network[2](network[0](x)), network[1](pictures)
            value = sum((out * slope).sum() for out, slope in zip(outs, slopes, strict=True))
            inputs = torch.autograd.grad(value, [x, pictures], retain_graph=True)
            weights = torch.autograd.grad(value, [*flat.parameters(), *images.parameters()])
    assert network[0] is flat
    assert network[3] is flat
    for i, t in enumerate((*outs, *inputs)):
        found[f"row{i}"] = shard.gather(t.detach()).numpy()
    for i, t in enumerate(weights):
        found[f"weight{i}"] = shard.sum(t).numpy()
    return found | {name: t.numpy() for name, t in network.state_dict().items()}


def transport():
    """Targets of logits that a plain exponential could not take, and what is said of them."""
    shard = current().shard(11)
    logits = torch.randn(11, 5, generator=torch.Generator().manual_seed(0))
    found = {}
    for scale in (1.0, 30.0, 3000.0):
        own = (logits * scale)[shard.rows]
        q = sinkhorn(own, 0.5, 25, shard)
        found[f"q{scale}"] = shard.gather(q).numpy()
        found[f"entropy{scale}"] = entropy(q, shard).numpy()
        found[f"marginal{scale}"] = np.array(marginal_error(q, shard))
        adapted, temperature = adapt_temperature(own, 1.0, 0.8, 10, shard)
        found[f"adapted{scale}"] = shard.gather(adapted).numpy()
        found[f"temperature{scale}"] = np.array(temperature)
    return found


def noise():
    shard = current().shard(11)
    generator = torch.Generator().manual_seed(0)
    x = torch.zeros(11, 7)[shard.rows]
    length = 2.0 * shard.draw(torch.rand, (len(x), 1), generator=generator)
    return {"step": shard.gather(random_perturbation(x, length, generator, shard)).numpy()}


def refusals():
    """What each process says when the others were given something else, or one of them fails."""
    group = current()
    found = {}

    def told(name, kind, act):
        try:
            act()
        except kind as error:
            found[name] = np.array(f"{type(error).__name__}: {error}")

    X = rows(40)
    broken = X.copy()
    broken[3, 2] = np.nan
    told("other rows", InputError, lambda: smooth_model(1).fit(X[group.rank :]))
    told("one fails", SelfViewError, lambda: smooth_model(1).fit(broken if group.rank else X))
    model = smooth_model(3, learning_rate=1e30)
    told("not finite", TrainingError, lambda: model.fit(X))
    blocked = smooth_model(1, checkpoint="/proc/selfview")
    told("can't write", SelfViewError, lambda: blocked.fit(X))
    return found


def own_chance():
    """Without a seed all processes take the first one's."""
    return fitted(smooth_model(1, random_state=None), rows(40))


def frozen_parts():
    """Weights that are never used stay as they were, in all processes."""

    class Partly(nn.Module):
        def __init__(self, whole):
            super().__init__()
            self.whole, self.unused = whole, nn.Linear(2, 2)
            nn.init.ones_(self.unused.weight)
            nn.init.zeros_(self.unused.bias)

        def forward(self, x):
            return self.whole(x)

    model = smooth_model(2)
    model.encoder = Partly(model.encoder)
    return fitted(model, rows(40))


def frozen_encoder():
    """Batch-norm statistics of an encoder that isn't learned stay as they were."""
    model = smooth_model(2)
    model.encoder.requires_grad_(False)
    before = joined(model.encoder.state_dict().values())
    found = fitted(model, rows(40))
    assert (joined(model.network_.encoder.state_dict().values()) == before).all()
    return found


SHORT = dict(epochs=6, batch_size=20, random_state=0)  # two steps an epoch, for `rows(40)`


def uninterrupted():
    return fitted(SelfView(verbose=0, **SHORT), rows(40))


def ended():
    """Fits that end early: by the first process's callback, and by its clock within an epoch."""
    seen = []

    def on_epoch(end):
        seen.append(end.embedding())
        return end.epoch == 3

    by_word = smooth_model(6, batch_size=20, on_epoch=on_epoch)
    by_time = smooth_model(6, batch_size=20, max_seconds=1e-9)
    found = {}
    for name, model in (("word", by_word), ("time", by_time)):
        found |= {f"{name}_{key}": value for key, value in fitted(model, rows(40)).items()}
        found[f"{name}_epochs"] = np.array(len(model.history_))
    by_word.on_epoch = None
    if current().is_main:
        np.testing.assert_array_equal(seen[-1], by_word.transform(rows(40)))
    return found | {"calls": np.array(len(seen))}


def table():
    """An embedding to which each process contributes a range of the rows, as `selfview embed`."""
    model = smooth_model(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        Z = model.fit_transform(rows(41))
    return {"Z": Z, "shared": embedded(model, rows(41), current())}


def searched():
    """Neighbours by the engine; under torchrun every process looks up a part of the rows."""
    X = as_rows(rows(1003))
    exact, search.EXACT_ROWS = search.EXACT_ROWS, 100
    try:
        found = search.Neighbours(X, X.pick, count=10, angle=False)
        looked_up = []
        plain = search.engine.looked_up

        def counted(index, parts, count, asked):
            looked_up.append(len(asked))
            return plain(index, parts, count, asked)

        search.engine.looked_up = counted
        return {"numbers": found.numbers, "looked_up": np.array(looked_up)}
    finally:
        search.EXACT_ROWS, search.engine.looked_up = exact, plain
