"""Dense unit vectors, as sentence transformers give them, and BERTopic's use of a reducer."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from selfview import SelfView


def unit_vectors(dim, n=400, topics=8, seed=0):
    """Topics within a common direction, as sentence embeddings have one; unit length."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(topics, dim)) / np.sqrt(dim)
    y = np.arange(n) % topics
    noise = rng.normal(size=(n, 40)) @ rng.normal(size=(40, dim)) / np.sqrt(40 * dim)
    X = rng.normal(size=dim) / np.sqrt(dim) + 0.6 * centres[y] + noise
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y


@pytest.mark.parametrize("dim", [384, 1024])
def test_topics_of_unit_vectors_are_found_better_than_by_pca(dim):
    X, y = unit_vectors(dim)
    order = np.random.default_rng(1).permutation(400)
    train, test = order[:200], order[200:]

    def accuracy(Z):
        return KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[test], y[test])

    Z = SelfView(5, random_state=0, verbose=0).fit_transform(X)
    assert accuracy(Z) > accuracy(PCA(5, random_state=0).fit_transform(X))


@pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
def test_the_calls_that_bertopic_makes_of_its_umap_model():
    X, _ = unit_vectors(384, n=120)
    model = SelfView(5, epochs=2, random_state=0, verbose=0)
    for y in (None, np.repeat(-1, 120)):  # with topics that are known in part, too
        Z = model.fit_transform(X, y=y)
        assert Z.shape == (120, 5)
        np.testing.assert_array_equal(model.fit(X, y=y).transform(X), Z)
    assert np.isfinite(model.transform(X[:1])).all()
    stream = SelfView(5, random_state=0, verbose=0)  # of BERTopic.partial_fit
    assert stream.partial_fit(X).transform(X).shape == (120, 5)


@pytest.mark.filterwarnings("ignore")  # of other libraries
def test_bertopic_itself_takes_it():
    bertopic = pytest.importorskip("bertopic", reason="BERTopic is not installed")
    from sklearn.cluster import KMeans

    X, y = unit_vectors(384, n=160, topics=4)
    words = ("apple pear plum", "wheel car road", "river lake sea", "violin flute drum")
    texts = [f"{words[k]} {'abcdefgh'[i % 8] * 3}" for i, k in enumerate(y)]
    model = bertopic.BERTopic(
        umap_model=SelfView(5, random_state=0, verbose=0),
        hdbscan_model=KMeans(4, n_init=10, random_state=0),
        embedding_model=None,
    )
    topics, _ = model.fit_transform(texts, embeddings=X)
    assert {*topics} == {0, 1, 2, 3}
    again, _ = model.transform(texts[:20], embeddings=X[:20])
    assert list(again) == list(topics[:20])
