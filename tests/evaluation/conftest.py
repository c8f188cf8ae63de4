"""Small embeddings whose scores are known."""

import numpy as np
import pytest


@pytest.fixture
def blobs():
    """Three well separated classes of 60 rows in 4-d, in the order of their classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 60)
    return rng.normal(size=(180, 4)) + 8 * np.eye(3, 4)[y], y
