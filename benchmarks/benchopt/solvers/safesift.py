from benchmark_utils.racing import RaceSolver


class Solver(RaceSolver):
    """SafeClassifier for one alpha, safe_path for several; the tolerance is the relative gap."""

    name = "safesift"
    requirements = ["pip::safesift"]
    contestant = "safesift"
