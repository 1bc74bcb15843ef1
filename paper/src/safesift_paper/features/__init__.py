"""Features of images: the convolutional kernel network that the paper encodes digits with.

Data flow: *images → patches → contrast, whitening → anchors → kernel map → pooling → next layer →
rows of norm 1*, a batch at a time, into an array in memory or on disk.
"""

from safesift_paper.features.cache import cached_features
from safesift_paper.features.ckn import ConvolutionalKernelNetwork
from safesift_paper.features.layer import KernelLayer

__all__ = ["ConvolutionalKernelNetwork", "KernelLayer", "cached_features"]
