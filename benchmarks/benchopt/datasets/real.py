from benchopt import BaseDataset
from datasets import MORE_DATASETS  # benchmarks/datasets.py


class Dataset(BaseDataset):
    """The data of the race, from the folder that SAFESIFT_DATA names; two classes each.

    `data` may be any name of `MORE_DATASETS` that has two classes.
    """

    name = "Real"
    requirements = ["scikit-learn"]
    parameters = {"data": ["a9a", "mnist", "covtype", "news20"]}

    def get_data(self):
        try:
            X, y = MORE_DATASETS[self.data]()
        except (SystemExit, FileNotFoundError) as reason:
            return {"X": None, "y": None, "missing": str(reason)}
        return {"X": X, "y": y}
