"""What a fit shows on a terminal that watches it."""

import io
import sys
import threading

import pytest
from sklearn.datasets import make_moons

from aucmax import KernelAUCClassifier
from aucmax.runtime import progress
from aucmax.runtime.progress import ClosingGap, StatusLine


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_appears_after_a_few_seconds_and_is_removed(clock):
    terminal = Terminal()
    status = StatusLine(stream=terminal)
    status.show("trying scalings")
    assert terminal.getvalue() == ""
    clock[0] = 4.0
    status.show("trying a metric", left=6.2)
    assert terminal.getvalue().endswith("trying a metric, 4 s, about 6 s left")
    status.close()
    assert terminal.getvalue().endswith("\r\x1b[2K")


def test_nothing_is_shown_elsewhere(clock):
    file, terminal, lines = io.StringIO(), Terminal(), []
    others = [StatusLine(stream=file), StatusLine(True, terminal)]
    worker = threading.Thread(target=lambda: lines.append(StatusLine(stream=terminal)))
    worker.start()
    worker.join()
    clock[0] = 10.0
    for status in (*others, *lines):
        status.show("trying a metric")
        status.close()
    assert (file.getvalue(), terminal.getvalue()) == ("", "")
    others[1].say("a line")
    assert terminal.getvalue() == "a line\n"


def test_the_time_left_follows_the_logarithm_of_the_gap():
    closing = ClosingGap(1e-4)
    assert closing.left(1.0, 1.0) is None
    assert closing.left(1e-1, 2.0) == pytest.approx(6.0)
    assert closing.left(1e-3, 6.0) == pytest.approx(2.0)
    assert closing.left(1e-4, 8.0) is None


def test_a_fit_shows_what_it_tries_and_ends_with_an_empty_line(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SHOWN_AFTER", 0.0)
    X, y = make_moons(300, noise=0.2, random_state=0)
    shown = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    text = terminal.getvalue()
    assert "trying a metric: best AUC so far 0.9" in text
    assert "solving: step 1, training AUC" in text
    assert "s left" in text
    assert text.endswith("\r\x1b[2K")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    silent = KernelAUCClassifier(n_landmarks=50, random_state=0).fit(X, y)
    assert sys.stderr.getvalue() == ""
    assert (shown.decision_function(X) == silent.decision_function(X)).all()
