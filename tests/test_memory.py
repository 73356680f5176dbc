import subprocess
import sys

import numpy as np
import pytest

from aucmax import KernelAUCClassifier
from aucmax.runtime import memory
from aucmax.runtime.memory import (
    Budget,
    NoMemoryError,
    available_bytes,
    format_bytes,
    guarded_memory,
    named_memory_error,
    parse_bytes,
)

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4GB", 4 * 10**9),
        ("4 GiB", 4 * 2**30),
        ("500mb", 5 * 10**8),
        ("1.5K", 1500),
        (12, 12),
        ("7", 7),
    ],
)
def test_parse(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["many", "", "-3GB", -1, 0, True, "4 XB"])
def test_what_is_no_size(text):
    with pytest.raises(ValueError, match="max_memory must be"):
        parse_bytes(text)


def test_format():
    assert [format_bytes(n) for n in (12, 1200, 5 * 10**6, 2**40)] == [
        "12 B",
        "1.2 kB",
        "5 MB",
        "1.1 TB",
    ]


def test_what_is_free_is_the_limit_by_default():
    free = available_bytes()
    assert free is None or free > 10**6
    Budget.of().require("A trifle", 1, "Nothing")
    if free:
        with pytest.raises(MemoryError, match=r"^A giant needs 1e.* TB, and .* may be used of what is"):
            Budget.of().require("A giant", 10**18, "Nothing")


# Errors of memory are sentences


def test_an_array_that_cannot_be_allocated_is_named():
    model, X = KernelAUCClassifier(), np.zeros((5000, 7))
    with (
        pytest.raises(NoMemoryError) as caught,
        guarded_memory("The fit of KernelAUCClassifier", model, X),
    ):
        np.empty((2**50, 3), dtype=np.float32)
    text = str(caught.value)
    assert text.startswith("The fit of KernelAUCClassifier of 5,000 rows x 7 columns ran out of memory")
    assert "an array of 1,125,899,906,842,624 x 3 float32 (1.35e+04 TB)" in text
    assert "set max_memory to what it may use" in text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "none for what was needed next"),
        (RuntimeError("can't start new thread"), "none for a new thread"),
        (ImportError("x.so: failed to map segment from shared object"), "what was needed next"),
    ],
)
def test_errors_that_say_nothing_become_sentences(error, said):
    with pytest.raises(NoMemoryError, match=said), guarded_memory("Work", None, None):
        raise error
    assert said in str(named_memory_error(error))


@pytest.mark.parametrize("error", [RuntimeError("other"), ImportError("no module"), ValueError("bad")])
def test_other_errors_pass(error):
    with pytest.raises(type(error), match=str(error)), guarded_memory("Work", None, None):
        raise error


def test_a_sentence_is_kept():
    with pytest.raises(NoMemoryError, match=r"^inner$"), guarded_memory("Work", None, None):
        raise NoMemoryError("inner")


def test_a_limit_on_addresses_bounds_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "free_address_space", lambda: memory.working_space() + 1000)
    assert available_bytes() == 1000


def limited(code, megabytes, *arguments):
    """Run Python under a limit on its addresses."""
    start = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({megabytes} * 10**6, {megabytes} * 10**6))\n"
    )
    command = [sys.executable, "-c", start + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@linux
def test_a_fit_without_room_for_threads_is_refused_instead_of_aborted():
    code = (
        "import numpy as np\nfrom aucmax import LinearAUCClassifier\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 10**6,) * 2)\n"
        "X = np.random.default_rng(0).normal(size=(100, 3))\n"
        "LinearAUCClassifier().fit(X, X[:, 0] > 0)\n"
    )
    done = limited(code, 10**5)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "aucmax.runtime.memory.NoMemoryError: The fit of LinearAUCClassifier needs about"
    )
    assert "Raise the limit (ulimit -v)" in last


@linux
def test_a_command_without_room_is_one_sentence():
    done = limited("from aucmax.cli import main\nmain()\n", 500, "info", "m.aucmax")
    assert done.returncode == 2
    assert done.stderr.startswith("aucmax: aucmax info needs about")
    assert len(done.stderr.splitlines()) == 1
