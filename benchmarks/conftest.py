"""One table at the end: what was measured, what it is held against, and the ratio of the two."""

import pytest


class Board:
    """Collects the rows of the closing table."""

    def __init__(self):
        self.rows = []

    def add(self, what, ours, reference, unit, label):
        """A row; `unit` is "per second" (more is better) or "seconds" (less is better)."""
        ratio = ours / reference if unit == "per second" else reference / ours
        self.rows.append((what, ours, reference, unit, label, ratio))


BOARD = Board()


@pytest.fixture
def board():
    return BOARD


@pytest.fixture
def rate(benchmark):
    """Calls of `function`, each worth `count` events, as events per second of the fastest round.

    The fastest, here and for the peers: on a shared machine the others tell of its other load.
    """

    def measure(function, count, rounds=7):
        function()
        benchmark.pedantic(function, rounds=rounds, iterations=1)
        return count / min(benchmark.stats.stats.data)

    return measure


def pytest_terminal_summary(terminalreporter):
    if not BOARD.rows:
        return
    terminalreporter.section("ours against the limit or the peer (ratio above 1: ours is better)")
    for what, ours, reference, unit, label, ratio in BOARD.rows:
        terminalreporter.write_line(
            f"{what:52} {ours:14,.4g} {reference:14,.4g} {unit:10} {label:26} x{ratio:.2f}"
        )
