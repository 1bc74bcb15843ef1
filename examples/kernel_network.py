"""Digits, encoded by a convolutional kernel network
=================================================

And what a linear model makes of it.

Draws kernel_network.png: the anchors of the first layer, a digit, and some of its maps. Needs the
package in the folder paper: pip install ./paper
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import safesift as ss
from safesift_paper.features import ConvolutionalKernelNetwork, KernelLayer
from safesift_paper.features.arrays import NumpyArrays

N_TRAIN = 1000


# %%
# Pixels against features
# -----------------------
def main() -> None:
    X, y = load_digits(return_X_y=True)
    layers = (KernelLayer(3, 32, 1, 2.0), KernelLayer(2, 48, 2, 4.0))
    network = ConvolutionalKernelNetwork(layers, image_shape=(8, 8), random_state=0)
    features = network.fit(X[:N_TRAIN]).transform(X)
    for name, rows, alpha in (("pixels", X / 16.0, 1e-3), ("features", features, 1e-4)):
        model = ss.SafeClassifier(alpha=alpha).fit(rows[:N_TRAIN], y[:N_TRAIN])
        score = model.score(rows[N_TRAIN:], y[N_TRAIN:])
        dropped = 1.0 - model.kept_.mean()
        print(f"{name}: {rows.shape[1]} numbers per digit, test accuracy {score:.3f}, "
              f"{dropped:.0%} of the samples without influence")  # fmt: skip
    draw(network, X[4]).savefig("kernel_network.png", dpi=80)


# %%
# What the network sees
# ---------------------
def draw(network: ConvolutionalKernelNetwork, digit: np.ndarray) -> plt.Figure:
    layer = network.layers_[0]
    image = digit.reshape(1, 8, 8, 1)
    maps = layer.apply(image.astype(layer.anchors.dtype), NumpyArrays())[0]
    strongest = np.argsort(-np.abs(maps).sum(axis=(0, 1)))[:8]
    figure = plt.figure(figsize=(9, 3.2), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[2, 1, 1])
    left.suptitle("anchors")
    for axes, anchor in zip(left.subplots(4, 8).flat, layer.anchors, strict=True):
        axes.imshow(anchor.reshape(3, 3), cmap="gray")
        axes.set(xticks=[], yticks=[])
    middle.suptitle("digit")
    axes = middle.subplots()
    axes.imshow(image[0, :, :, 0], cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    right.suptitle("some of its maps")
    for axes, channel in zip(right.subplots(4, 2).flat, strongest, strict=True):
        axes.imshow(maps[:, :, channel], cmap="gray")
        axes.set(xticks=[], yticks=[])
    return figure


if __name__ == "__main__":
    main()
