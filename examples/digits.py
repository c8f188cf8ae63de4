"""Handwritten digits as images: what the ten numbers know, and which digits look alike.

python examples/digits.py [epochs] [picture.png]
"""

import sys
from pathlib import Path

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from selfview import SelfView, evaluate

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
picture = Path(sys.argv[2] if len(sys.argv) > 2 else "digits.png")

digits = load_digits()
images = digits.images[:, None].astype("float32") / 16  # (1797, 1, 8, 8): channels come second
flat = images.reshape(len(images), -1)

model = SelfView(n_components=10, encoder="mlp", epochs=epochs, random_state=0)
Z = model.fit_transform(images)  # no labels; encoder="cnn" is better and slower
print(model.health_["verdict"])

for name, features in {
    "raw (64)": flat,
    "PCA (10)": PCA(10).fit_transform(flat),
    "selfview (10)": Z,
}.items():
    scores = evaluate(features, digits.target, measures=["linear", "clustering"])
    print(f"{name:<14} linear {scores['linear_accuracy']:.1%}  k-means {scores['kmeans_acc']:.1%}")

_, nearest = NearestNeighbors(n_neighbors=6).fit(Z).kneighbors(Z[:5])
for i, row in enumerate(nearest):
    print(f"a {digits.target[i]} is nearest to {digits.target[row[1:]]}")

points = TSNE(random_state=0).fit_transform(Z)
plt.scatter(*points.T, c=digits.target, cmap="tab10", s=4)
plt.colorbar(label="digit")
plt.savefig(picture)
print(f"the picture is {picture}")
