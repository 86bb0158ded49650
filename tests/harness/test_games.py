"""The loop on the real games: how their episodes end, and that nothing a model says breaks them."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import models
from harness.models import scripted
from harness.record import Episode, Result
from harness.scheduler import play_all
from tests.harness.records import timeless

CORNER = """
#####
#   #
# $ #
#.@ #
#####
"""
"""Up pushes the box against a wall that no target lies along."""


@pytest.fixture
def room(tmp_path):
    """Writes an XSB room; the keyword arguments that load it."""

    def write(text):
        path = tmp_path / "room.xsb"
        path.write_text(text)
        return json.dumps({"instances": str(path)})

    return write


@pytest.fixture
def boards(tmp_path):
    """Writes a 2048 board; the keyword arguments that load it, without the oracle."""

    def write(*rows):
        path = tmp_path / "boards.jsonl"
        path.write_text(json.dumps({"board": rows, "key": 1}) + "\n")
        return json.dumps({"instances": str(path), "oracle": False})

    return write


def in_turn(fenced, actions):
    return lambda request: fenced(actions[request.key[2]])


def test_a_dead_end_is_recorded_and_goes_on(assignment, finish, fenced, room):
    given = assignment("agentgym/Sokoban-v0", kwargs=room(CORNER), max_turns=3)

    played, _ = finish(given, in_turn(fenced, ["Up", "Down", "Up"]))

    assert [turn.note.dead_end for turn in played.turns] == [True, True, True]
    assert played.turns[0].note.progress == -played.start.note.cost_to_go
    assert (played.result, played.success) == (Result.STEP_LIMIT, False)


def test_a_dead_end_ends_it_where_the_run_asks_for_that(assignment, finish, fenced, room):
    given = assignment(
        "agentgym/Sokoban-v0", kwargs=room(CORNER), max_turns=3, end_on_dead_end=True
    )

    played, _ = finish(given, in_turn(fenced, ["Up"]))

    assert (played.result, played.terminated, len(played.turns)) == (Result.DEAD_END, False, 1)


def test_an_environment_that_ends_on_dead_ends_says_so_too(assignment, finish, fenced, room):
    kwargs = json.dumps(json.loads(room(CORNER)) | {"end_on_dead_end": True})

    played, _ = finish(assignment("agentgym/Sokoban-v0", kwargs=kwargs), in_turn(fenced, ["Up"]))

    assert (played.result, played.terminated, played.success) == (Result.DEAD_END, True, False)


def test_a_blocked_move_is_valid_and_told_to_have_changed_nothing(assignment, finish, fenced, room):
    given = assignment("agentgym/Sokoban-v0", kwargs=room(CORNER), max_turns=2)

    played, requests = finish(given, in_turn(fenced, ["Down", "Left"]))

    assert [turn.valid for turn in played.turns] == [True, True]
    assert "changed nothing" in requests[1].messages[-1]["content"]


def test_2048_goes_on_after_success_and_ends_when_the_board_is_full(
    assignment, finish, fenced, boards
):
    kwargs = boards([1024, 1024, 8, 4], [4, 8, 16, 32], [64, 128, 256, 512], [2, 4, 8, 16])
    directions = ["Up", "Down", "Left", "Right"]

    def first_that_is_legal(request):
        legal = request.peek.info["legal_actions"]
        turn = request.key[2]
        return fenced("Left" if turn == 0 else next(d for d in directions if d in legal))

    played, _ = finish(assignment("agentgym/2048-v0", kwargs=kwargs), first_that_is_legal)

    assert played.turns[0].success
    assert len(played.turns) > 1
    assert (played.result, played.success, played.terminated) == (Result.WON, True, True)
    assert played.score >= 2048
    assert played.start.note is None


def test_2048_without_the_target_tile_is_lost(assignment, finish, fenced, boards):
    # Left fills the board; the 2 or 4 that is spawned stands between 8 and 32.
    kwargs = boards([0, 2, 4, 8], [4, 8, 16, 32], [64, 128, 256, 512], [4, 64, 8, 16])

    played, _ = finish(assignment("agentgym/2048-v0", kwargs=kwargs), lambda r: fenced("Left"))

    assert (played.result, played.success, played.terminated) == (Result.LOST, False, True)
    assert len(played.turns) == 1


def test_2048_cut_short_after_success_keeps_both(assignment, finish, fenced, boards):
    kwargs = boards([1024, 1024, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0])
    given = assignment("agentgym/2048-v0", kwargs=kwargs, max_turns=2)

    played, _ = finish(given, in_turn(fenced, ["Left", "Right"]))

    assert (played.result, played.success, played.truncated) == (Result.STEP_LIMIT, True, True)


def test_2048_stuck_for_ten_turns_ends_as_in_proact(assignment, finish, fenced, boards):
    kwargs = boards([2, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0])
    given = assignment("agentgym/2048-v0", kwargs=kwargs, max_invalid=10)

    played, _ = finish(given, lambda request: fenced("Up"))

    assert (played.result, len(played.turns)) == (Result.STEP_LIMIT, 10)


def test_a_mine_loses(assignment, finish, fenced, tmp_path):
    def hit(request):
        env = request.peek.env.unwrapped
        for action in request.peek.info["legal_actions"]:
            if action.startswith("reveal"):
                copy = env.state.copy()
                env.setup.game.step(copy, env.setup.layout.actions.index(action))
                if env.setup.game.terminal(copy) and not env.setup.game.success(copy):
                    return fenced(action)
        return fenced(request.peek.info["legal_actions"][0])

    played, _ = finish(assignment("agentgym/Minesweeper-v0"), hit)

    assert (played.result, played.success, played.terminated) == (Result.LOST, False, True)
    assert len(played.turns) == 1


NATIVE = ["agentgym/Sokoban-v0", "agentgym/RushHour-v0", "agentgym/Minesweeper-v0"]


@pytest.mark.parametrize("env_id", [*NATIVE, "agentgym/2048-3x3-v0"])
def test_any_text_is_a_reply(assignment, finish, env_id):
    words = st.sampled_from(["up", "reveal 1 1", "A+1", "```", "\n", "<think>", "**", "9" * 30])

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.text(max_size=30) | st.lists(words).map(" ".join), min_size=1))
    def check(replies):
        given = assignment(env_id, kwargs='{"oracle": false}', max_turns=4)
        played, _ = finish(given, lambda r: replies[r.key[2] % len(replies)])
        assert Episode.model_validate_json(played.model_dump_json()) == played
        for turn, after in zip(played.turns, played.turns[1:], strict=False):
            assert turn.valid or turn.error
            # What is not valid changes nothing.
            assert turn.valid or turn.observation == after.observation

    check()


def test_games_and_oracles_in_threads_give_what_they_give_alone(assignment):
    ids = [*NATIVE, "agentgym/2048-3x3-v0"]
    many = [assignment(env_id, seed=seed) for seed in range(6) for env_id in ids]

    def play(concurrency):
        kept = []
        model = models.load("random", concurrency=concurrency)
        asyncio.run(play_all(many, model, keep=kept.append))
        return sorted(map(timeless, kept))

    assert play(8) == play(1)


@pytest.mark.parametrize("env_id", NATIVE[:2])
def test_the_oracle_wins_all_of_core_in_the_fewest_turns(assignment, finish, fenced, env_id):
    for seed in range(200):
        played, _ = finish(assignment(env_id, seed=seed), lambda r: fenced(scripted.best_action(r)))
        assert (played.result, len(played.turns)) == (
            Result.WON,
            played.start.note.cost_to_go,
        )
