"""The baselines beside other people's implementations: same rows, same steps, same linear probe.

    python benchmarks/baselines.py [DATASET] [EPOCHS] [ROWS]      (default: digits 40)

PCA, NMF, LLE and Isomap beside scikit-learn's own, with the largest difference of the embeddings
(up to sign); the autoencoder beside scikit-learn's MLPRegressor; autoencoder, VAE and AAE beside
pythae's (`pip install pythae`). Peers get centred rows as our networks do, our number of epochs,
batch size and highest learning rate (one for all: Adam's usual 1e-3), pythae's also our encoder and
decoder; otherwise they are left as they come. Prints a table and then one line of JSON. A peer that
is not installed, or fails, says so in its row.
"""

import copy
import json
import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from sklearn import decomposition, manifold
from sklearn.neural_network import MLPRegressor

from selfview import baselines, evaluate, load_dataset
from selfview.estimator.recipes import RECIPES
from selfview.networks import encoders
from selfview.networks.decoders import make_decoder

SEED, DIM, BATCH, RATE = 0, 10, 256, 1e-3
NEIGHBOURS = 10
QUICK = {"random_state": SEED, "verbose": 0}


@dataclass(frozen=True)
class Row:
    """What one implementation of one method came to."""

    method: str
    by: str
    accuracy: float | None = None  # linear, in percent
    seconds: float | None = None
    note: str = ""


def classical() -> dict[str, tuple[Any, Any]]:
    """Ours and scikit-learn's, with the same settings."""
    lle = {"n_neighbors": NEIGHBOURS, "n_components": DIM, "eigen_solver": "dense"}
    return {
        "PCA": (
            baselines.PCA(DIM, random_state=SEED),
            decomposition.PCA(DIM, random_state=SEED),
        ),
        "NMF": (
            baselines.NMF(DIM, random_state=SEED),
            decomposition.NMF(DIM, max_iter=1000, random_state=SEED),
        ),
        "LLE": (
            baselines.LLE(DIM, n_neighbors=NEIGHBOURS, random_state=SEED),
            manifold.LocallyLinearEmbedding(**lle, random_state=SEED),
        ),
        "Isomap": (
            baselines.Isomap(DIM, n_neighbors=NEIGHBOURS),
            manifold.Isomap(n_neighbors=NEIGHBOURS, n_components=DIM),
        ),
    }


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference, relative to the largest entry, whatever the sign of a column."""
    signs = np.where((ours * theirs).sum(0) < 0, -1, 1)
    return float(np.abs(ours * signs - theirs).max() / np.abs(theirs).max())


def centred(X: np.ndarray) -> np.ndarray:
    """Rows around the mean row, in units of their entries' spread around it."""
    around = X - X.mean(0)
    return around / around.std()


def perceptron_code(X: np.ndarray, epochs: int) -> np.ndarray:
    """scikit-learn's network taught to return its input, read out at its narrowest layer."""
    flat = centred(X.reshape(len(X), -1))
    model = MLPRegressor(
        hidden_layer_sizes=(1024, 1024, DIM, 1024, 1024),
        batch_size=BATCH,
        learning_rate_init=RATE,
        max_iter=epochs,
        random_state=SEED,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few epochs are not convergence
        model.fit(flat, flat)
    h = flat
    for weights, bias in list(zip(model.coefs_, model.intercepts_, strict=True))[:3]:
        code = h @ weights + bias
        h = np.maximum(code, 0)
    return code


def pythae_code(kind: str, X: np.ndarray, epochs: int) -> np.ndarray:
    """The embedding of pythae's model of this kind."""
    from pythae import models
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn import BaseDecoder, BaseEncoder
    from pythae.pipelines import TrainingPipeline
    from pythae.trainers import AdversarialTrainerConfig, BaseTrainerConfig

    shape = encoders.input_shape(X.shape[1:], "auto")
    encoder = RECIPES["selfview"].images if len(shape) == 3 else "mlp"
    variational = kind != "AE"

    class Encoder(BaseEncoder):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.mean = encoders.make_encoder(encoder, shape, DIM, True)
            self.width = copy.deepcopy(self.mean[-1])

        def forward(self, x: torch.Tensor) -> Any:
            features = self.mean[:-1](x)
            out = ModelOutput(embedding=self.mean[-1](features))
            if variational:
                out["log_covariance"] = self.width(features)
            return out

    class Decoder(BaseDecoder):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = make_decoder(encoder, DIM, shape, True)

        def forward(self, z: torch.Tensor) -> Any:
            return ModelOutput(reconstruction=self.layers(z))

    name = {"AE": "AE", "VAE": "VAE", "AAE": "Adversarial_AE"}[kind]
    config = getattr(models, f"{name}{'' if name != 'Adversarial_AE' else '_'}Config")
    torch.manual_seed(SEED)
    options: dict[str, Any] = {"input_dim": shape, "latent_dim": DIM}
    model = getattr(models, name)(config(**options), encoder=Encoder(), decoder=Decoder())
    rates = {"learning_rate": RATE}
    trainer = BaseTrainerConfig
    if kind == "AAE":
        trainer = AdversarialTrainerConfig
        rates = {"autoencoder_learning_rate": RATE, "discriminator_learning_rate": RATE}
    rows = torch.from_numpy(np.ascontiguousarray(centred(X).reshape(-1, *shape), np.float32))
    with tempfile.TemporaryDirectory() as folder:
        TrainingPipeline(
            model=model,
            training_config=trainer(
                output_dir=folder,
                num_epochs=epochs,
                per_device_train_batch_size=BATCH,
                seed=SEED,
                no_cuda=True,
                **rates,
            ),
        )(train_data=rows)
    model.eval()
    with torch.inference_mode():
        return np.concatenate([model.encoder(part).embedding.numpy() for part in rows.split(1024)])


def main() -> None:
    """All methods, ours first and then its peers."""
    name, epochs, limit = (sys.argv[1:] + ["digits", "40", "0"][len(sys.argv) - 1 :])[:3]
    data = load_dataset(name)
    kept = np.arange(len(data))
    if int(limit):
        kept = np.sort(np.random.default_rng(SEED).permutation(len(data))[: int(limit)])
    X, y = np.asarray(data.X)[kept], np.asarray(data.y)[kept]
    rows: list[Row] = []

    def add(method: str, by: str, embed: Callable[[], np.ndarray], note: str = "") -> np.ndarray:
        start = time.perf_counter()
        try:
            Z = embed()
        except ImportError as error:
            rows.append(Row(method, by, note=f"not installed: {error.name}"))
            show(rows[-1])
            return np.empty((0, DIM))
        except Exception as error:  # a peer's failure is a result too
            rows.append(Row(method, by, note=f"failed: {' '.join(str(error).split())[:200]}"))
            show(rows[-1])
            return np.empty((0, DIM))
        seconds = time.perf_counter() - start
        scores = evaluate(Z, y, measures=["linear"], random_state=SEED)
        rows.append(Row(method, by, 100 * scores["linear_accuracy"], seconds, note))
        show(rows[-1])
        return Z

    print(f"{name}: {len(X):,} rows of {'x'.join(map(str, X.shape[1:]))}, {epochs} epochs")
    print(f"{'method':<10}{'by':<16}{'linear %':>9}{'seconds':>9}  note")
    flat = X.reshape(len(X), -1)
    for method, (ours, theirs) in classical().items():
        Z = add(method, "selfview", lambda ours=ours: ours.fit_transform(flat))
        other = theirs.fit_transform(flat)
        note = f"largest relative difference {difference(Z, other):.1e}"
        add(method, "scikit-learn", lambda theirs=theirs: theirs.fit_transform(flat), note)
    learned = {
        "AE": baselines.AutoEncoder,
        "VAE": baselines.VariationalAutoEncoder,
        "AAE": baselines.AdversarialAutoEncoder,
    }
    for method, kind in learned.items():
        model = kind(DIM, epochs=int(epochs), learning_rate=RATE, **QUICK)
        add(method, "selfview", lambda model=model: model.fit_transform(X))
        if method == "AE":
            add(method, "scikit-learn", lambda: perceptron_code(X, int(epochs)))
        add(method, "pythae", lambda method=method: pythae_code(method, X, int(epochs)))
    print(json.dumps({"data": name, "rows": len(X), "epochs": int(epochs), "seed": SEED,
                      "results": [asdict(row) for row in rows]}))  # fmt: skip


def show(row: Row) -> None:
    """A line of the table."""
    figures = (f"{'-' if v is None else f'{v:.1f}':>9}" for v in (row.accuracy, row.seconds))
    print(f"{row.method:<10}{row.by:<16}{''.join(figures)}  {row.note}", flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
