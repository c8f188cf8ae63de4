"""Texts: scikit-learn's own documentation, embedded; which pages are about the same thing?

python examples/texts.py [epochs] [picture.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import all_estimators

from selfview import SelfView, evaluate

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
picture = Path(sys.argv[2] if len(sys.argv) > 2 else "texts.png")

pages = [(name, kind) for name, kind in all_estimators() if kind.__doc__]
names = np.array([name for name, _ in pages])
topics = np.array([kind.__module__.split(".")[1] for _, kind in pages])  # cluster, svm ...
frequent = [topic for topic in np.unique(topics) if (topics == topic).sum() >= 8]

words = TfidfVectorizer(stop_words="english", sublinear_tf=True, max_features=1000, min_df=2)
rows = words.fit_transform(kind.__doc__ for _, kind in pages)  # sparse, taken as it is
model = SelfView(n_components=10, n_prototypes=20, epochs=epochs, random_state=0)
Z = model.fit_transform(rows)

known = np.isin(topics, frequent)
for name, features in {"tf-idf": rows.toarray(), "selfview": Z}.items():
    score = evaluate(features[known], topics[known], measures=["clustering"])["kmeans_nmi"]
    print(f"{name:<9} k-means NMI with the topics: {score:.2f}")

_, nearest = NearestNeighbors(n_neighbors=4).fit(Z).kneighbors(Z)
for name in ("KMeans", "Ridge", "StandardScaler"):
    print(f"{name} is like {', '.join(names[nearest[list(names).index(name), 1:]])}")

points = TSNE(random_state=0, perplexity=15).fit_transform(Z[known])
for topic in frequent:
    plt.scatter(*points[topics[known] == topic].T, label=topic, s=12)
plt.legend()
plt.savefig(picture)
print(f"the picture is {picture}")
