"""AnnData in, AnnData out: `embed` works as scanpy's tools do.

It needs the extra: ``pip install 'selfview[anndata]'``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfview.data import read
from selfview.data.anndata_files import SPATIAL
from selfview.data.guard import need
from selfview.data.stores import Store
from selfview.errors import InputError
from selfview.method import SelfView

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["embed", "read_imzml"]

KEY = "X_selfview"


def embed(
    adata: AnnData,
    use_rep: str | None = None,
    layer: str | None = None,
    groups: str | None = None,
    key_added: str = KEY,
    **parameters: Any,
) -> SelfView:
    """Learn an embedding of the cells, write it into `adata`, and return the fitted model.

    ``adata.obsm[key_added]`` is the embedding, float32 of shape (n_obs, n_components).
    ``adata.uns["selfview"]``, or ``adata.uns[key_added]`` for another key, holds the parameters
    under ``"params"`` and the verdict on the fit. With ``n_clusters``, the clusters are a
    categorical column of ``obs`` under the same name. No column of ``obs`` but ``groups`` is used.

    Parameters
    ----------
    adata : AnnData
        In memory, or backed by a file: its matrix ``X`` is then read in blocks.
    use_rep : str or None, default None
        The array of ``obsm`` to learn from, ``"X_pca"`` for example; None or ``"X"``: the matrix.
    layer : str or None, default None
        The layer to learn from instead.
    groups : str or None, default None
        A column of ``obs``: what differs between its groups (donors, batches) is not learned.
    key_added : str, default "X_selfview"
        Where the embedding goes.
    **parameters
        Those of `SelfView`; ``random_state`` is 0 if not given, as in scanpy.

    Returns
    -------
    SelfView
        Fitted; it can transform new cells with the same variables.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from selfview.anndata import embed
    >>> adata = anndata.AnnData(np.random.default_rng(0).random((60, 8), dtype=np.float32))
    >>> model = embed(adata, n_components=3, epochs=2, verbose=0)
    >>> adata.obsm["X_selfview"].shape
    (60, 3)
    """
    rows = _rows(adata, use_rep, layer)
    chosen = {"random_state": 0, **parameters}
    model = SelfView(**chosen)
    model.fit(rows, groups=None if groups is None else _column(adata, groups))
    name = "selfview" if key_added == KEY else key_added
    adata.obsm[key_added] = model.transform(rows)
    about = {"use_rep": use_rep, "layer": layer, "groups": groups, **chosen}
    about |= {"n_components": model.n_components}
    adata.uns[name] = {"params": _plain(about), "verdict": str(model.health_["verdict"])}
    if model.n_clusters is not None:
        pandas = need("pandas", "anndata")
        numbers = np.arange(model.labels_.max() + 1).astype(str)
        adata.obs[name] = pandas.Categorical.from_codes(model.labels_, categories=numbers)
    return model


def read_imzml(
    path: str | os.PathLike[str],
    mz_range: tuple[float, float] = (50.0, 1000.0),
    bins: int = 1024,
) -> AnnData:
    """A mass-spectrometry image as AnnData, a pixel in each row.

    ``X`` holds the rows that ``selfview fit`` learns from: intensities summed in m/z bins, each bin
    divided by its maximum. ``var`` has the columns ``mz``, the middle of a bin, and ``maximum``.
    ``obsm["spatial"]`` holds x and y, as squidpy has them. ``selfview fit`` on the file that
    ``adata.write_h5ad`` makes of it draws the tissue again.

    Parameters
    ----------
    path : str or path
        The .imzML file; its .ibd lies beside it.
    mz_range : (float, float), default (50.0, 1000.0)
        The range of the m/z bins.
    bins : int, default 1024
        The number of equal m/z bins.

    Returns
    -------
    AnnData
    """
    anndata, pandas = need("anndata", "anndata"), need("pandas", "anndata")
    dataset = read(path, mz_range=mz_range, bins=bins)
    how: Any = dataset.preparation
    places = np.asarray(dataset.coordinates)
    mz = how.centres
    var = pandas.DataFrame({"mz": mz, "maximum": how.maxima}, index=[f"{m:.4f}" for m in mz])
    obs = pandas.DataFrame(index=[f"x{x}y{y}" for x, y in places])
    return anndata.AnnData(np.array(dataset.X), obs=obs, var=var, obsm={SPATIAL: places})


def _rows(adata: AnnData, use_rep: str | None, layer: str | None) -> Any:
    if use_rep is not None and layer is not None:
        raise InputError("use_rep and layer can't both be given: each names the rows")
    if layer is not None:
        return _entry(adata.layers, layer, "layer", "layers")
    if use_rep not in (None, "X"):
        found = _entry(adata.obsm, str(use_rep), "use_rep", "obsm")
        return found.to_numpy() if hasattr(found, "to_numpy") else found
    if not adata.isbacked:
        if adata.X is None:
            raise InputError("adata has no X: name a layer or use_rep")
        return adata.X
    if adata.is_view:
        raise InputError("adata is a view of a file on disk: embed adata.to_memory()")
    file: Any = adata.file["X"].file
    file.flush()
    path = Path(file.filename)
    return Store(path, file, (path,)).rows("X")


def _entry(mapping: Any, key: str, option: str, where: str) -> Any:
    if key not in mapping:
        held = ", ".join(map(str, mapping)) or "none"
        raise InputError(f"{option} must be one of adata.{where} ({held}), got {key!r}")
    return mapping[key]


def _column(adata: AnnData, name: str) -> Any:
    if name not in adata.obs:
        held = ", ".join(map(str, adata.obs.columns)) or "none"
        raise InputError(f"groups must be a column of adata.obs ({held}), got {name!r}")
    return np.asarray(adata.obs[name])


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """What .h5ad can hold of them: numbers, texts and truth values."""
    return {k: v for k, v in parameters.items() if isinstance(v, bool | int | float | str)}
