"""Table 3 (appendix): best test accuracies of three losses with two penalties."""

from safesift_paper.experiments.accuracy import Accuracy
from safesift_paper.experiments.spec import Experiment

EXPERIMENT = Experiment(
    name="table3",
    title="Table 3: best test accuracies",
    # the paper's grid, as its best λ show: two per power of ten
    protocol=Accuracy(
        lambdas=(1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5),
    ),
    grid={
        "data": ("mnist", "svhn", "rcv1"),
        "loss": ("logistic", "safe_logistic", "squared_hinge"),
        "penalty": ("l1", "l2"),
        "seed": (1, 2, 3),
    },
    quick={"seed": (1,)},
    remarks="""\
**Why the numbers differ.** On MNIST they hardly do, in spite of other features: logistic and
squared hinge agree to two ten-thousandths. Safe logistic is 0.1 to 0.2 points below the paper's,
and best at the end of the grid, where the paper's is, too: as its λ goes with the mean of the
losses, 1e-05 is some 300 times what the squared hinge is best with, and both would gain from less.
The stand-ins are harder than what they stand for: 96 % instead of 99 % on CIFAR-10, 90 % instead of
97.5 % on the reviews. On CIFAR-10, where less λ is better still, the end of the grid costs safe
logistic 0.6 points and more; on the reviews, where it is not, it is as good as the others with both
penalties, as the paper says.""",
    # (data, loss, penalty): accuracy, best λ
    paper={
        ("mnist", "logistic", "l1"): (0.997, 0.01),
        ("mnist", "logistic", "l2"): (0.997, 0.001),
        ("mnist", "safe_logistic", "l1"): (0.996, 0.0),
        ("mnist", "safe_logistic", "l2"): (0.996, 0.0),
        ("mnist", "squared_hinge", "l1"): (0.997, 0.03),
        ("mnist", "squared_hinge", "l2"): (0.997, 0.003),
        ("svhn", "logistic", "l1"): (0.99, 0.0003),
        ("svhn", "logistic", "l2"): (0.99, 0.0003),
        ("svhn", "safe_logistic", "l1"): (0.989, 0.0),
        ("svhn", "safe_logistic", "l2"): (0.989, 0.0),
        ("svhn", "squared_hinge", "l1"): (0.99, 0.03),
        ("svhn", "squared_hinge", "l2"): (0.99, 0.003),
        ("rcv1", "logistic", "l1"): (0.975, 1.0),
        ("rcv1", "logistic", "l2"): (0.975, 1.0),
        ("rcv1", "safe_logistic", "l1"): (0.974, 1e-5),
        ("rcv1", "safe_logistic", "l2"): (0.975, 1e-5),
        ("rcv1", "squared_hinge", "l1"): (0.975, 1.0),
        ("rcv1", "squared_hinge", "l2"): (0.974, 1.0),
    },
)
