"""Spectra of a (generated) tissue: every pixel's spectrum becomes a colour, without labels.

python examples/tissue.py [epochs] [picture.png]
"""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from selfview import SelfView, load_dataset

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
picture = sys.argv[2] if len(sys.argv) > 2 else "tissue.png"

tissue = load_dataset("synthetic-msi")  # for your own: selfview.data.read("tissue.imzML")
print(tissue)
model = SelfView(n_components=3, epochs=epochs, random_state=0)
model.fit(tissue.X[::4])  # every fourth pixel is enough to learn from
Z = model.transform(tissue.X)

regions = KMeans(n_clusters=tissue.n_classes, n_init=10, random_state=0).fit_predict(Z)
print(f"agreement with the true regions (ARI): {adjusted_rand_score(tissue.y, regions):.2f}")

low, high = np.percentile(Z, [1, 99], axis=0)
colours = ((Z - low) / (high - low)).clip(0, 1)
x, y = (tissue.coordinates - tissue.coordinates.min(axis=0)).T
figure = Figure(figsize=(9, 3.4), layout="constrained")
maps = {"embedding": colours, "clusters": regions, "truth": tissue.y}
for axes, (title, values) in zip(figure.subplots(1, 3), maps.items(), strict=True):
    image = np.zeros((y.max() + 1, x.max() + 1, *values.shape[1:]))
    image[y, x] = values
    axes.imshow(image, cmap="tab10", interpolation="nearest")
    axes.set(title=title, xticks=[], yticks=[])
figure.savefig(picture, dpi=120)
print(f"the picture is {picture}")
