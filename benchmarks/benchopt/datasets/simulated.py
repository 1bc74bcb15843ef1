from benchopt import BaseDataset
from datasets import synthetic  # benchmarks/datasets.py


class Dataset(BaseDataset):
    """Normal rows of norm about 1, labels of a linear model with noise."""

    name = "Simulated"
    parameters = {"n_samples, n_features": [(3000, 20), (500, 1000)]}
    test_parameters = {"n_samples, n_features": [(80, 6)]}

    def get_data(self):
        X, y = synthetic(self.n_samples, self.n_features, seed=self.get_seed())
        return {"X": X, "y": y}
