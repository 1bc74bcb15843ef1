"""Threads: what there is of them, that BLAS has one, and that results do not depend on either."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_info, threadpool_limits

import safesift as ss
from safesift.arithmetic import threads
from safesift.arithmetic.threads import computes, each, run, using

# so long may something that must not wait take before the test gives up
PATIENCE = 30.0


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    """As on a machine of two processors: the tests themselves run with one."""
    threads._libraries()
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == {2}
        yield


@pytest.fixture
def pool(monkeypatch):
    """A pool of the test's own, of which one can see whether anybody used it."""
    made: list[ThreadPoolExecutor] = []

    def of(n: int) -> ThreadPoolExecutor:
        made.append(ThreadPoolExecutor(n, thread_name_prefix=f"test of safesift {id(made)}"))
        monkeypatch.setattr(threads, "_pool", lambda: made[-1])
        return made[-1]

    of.used = lambda: [  # type: ignore[attr-defined]
        one for one in threading.enumerate() if one.name.startswith(f"test of safesift {id(made)}")
    ]
    yield of
    for one in made:
        one.shutdown(wait=True)


# --- how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "expected"),
    [("", 4), ("2", 2), ("2,1", 2), ("9", 4), ("0", 4), ("many", 4), (" 3 ", 3)],
)
def test_none_is_what_the_process_may_use(monkeypatch, named, expected):
    monkeypatch.setattr(threads, "_n_processors", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", named)
    with using(None):
        assert threads.n_threads() == expected


def test_inside_a_call_none_is_the_number_of_the_call():
    with using(3):
        with using(None):
            assert threads.n_threads() == 3
        with using(2):
            assert threads.n_threads() == 2
        assert threads.n_threads() == 3


def test_numbers_count_as_in_joblib():
    from joblib import effective_n_jobs

    for n_jobs in (1, 5, -1, -2, -100):
        with using(n_jobs):
            assert threads.n_threads() == effective_n_jobs(n_jobs) >= 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True, np.nan])
def test_what_is_no_number_of_threads_is_refused(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a number of threads"), using(n_jobs):
        pass


def test_affinity_counts():
    """In a process that may use one processor there is one thread."""
    code = """
    import os
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    from safesift.arithmetic import threads
    print(threads.n_threads())
    """
    if not hasattr(__import__("os"), "sched_setaffinity"):
        pytest.skip("no affinity on this system")
    assert in_a_process(code, OMP_NUM_THREADS="") == "1"


def in_a_process(code: str, **variables: str) -> str:
    """What a script prints."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | variables, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- BLAS has one thread --------------------------------------------------------------------------


@computes
def seen() -> set[int]:
    return blas_threads()


@computes
def failing() -> None:
    raise ArithmeticError


def test_blas_has_one_thread_inside_a_call_and_its_own_after(two_blas_threads):
    assert seen() == {1}
    assert blas_threads() == {2}


def test_blas_has_its_own_threads_after_an_error(two_blas_threads):
    with pytest.raises(ArithmeticError):
        failing()
    assert blas_threads() == {2}
    with pytest.raises(ValueError, match="n_jobs"), using(0):
        pass
    assert blas_threads() == {2}


def calls_that_overlap() -> None:
    """A call of one user thread begins first and ends first; that of another sees one thread."""
    inside, over = threading.Event(), threading.Event()
    found: list[set[int]] = []

    def second() -> None:
        with using(None):
            inside.set()
            assert over.wait(PATIENCE)
            found.append(blas_threads())

    with using(None):
        other = threading.Thread(target=second)
        other.start()
        assert inside.wait(PATIENCE)
    over.set()
    other.join(PATIENCE)
    assert found == [{1}]
    assert blas_threads() == {2}


def test_blas_has_one_thread_as_long_as_anybody_computes(two_blas_threads):
    for _ in range(3):
        calls_that_overlap()


class _EachForItself:
    """The mistake: whoever leaves puts back what there was when they came."""

    def __init__(self) -> None:
        self._own = threading.local()

    def __enter__(self) -> None:
        threads._claim_nothing()
        self._own.limits = threads._libraries().limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        threads._claim_nothing()
        self._own.limits.restore_original_limits()


def test_limits_of_single_threads_would_be_noticed(two_blas_threads, monkeypatch):
    monkeypatch.setattr(threads, "_blas", _EachForItself())
    assert seen() == {1} and blas_threads() == {2}  # alone they would do
    with pytest.raises(AssertionError):
        calls_that_overlap()


def test_limits_that_belong_to_a_thread_would_be_noticed(two_blas_threads, monkeypatch):
    """As newer versions of threadpoolctl have it: the first to set any keeps the others out."""
    if not hasattr(threadpoolctl.OpenBLASController, "clear_controlling_thread"):
        pytest.skip("this version of threadpoolctl lets anybody set limits")
    claim_nothing = threads._claim_nothing
    monkeypatch.setattr(threads, "_claim_nothing", lambda: None)
    assert seen() == {1} and blas_threads() == {2}
    with pytest.raises(AssertionError):
        calls_that_overlap()
    claim_nothing()


def test_many_calls_at_once(two_blas_threads):
    """Of several user threads that begin and end in any order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, 1, -1)
    found: list[set[int]] = []

    def kernel(A, B):
        found.append(blas_threads())
        return A @ B.T

    def fit(k: int) -> np.ndarray:
        path = ss.safe_kernel_path(X, y, alphas=[0.1], kernel=kernel, n_jobs=1 + k % 2)
        return path.dual_coefs

    with ThreadPoolExecutor(4) as users:
        coefs = list(users.map(fit, range(8)))
    assert found and set.union(*found) == {1}
    assert blas_threads() == {2}
    for one in coefs:
        np.testing.assert_array_equal(one, coefs[0])


def test_a_path_does_not_hold_the_limits_between_its_levels(two_blas_threads):
    from safesift.problem.inputs import make_problems
    from safesift.solvers import Settings, solve_path

    problem = make_problems(
        *load_iris(return_X_y=True), loss="squared", penalty="l2", alpha=1.0, fit_intercept=True
    ).problem
    levels = solve_path([[problem.at_level(alpha)] for alpha in (1.0, 0.1)], Settings())
    next(levels)
    assert blas_threads() == {2} and threads._limit.get() is None
    levels.close()


def test_the_solver_of_the_user_has_the_threads_of_the_process(two_blas_threads):
    X, y = load_iris(return_X_y=True)
    guess = ss.screen(X[:100], y[:100], alpha=0.1, n_jobs=1)
    found = []

    def solve(problem):
        found.append((blas_threads(), threads._limit.get()))
        from safesift.solvers import solve

        return problem.split(solve(problem).at.point)

    assert ss.solve_and_repair(guess, solve, n_jobs=1).check.passed
    assert found and all(one == ({2}, None) for one in found)


# --- tasks ----------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_tasks(pool):
    pool(3)

    def slow_at_first(task: int) -> tuple[int, str]:
        time.sleep(0.02 if task == 0 else 0.0)
        return task, threading.current_thread().name

    with using(4):
        found = list(each(slow_at_first, range(40)))
    assert [task for task, _ in found] == list(range(40))
    assert len({name for _, name in found}) > 1


def test_an_exception_is_raised_at_its_place(pool):
    pool(3)
    begun = []

    def sometimes(task: int) -> int:
        begun.append(task)
        if task in (3, 5):
            raise LookupError(task)
        time.sleep(0.001)
        return task

    came = []
    with using(4), pytest.raises(LookupError, match="3"):
        for result in each(sometimes, range(200)):
            came.append(result)
    assert came == [0, 1, 2]
    n_begun = len(begun)
    assert n_begun < 200
    time.sleep(0.05)
    assert len(begun) == n_begun


def test_a_generator_that_is_closed_leaves_nothing_running(pool):
    pool(3)
    running, begun = [0], [0]
    lock = threading.Lock()

    def work(task: int) -> int:
        with lock:
            running[0] += 1
            begun[0] += 1
        time.sleep(0.005)
        with lock:
            running[0] -= 1
        return task

    with using(4):
        results = each(work, range(1000))
        assert next(results) == 0
        results.close()
    assert running[0] == 0
    n_begun = begun[0]
    time.sleep(0.05)
    assert begun[0] == n_begun < 1000


@pytest.mark.parametrize("inner", [None, 2])
def test_tasks_inside_tasks_do_not_wait_for_each_other(pool, inner):
    """Not even where the pool has one worker, which is at work itself."""
    pool(1)

    def outer(task: int) -> int:
        with using(inner):
            return sum(each(lambda k: task * k, range(20)))

    done = []

    def whole() -> None:
        with using(2):
            done.extend(each(outer, range(20)))

    finishes(whole)
    assert done == [190 * task for task in range(20)]


def finishes(function) -> None:
    """Run something on a thread of its own, and do not wait for ever."""
    worker = threading.Thread(target=function, daemon=True)
    worker.start()
    worker.join(PATIENCE)
    assert not worker.is_alive()


def test_helpers_that_are_not_scheduled_are_not_waited_for(pool):
    """All workers of the pool are at something else, and stay there."""
    release = threading.Event()
    workers = pool(2)
    stuck = [workers.submit(release.wait, PATIENCE * 2) for _ in range(2)]
    found = []

    def whole() -> None:
        with using(3):
            found.extend(each(lambda task: (task, threading.current_thread().name), range(50)))
            run(lambda task: None, range(50))

    try:
        finishes(whole)
        assert not any(one.done() for one in stuck)
    finally:
        release.set()
    assert [task for task, _ in found] == list(range(50))
    assert len({name for _, name in found}) == 1


def test_threads_see_the_context_of_the_caller(pool):
    pool(3)

    def over(task: int) -> float:
        time.sleep(0.002)
        return float(np.float64(1e300) * np.float64(1e300))

    with using(4), np.errstate(over="raise"), pytest.raises(FloatingPointError):
        list(each(over, range(20)))
    with using(4), np.errstate(over="ignore"):
        assert list(each(over, range(20))) == [np.inf] * 20


def test_a_forked_process_computes():
    """Neither threads nor locks that they hold come along."""
    code = """
    import os, sys, threading, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import numpy as np
    from safesift.arithmetic import threads
    from safesift.arithmetic.threads import each, using

    def busy(task):
        return float(np.square(np.arange(10_000.0) + task).sum())

    def total():
        with using(3):
            return sum(each(busy, range(50)))

    expected = total()
    held = threading.Event()
    def hold():
        with using(None), threads._blas._lock:
            held.set()
            threading.Event().wait()
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if total() == expected else 1)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        threading.Event().wait(0.1)
    else:
        os.kill(child, 9)
        sys.exit("the child waits for ever")
    print(os.waitstatus_to_exitcode(status), flush=True)
    os._exit(0)
    """
    if not hasattr(__import__("os"), "fork"):
        pytest.skip("no fork on this system")
    assert in_a_process(code) == "0"


def test_a_thread_that_outlives_the_main_one_computes():
    """When the main thread is done, pools take in no more work; whoever computes goes on alone."""
    code = """
    import threading, time
    from safesift.arithmetic.threads import each, using

    def late():
        main.join()
        time.sleep(0.2)
        with using(4):
            print(sum(each(lambda task: task, range(50))))

    with using(4):
        sum(each(lambda task: task, range(50)))
    main = threading.main_thread()
    threading.Thread(target=late).start()
    """
    assert in_a_process(code) == "1225"


def test_a_column_named_n_jobs_is_a_column(pool):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 2)), columns=["n_jobs", "b"])
    path = ss.safe_path(X, X["b"] > 0, alphas=[0.1])
    plain = ss.safe_path(X.to_numpy(), X["b"] > 0, alphas=[0.1])
    np.testing.assert_allclose(path.coefs, plain.coefs, rtol=1e-9)
