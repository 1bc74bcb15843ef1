"""False claims that somebody who writes the proof, or the data, has tried to have accepted.

Each was accepted once. They are made by hand, as the library writes none of them.
"""

from __future__ import annotations

import json
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import safesift_check as checker
import safesift_root as roots
import safesift_tables as tables
from tests.laws.test_proof_mutations import SOURCE, mutated

FLAT = checker.FLAT


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def forged(
    loss, point, verdicts, *, rules=(), gap=1e9, multiplier=0.0, nu=(), numbers=(), **changes
):
    """Write a proof that says whatever it is told to; numbers are those after the gap's."""
    n, p = len(verdicts), len(point) - changes.get("intercept", False)
    codes = np.array(verdicts, dtype=np.uint8)
    statement = {
        "format": checker.FORMAT, "n_samples": n, "n_features": p,
        "loss": {"name": loss["name"], "factor": 1.0, **loss}, "penalty": {"name": "l2"},
        "alpha": 1.0, "intercept": False, "kernel": False, "target": ["y"], "labels": None,
        "positives": [None], "features": None, "weight": None, "epsilons": None, "root": "",
        "verdicts": roots.root_of(roots.verdict_leaves(codes[:, None], np.arange(n))), "slots": n,
        "root_before": None, "slots_before": None, "transform": [],
        "gaps": [gap], "rules": [list(rules)],
    }  # fmt: skip
    assert changes.keys() <= statement.keys()
    statement |= changes
    if statement["labels"] is not None:
        statement["positives"] = statement["labels"][1:2] or statement["labels"]
    full = [*point] if statement["intercept"] else [*point, 0.0]
    four = np.append(codes, np.zeros(-n % 4, dtype=np.uint8)).reshape(-1, 4)
    written = {
        "statement": np.frombuffer(json.dumps(statement).encode(), dtype=np.uint8),
        "verdicts": (four << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=1, dtype=np.uint8),
        "numbers": np.concatenate(
            [np.ravel(np.array(one, dtype=float)) for one in (multiplier, full, nu, full, *numbers)]
        ),
        "absent": np.zeros(0, dtype="<u8"), "removed": np.zeros(0, dtype="<u8"),
        "removed_leaves": np.zeros(0, dtype=np.uint8),
    }  # fmt: skip
    np.savez("p.npz", **written)


def status(*more, **data) -> int:
    np.savez("d.npz", **data)
    return (roots if "--seed" in more else checker).main(["p.npz", "d.npz", *more])


def changed(fields) -> None:
    """Fields of the statement of the proof that was forged last."""
    with np.load("p.npz") as file:
        arrays = dict(file)
    statement = json.loads(arrays["statement"].tobytes()) | fields
    arrays["statement"] = np.frombuffer(json.dumps(statement).encode(), dtype=np.uint8)
    np.savez("p.npz", **arrays)


def test_what_is_forged_here_is_read():
    """A true claim in the same manner is accepted: 1 is optimal, up to so much."""
    forged({"name": "squared"}, [1.0], [0])
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 0


def test_a_matrix_that_overflows_proves_nothing():
    """Optima (0, s, −s), 2|s| ≤ 1: the last row is at the end of [−1, 1] at some of them.

    TᵀHT is infinite where H is singular, and no comparison with NaN may be skipped.
    """
    X = np.array([[1.0, 0, 0], [0, 1, 1], [0, 1, -1]])
    y = np.array([[0.0, 0], [0, 0], [-1, 1]])
    T = np.diag([1e146, 1e150, 1e150])
    forged(
        {"name": "squared_interval", "factor": 1e10}, np.zeros(3), [0, 0, FLAT],
        rules=["region"], penalty={"name": "l2_ball", "radius": 10.0}, multiplier=1e-30,
        numbers=[np.zeros(4), [0.5, 0.0], T], weight="s",
    )  # fmt: skip
    assert status(X=X, y=y, s=np.array([1.0, 1.0, 1e-299])) == 1


def test_bounds_on_the_intercept_are_verified():
    """The best intercept is 0, and the last row has to be ≤ −1 there to be flat: it is not."""
    X, y = np.zeros((4, 1)), np.array([[0.0, 0], [0, 0], [0, 0], [-np.inf, -1.0]])
    weights = np.array([1.0, 1.0, 1.0, 2.0**-9])
    for bounds in ([-1000.0, -2.0], [-1000.0, -1000.0], [2.0, -2.0], [0.0, 0.0]):
        forged(
            {"name": "absolute_interval"}, [0.0, 0.0], [0, 0, 0, FLAT], rules=["ball"],
            intercept=True, weight="s", nu=[0.0, 0.0, 0.0, 0.0], numbers=[bounds],
        )  # fmt: skip
        assert status(X=X, y=y, s=weights) == 1


def test_there_is_no_intercept_unless_it_is_stated():
    """With an intercept of 2 every loss is 0; without one P is more at x = 0."""
    forged({"name": "squared"}, [0.0], [0], gap=1e-9)
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 1
    with np.load("p.npz") as file:
        arrays = dict(file)
    arrays["numbers"][[2, 4]] = 2.0
    np.savez("p.npz", **arrays)
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 1


def test_a_ball_needs_a_multiplier():
    """½(x₁ + x₂ − 10)² in the unit disc is least at (r, r), r² = ½: 0 is far from that."""
    for multiplier in (0.0, -1.0, -1e-300):
        forged(
            {"name": "squared"}, [0.0, 0.0], [0], gap=10.5, multiplier=multiplier,
            penalty={"name": "l2_ball", "radius": 1.0},
        )  # fmt: skip
        assert status(X=np.ones((1, 2)), y=np.array([10.0])) == 1


def test_columns_of_sparse_data_are_transformed_or_refused():
    """0 is optimal for a column of zeros, and not for the column of ones that is made of it."""
    sparse = {"data": np.zeros(0), "indices": np.zeros(0, int), "indptr": np.array([0, 0])}
    forged({"name": "squared"}, [0.0], [0], gap=1e-9)
    assert status(y=np.array([2.0]), **sparse) == 0
    forged({"name": "squared"}, [0.0], [0], gap=1e-9, transform=[["add", [1.0]]])
    assert status(y=np.array([2.0]), **sparse) == 2
    assert status(y=np.array([2.0]), X=np.zeros((1, 1))) == 1


def test_kernels_have_a_diagonal():
    """A column of zeros that sparse data do not store would move the diagonal of K."""
    forged({"name": "squared"}, np.zeros(3), [0, 0, 0], kernel=True)
    K = np.diag([2.0, 9.0, 0.0])
    assert status(X=K, y=np.ones(3)) == 0
    sparse = {"data": np.array([2.0, 9.0]), "indices": np.array([0, 1])}
    assert status(y=np.ones(3), **sparse, indptr=np.array([0, 1, 2, 2])) == 2


@pytest.mark.parametrize("gap", [[], [[]], True, "1", None, [1e9]])
def test_a_gap_is_a_number(gap):
    forged({"name": "squared"}, [100.0], [0], gap=gap)
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 2


@pytest.mark.parametrize("numbers", [[1.0, 0.0], [-0.1, 0.0], [0.5, -1e-9], [0.5, np.inf]])
def test_numbers_of_regions_are_in_range(numbers):
    """η < 1 and ε ≥ 0; what is infinite or missing is refused, too."""
    rest = [[1.0, 0.0], numbers, [[1.0]]]
    forged({"name": "squared"}, [1.0], [0], rules=["region"], numbers=rest)
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 1 + np.isinf(numbers).any()
    forged({"name": "squared"}, [1.0], [0], rules=["region"], numbers=rest[:2])
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 2


@pytest.mark.parametrize("mu", ["nan", "0.5", True, 1, [0.5], 1e-200, 1e200])
def test_parameters_are_numbers_of_a_sane_size(mu):
    forged({"name": "squared_hinge", "mu": mu}, [1.0], [0], labels=["a", "b"])
    assert status(X=np.ones((1, 1)), y=np.array(["a"])) == 2


@pytest.mark.parametrize("numbers", ["12", [[1.0], [2.0]], [True, 1.0], [1.0, "2"], [1.0, 3.0]])
def test_transformations_are_lists_of_numbers(numbers):
    forged({"name": "squared"}, [0.0, 0.0], [0], transform=[["multiply", numbers]])
    assert status(X=np.ones((1, 2)), y=np.array([2.0])) == (0 if numbers[-1] == 3 else 2)


def test_names_are_there_once():
    forged({"name": "squared"}, [1.0], [0])
    with np.load("p.npz") as file:
        arrays = dict(file)
    text = (
        arrays["statement"].tobytes().decode().replace('"alpha": 1.0', '"alpha": 9.0, "alpha": 1.0')
    )
    arrays["statement"] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez("p.npz", **arrays)
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 2


@pytest.mark.parametrize("name", ["s", "e", "y"])
def test_columns_are_columns(name):
    """Weights (1, 0) put the optimum at 0; as a matrix they would put it at the mean, 1."""
    forged(
        {"name": "squared_epsilon_insensitive"}, [0.0, 1.0], [0, 0],
        intercept=True, weight="s", epsilons="e", gap=0.25, alpha=1e-3,
    )  # fmt: skip
    data = {
        "X": np.zeros((2, 1)),
        "y": np.array([0.0, 2]),
        "s": np.array([1.0, 0]),
        "e": np.zeros(2),
    }
    assert status(**data) == 1  # the gap is 0.5
    for shape in ((2, 1), (2, 1, 1), (1, 2)):
        # one column of targets is a column
        assert status(**{**data, name: data[name].reshape(shape)}) == 2 - (
            name + str(shape) == "y(2, 1)"
        )


@pytest.mark.parametrize(
    "change", [{"epsilons": "e"}, {"target": "y"}, {"target": ["y", "e"]}, {"target": []}]
)
def test_columns_that_are_not_used_are_not_named(change):
    """What is printed is what was read: no epsilon of a loss without one, no second target."""
    forged({"name": "squared"}, [1.0], [0], **change)
    assert status(X=np.ones((1, 1)), y=np.array([2.0]), e=np.zeros(1)) == 2


@pytest.mark.parametrize("where", ["X", "y", "s"])
@pytest.mark.parametrize("dtype", [np.int64, np.longdouble, complex])
def test_data_are_not_rounded(where, dtype):
    """What is proved is proved of the doubles that were read, so that they have to be the data."""
    forged({"name": "squared"}, [0.0], [0], weight="s", gap=1e40)
    data = {"X": np.ones((1, 1)), "y": np.ones(1), "s": np.ones(1)}
    assert status(**data) == 0
    odd = {np.int64: 2**53 + 1, np.longdouble: 1 + np.longdouble(2) ** -60, complex: 1 + 1j}[dtype]
    data[where] = np.full(data[where].shape, odd, dtype=dtype)
    assert status(**data) == 2


def test_labels_that_differ_do_not_become_one():
    whole = 2**53
    assert tables.key(whole) != tables.key(whole + 1)
    assert tables.key("10") != tables.key("1_0") and tables.key("1") != tables.key("１")
    assert tables.key("1") == tables.key(1) == tables.key(True) == tables.key("1.0")
    forged({"name": "squared_hinge", "mu": 0.0}, [0.0], [0, 0], labels=["a"])
    assert status(X=np.ones((2, 1)), y=np.array(["a", "b"])) == 2


def test_products_that_are_next_to_nothing_round_too():
    """Predictions of some −1e−190, computed as 0 or more: so is the gap, and not below 1e−300."""
    rng, tried = np.random.default_rng(0), 0
    for _ in range(40):
        first = rng.uniform(1e148, 1e149)
        x = [5 * 2.0**-1074, 3 * 2.0**-1074]
        row = [first, -first * 5 / 3]
        if sum(Fraction(a) * Fraction(b) for a, b in zip(row, x, strict=True)) >= 0:
            continue
        tried += 1
        forged({"name": "hinge", "mu": 1.0}, x, [0], labels=["a"], gap=1e-250, nu=[0.0])
        assert status(X=np.array([row]), y=np.array(["a"])) == 1
    assert tried > 5


def test_squares_that_are_next_to_nothing_count():
    """½F(ax − y)² + alpha|x| with alpha < F·a·y has its optimum away from 0, though a² is 0."""
    a, y, factor = 1.4e-162, 1e-10, 1e100
    assert a * a == 0
    forged(
        {"name": "squared", "factor": factor}, [0.8 * y / a], [0], rules=["features"],
        numbers=[[1.0]], gap=1e200, penalty={"name": "l1"}, alpha=0.5 * factor * a * y,
    )  # fmt: skip
    assert status(X=np.array([[a]]), y=np.array([y])) == 1


def test_secants_that_are_next_to_nothing_are_not_rounded_up():
    """0 to 1.3 `far` is all the same to the first row, and the second one pulls to its end there.

    The first row's secant over `far` is tiny at most, and over a little more it is less, which is
    rounded to tiny: just as with closed intervals x would stay below `far`.
    """
    width, entry, alpha, share, far = 1e-10, 9e149, 1e-100, 1e15, 0.7e152
    other = 10.0 / far
    shares = np.array([share, 2 * alpha / other])
    x = [-far * 2.0**-1074]
    T = np.sqrt(0.995) / (np.sqrt(share / width * 2.0**-1074) * entry)
    forged(
        {"name": "smoothed_interval", "width": width, "factor": shares.sum()}, x,
        [0, checker.LINEAR], rules=["region"], weight="s", penalty={"name": "l1"}, alpha=alpha,
        gap=1e300, numbers=[[*x, 0.0], [0.01, 0.0], T],
    )  # fmt: skip
    data = {"X": np.array([[entry], [other]]), "y": np.array([[0.0, np.inf], [13.0, np.inf]])}
    for more in ((), ("--exact",)):
        assert status(*more, **data, s=shares) == 1


def test_ends_of_intervals_are_not_rounded_by_each_other():
    """2⁵³ + 1 beside a column of floats: an intercept of 2⁵³ is not best."""
    for lower, expected in ((2**53 + 1, 2), (2**53 - 1, 0)):
        forged(
            {"name": "squared_interval"}, [0.0, 2.0**53], [0], intercept=True, gap=1e-9,
            target=["lower", "upper"],
        )  # fmt: skip
        ends = {"lower": np.array([lower]), "upper": np.array([np.inf])}
        assert status("--exact", X=np.zeros((1, 1)), **ends) == expected


def test_indptr_does_not_start_again_from_0():
    """400 entries, in integers that go up to 255: most of them would be left out."""
    forged({"name": "squared"}, np.zeros(200), [0, 0])
    sparse = {"data": np.ones(400), "indices": np.tile(np.arange(200), 2), "y": np.ones(2)}
    assert status(**sparse, indptr=np.array([0, 200, 400])) == 0
    assert status(**sparse, indptr=np.array([0, 200, 400 - 256], dtype=np.uint8)) == 2


@pytest.mark.parametrize(("intercept", "gap"), [(False, 0.25), (True, 0.5)])
def test_kernels_are_checked_exactly_too(intercept, gap):
    """Two rows with K = I: floats and rational numbers prove the same gap at 0, and verdicts."""
    bounds = [-9.0, 9.0] if intercept else [0.0, 0.0]
    for claimed, expected in ((1.001 * gap, 0), (0.999 * gap, 1)):
        forged(
            {"name": "squared"}, np.zeros(2 + intercept), [checker.CURVED] * 2, kernel=True,
            intercept=intercept, rules=["ball"], numbers=[bounds], gap=claimed,
        )  # fmt: skip
        for more in ((), ("--exact",)):
            assert status(*more, X=np.eye(2), y=np.ones(2)) == expected


def test_rational_numbers_may_be_larger_than_doubles():
    """A dual bound of 1e318 is of no use, and P itself is one; in doubles it is NaN."""
    forged({"name": "squared"}, [0.0], [0], gap=1e20)
    data = {"X": np.array([[1e149]]), "y": np.array([1e10])}
    assert (status(**data), status("--exact", **data)) == (1, 0)


def test_numbers_of_features_are_those_of_the_file():
    """A file of some kB that says it has 50 million features is refused in little memory."""
    forged({"name": "squared"}, [1.0], [0], n_features=50_000_000)
    tracemalloc.start()
    try:
        assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 2
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("labels", ["ab", {"a": 1, "b": 2}, ["a", "b", "a"], ["a", "c", "b"]])
def test_labels_are_a_list_with_the_positive_one(labels):
    """The last has a positive label that no row has, which is fine; none of the others is."""
    forged({"name": "squared_hinge", "mu": 0.0}, [0.0], [0, 0], labels=["a", "b"])
    assert status(X=np.ones((2, 1)), y=np.array(["a", "b"])) == 0
    changed({"labels": labels, "positives": ["c"]})
    assert status(X=np.ones((2, 1)), y=np.array(["a", "b"])) == (0 if "c" in labels else 2)


def test_alpha_is_positive_for_balls_too():
    for alpha, expected in ((1.0, 0), (0.0, 1), (-1.0, 1)):
        forged(
            {"name": "squared"}, [0.0], [0], alpha=alpha, multiplier=1.0,
            penalty={"name": "l2_ball", "radius": 1.0},
        )  # fmt: skip
        assert status(X=np.ones((1, 1)), y=np.array([2.0])) == expected


def test_it_is_said_that_roots_are_not_compared(capsys):
    """What is printed names them, and whoever has no seed cannot compare them."""
    forged({"name": "squared"}, [1.0], [0])
    changed({"root": "of other data", "verdicts": "of other verdicts"})
    assert status(X=np.ones((1, 1)), y=np.array([2.0])) == 0
    assert "not compared here: roots and slots" in capsys.readouterr().out


def test_removed_rows_are_named_once():
    """Two removed rows are two rows, of the tree as it was."""
    seed, y = b"s", np.array([2.0])
    leaf = roots.sha(b"\0", b"whatever it was")
    row = [roots.whole(1, 4), np.zeros(1, "<u4").tobytes(), np.ones(1).tobytes()]
    own = y.tobytes()
    kept = roots.sha(
        b"\0", roots.whole(0), roots.sha(seed, roots.whole(0)), *row,
        roots.whole(len(own), 4), own, np.ones(1).tobytes(),
    )  # fmt: skip
    now = roots.root_of([kept, roots.gone(1)])
    before = roots.root_of([kept, leaf])
    for removed, slots, expected in (([1], 2, 0), ([1, 1], 2, 1), ([1], None, 2), ([1], -2, 1)):
        forged({"name": "squared"}, [1.0], [0])
        with np.load("p.npz") as file:
            arrays = dict(file)
        statement = json.loads(arrays["statement"].tobytes())
        statement |= {"root": now, "slots": 2}
        statement |= {"root_before": before, "slots_before": slots}
        arrays["statement"] = np.frombuffer(json.dumps(statement).encode(), dtype=np.uint8)
        arrays["absent"] = np.array([1], dtype="<u8")
        arrays["removed"] = np.array(removed, dtype="<u8")
        arrays["removed_leaves"] = np.tile(np.frombuffer(leaf, dtype=np.uint8), len(removed))
        np.savez("p.npz", **arrays)
        with open("seed", "w", encoding="utf-8") as file:
            file.write(seed.hex())
        assert status("--seed", "seed", X=np.ones((1, 1)), y=y) == expected, (removed, slots)


def test_slopes_of_rows_without_weight_do_not_matter():
    """A true claim: one row has all the weight, and the intercept meets it exactly."""
    forged({"name": "squared"}, [0.0, 2.0], [0, 0], intercept=True, weight="s", gap=1e-9)
    assert status(X=np.ones((2, 1)), y=np.array([2.0, 5.0]), s=np.array([1.0, 0.0])) == 0


# what keeps each of them out: the text, and the mistake in its place
GUARDS = {
    test_bounds_on_the_intercept_are_verified: (
        "fine = sums[0].up < 0 and sums[1].low > 0 if self.intercept",
        "fine = True if self.intercept",
    ),
    test_there_is_no_intercept_unless_it_is_stated: (
        'need(self.intercept or x[self.p] == 0, "there is no intercept")', "pass",
    ),
    test_columns_of_sparse_data_are_transformed_or_refused: (
        "len(cols) == self.p or not self.complete", "True",
    ),
    test_names_are_there_once: ("json.dumps(again, allow_nan=False) == text", "True"),
    test_products_that_are_next_to_nothing_round_too: ("x.rad + ar.tiny)) *", "x.rad)) *"),
    test_squares_that_are_next_to_nothing_count: (
        "matrix * matrix * ar.c + ar.tiny if squared", "matrix * matrix if squared",
    ),
    test_secants_that_are_next_to_nothing_are_not_rounded_up: (
        "(near(curve * (1 - 16 * ar.u)) * (share - 4 * ar.tiny)).low",
        "curve * (1 - 16 * ar.u) * share",
    ),
    test_ends_of_intervals_are_not_rounded_by_each_other: (
        "[*map(doubles, found)] if pairs else found", "found",
    ),
    test_indptr_does_not_start_again_from_0: ("== len(rows) == ends[-1]", "== len(rows)"),
    test_alpha_is_positive_for_balls_too: (
        'min(self.given["factor"], statement["alpha"])', 'self.given["factor"]',
    ),
    test_removed_rows_are_named_once: ("len(np.unique(removed)) == len(removed) > 0", "True"),
}  # fmt: skip


@pytest.mark.parametrize("attack", GUARDS, ids=lambda attack: attack.__name__)
def test_without_its_guard_an_attack_succeeds(monkeypatch, attack):
    old, new = GUARDS[attack]
    is_root = old in (SOURCE.parent / "safesift_root.py").read_text()
    source = SOURCE.parent / "safesift_root.py" if is_root else SOURCE
    monkeypatch.setitem(globals(), "roots" if is_root else "checker", mutated(old, new, source))
    with pytest.raises(AssertionError):
        attack()
