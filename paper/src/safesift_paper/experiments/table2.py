"""Table 2: samples screened, squared hinge + l2, MNIST and SVHN."""

from safesift_paper.experiments.screening_l2 import L2Screening
from safesift_paper.experiments.spec import Experiment

EXPERIMENT = Experiment(
    name="table2",
    title="Table 2: percent of samples screened, squared hinge + l2",
    protocol=L2Screening(),
    grid={
        "data": ("mnist", "svhn"),
        "lambda": (1.0, 1e-1, 1e-2, 1e-3),
        "epochs": (20, 30),
        "seed": (1, 2, 3),
    },
    quick={"lambda": (1.0, 1e-2), "seed": (1,)},
    remarks="""\
**Why the numbers differ.** The features are ours, not the authors' (theirs were never published):
*limit* is what these features allow, one to four points above the paper's numbers at the larger λ.
After 30 epochs every region is there, in the paper as here, except at λ = 0.001: there Newton's
method is about to converge, in the paper as here, and a few steps make all the difference. On our
features a ball first screens 0.3 % after 34 steps and 98.8 % after 38 (first split), where the
paper's is at 50 % after 31; the curvature region is ahead by some steps, as in Figure 4. After 20
epochs ours screen more at λ = 0.01: the paper's solver was LIBLINEAR as of scikit-learn 0.19, and
today's seems to be faster; on MNIST it ends by itself after 14, 17 and 23 steps at λ = 1, 0.1 and
0.01. The paper's ellipsoid falls behind its gap ball where the start is poor. Its scripts cut
on a subset of the rows without rescaling λ, so that the cuts belong to another problem; ours
rescales, and stays near the gap ball. It is marked as not certified all the same. CIFAR-10, which
stands in for SVHN, leaves fewer images without influence, but the course is the paper's: everything
there is at λ = 1 after 20 epochs, nothing at 0.01 after 20 and everything after 30, nothing at
0.001 after either. At λ = 0.1 LIBLINEAR ends by itself after 18 steps, and so ours are done where
the paper's are half way. SVHN, where it is used, is 100 000 of its 604 388 images, so that
LIBLINEAR fits into 24 GB.""",
    # (data, λ, epochs): ellipsoid, duality gap
    paper={
        ("mnist", 1.0, 20): (89, 89),
        ("mnist", 1e-1, 20): (95, 95),
        ("mnist", 1e-2, 20): (16, 84),
        ("mnist", 1e-3, 20): (0, 0),
        ("mnist", 1.0, 30): (89, 89),
        ("mnist", 1e-1, 30): (95, 95),
        ("mnist", 1e-2, 30): (98, 98),
        ("mnist", 1e-3, 30): (34, 50),
        ("svhn", 1.0, 20): (87, 87),
        ("svhn", 1e-1, 20): (11, 47),
        ("svhn", 1e-2, 20): (0, 0),
        ("svhn", 1e-3, 20): (0, 0),
        ("svhn", 1.0, 30): (87, 87),
        ("svhn", 1e-1, 30): (91, 91),
        ("svhn", 1e-2, 30): (90, 92),
        ("svhn", 1e-3, 30): (0, 0),
    },
)
