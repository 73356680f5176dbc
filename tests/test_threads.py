"""BLAS has one limit for all threads: the first guard stores it, and the last one restores it."""

import dis
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from aucmax import KernelAUCClassifier
from aucmax.runtime import threads
from aucmax.runtime.threads import one_blas_thread, over_blocks, thread_count


def blas_threads():
    """The number of threads that each BLAS library of this process uses now."""
    return [library.num_threads for library in threads._blas()]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """BLAS on two threads, wherever this runs, and as it was afterwards."""
    monkeypatch.setattr(threads, "cpu_count", lambda: 2)
    with threadpool_limits(2, user_api="blas"):
        yield
        assert set(blas_threads()) <= {2}
        assert thread_count() == 2


def test_blas_has_one_thread_inside_and_as_many_as_before_afterwards():
    with one_blas_thread():
        with one_blas_thread():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
        assert thread_count() == 1


def test_an_outer_limit_is_kept():
    with threadpool_limits(1, user_api="blas"):
        with one_blas_thread():
            pass
        assert set(blas_threads()) == {1}
        assert thread_count() == 1


def test_the_last_thread_to_leave_restores_blas():
    first, second = one_blas_thread(), one_blas_thread()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        one.submit(first.__enter__).result()
        other.submit(second.__enter__).result()
        one.submit(first.__exit__, None, None, None).result()
        assert set(blas_threads()) == {1}  # the second still works
        other.submit(second.__exit__, None, None, None).result()


def test_another_thread_that_holds_blas_back_takes_no_threads_from_this_one():
    held, done = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    try:
        assert set(blas_threads()) == {1}
        assert thread_count() == 2
    finally:
        done.set()
        thread.join()


def test_work_over_blocks_does_not_spread_again():
    seen = []
    over_blocks(lambda rows: seen.append(thread_count()), 100, 0, 10)
    assert seen == [1] * 10


@pytest.mark.slow
def test_fits_in_threads_leave_blas_as_it_was():
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0] * X[:, 1] > 0
    fit = partial(KernelAUCClassifier, 1.0, kernel="rbf", gamma=1.0, n_landmarks=10, random_state=0)
    one = fit().fit(X, y).decision_function(X)
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(fit().fit, X, y) for _ in range(8)]:
            np.testing.assert_array_equal(each.result().decision_function(X), one)
    assert set(blas_threads()) == {2}


def test_an_interrupt_wherever_one_can_come_restores_blas():
    """KeyboardInterrupt after each call and at the start of each function of the module, in turn."""
    count = 0
    with ThreadPoolExecutor(1) as other:
        while _interrupted(count):
            assert set(blas_threads()) == {2}, count
            assert other.submit(thread_count).result(10) == 2, count  # the lock is free
            assert thread_count() == 2, count
            count += 1
    assert count > 30


def _interrupted(after):
    """Enter and leave twice, nested, interrupted once. False if there are not so many places.

    CPython looks for signals after calls and backward jumps and at the start of a function, and nowhere
    else.
    """
    passed = 0
    before: dict[int, str] = {}  # the last instruction of each frame

    def trace(frame, event, _):
        nonlocal passed
        if frame.f_code.co_filename != threads.__file__ or frame.f_code.co_name == "__del__":
            return None
        frame.f_trace_opcodes = True
        last = before.pop(id(frame), "") if event != "call" else ""
        if event == "opcode":
            before[id(frame)] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if event == "call" or (event == "opcode" and last.startswith(("CALL", "JUMP_BACK"))):
            passed += 1
            if passed == after + 1:
                raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        with one_blas_thread(), one_blas_thread():
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_is_not_held_back_by_threads_it_does_not_have():
    code = """
import os, threading
from threadpoolctl import threadpool_limits
from aucmax.runtime import threads as threads
from aucmax.runtime.threads import one_blas_thread, thread_count

def blas_threads():
    return [library.num_threads for library in threads._blas()]

threads.cpu_count = lambda: 2
threadpool_limits(2, user_api="blas")
held, done = threading.Event(), threading.Event()

def hold():
    with one_blas_thread():
        held.set()
        done.wait(60)

thread = threading.Thread(target=hold)
thread.start()
held.wait(60)

def in_child(check):
    child = os.fork()
    if not child:
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0

alone = in_child(lambda: set(blas_threads()) == {2} and thread_count() == 2)
with one_blas_thread():
    inside = in_child(lambda: set(blas_threads()) == {1} and thread_count() == 1)
done.set()
thread.join()
print(alone, inside, set(blas_threads()), thread_count())
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["True", "True", "{2}", "2"], done.stderr


def test_contexts_that_outlive_the_guard_are_not_held_back():
    with one_blas_thread():
        context = copy_context()
        assert context.run(thread_count) == 1
    assert context.run(thread_count) == 2
