"""What the oracle says of turns, from notes written out by hand."""

import math

import pytest

from harness import verdicts
from harness.record import Note
from harness.verdicts import Verdict


@pytest.fixture
def episode(assignment, finish, fenced):
    """An episode of which the notes and actions are replaced."""
    played, _ = finish(assignment(), lambda request: fenced("Right"))

    def build(start, *turns):
        changed = [
            turn.model_copy(update={"action": action, "valid": bool(action), "note": note})
            for turn, (action, note) in zip(played.turns, turns, strict=False)
        ]
        begun = played.start.model_copy(update={"note": start})
        return played.model_copy(update={"start": begun, "turns": tuple(changed)})

    return build


def note(cost, best=("go",), dead=False, progress=0.0):
    return Note(
        cost_to_go=cost,
        value=-cost,
        progress=progress,
        dead_end=dead,
        exact=True,
        best_actions=() if dead else best,
    )


DEAD = note(math.inf, dead=True)


@pytest.mark.parametrize(
    ("before", "action", "after", "verdict", "loss"),
    [
        (note(5), "go", note(4), Verdict.BEST, 0),
        (note(5), "stay", note(5), Verdict.BLUNDER, 1),
        (note(5), "back", note(6), Verdict.BLUNDER, 2),
        (note(5), "jump", note(4), Verdict.FINE, 0),
        (note(5), "jump", note(1), Verdict.FINE, -3),
        (note(5), "push", DEAD, Verdict.FATAL, math.inf),
        # A best guess that met a mine is bad luck.
        (note(5), "go", DEAD, Verdict.BEST, math.inf),
        (note(5), "", note(5), Verdict.INVALID, 1),
        (DEAD, "go", DEAD, Verdict.LOST, 0),
        (note(math.nan), "go", note(math.nan), Verdict.BEST, 0),
        (note(math.nan), "stay", note(math.nan, progress=-2.5), Verdict.BLUNDER, 2.5),
        (note(5, best=()), "go", note(4), Verdict.UNKNOWN, 0),
        (None, "go", None, Verdict.UNKNOWN, math.nan),
        (note(5), "stay", None, Verdict.UNKNOWN, math.nan),
    ],
)
def test_a_turn_is_judged_by_the_notes_before_and_after(
    episode, before, action, after, verdict, loss
):
    [found] = verdicts.judged(episode(before, (action, after)))

    assert found.verdict is verdict
    assert found.loss == pytest.approx(loss, nan_ok=True)


def test_an_episode_leaves_a_trace(episode):
    played = episode(note(3), ("go", note(2)), ("stay", note(2)), ("push", DEAD), ("go", DEAD))

    found = verdicts.trace(played)

    assert list(found.costs) == [3, 2, 2, math.inf, math.inf]
    assert (found.first_blunder, found.first_dead_end, found.blunders) == (2, 3, 2)
    assert found.turns == 4
    assert found.verdicts == {
        Verdict.BEST: 1,
        Verdict.BLUNDER: 1,
        Verdict.FATAL: 1,
        Verdict.LOST: 1,
    }
    # The replies came from no tokenizer, so their characters are counted.
    assert not found.counted
    assert list(found.tokens) == [len(turn.reply) for turn in played.turns]


def test_an_episode_that_begins_dead_says_so(episode):
    assert verdicts.trace(episode(DEAD, ("go", DEAD))).first_dead_end == 0
    assert verdicts.trace(episode(note(1), ("go", note(0)))).first_dead_end is None
