"""Levels, instances, splits and board files of 2048."""

import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import agentgym  # noqa: F401
from agentgym.chance import COUNTER, KEY
from agentgym.errors import InvalidInstance, InvalidOption, UnknownName
from agentgym.games.game_2048 import GAME
from agentgym.games.game_2048.instances import LEVELS, load
from agentgym.games.game_2048.rules import BASE, GOAL, SCORE, SIZE, TOP
from agentgym.splits import SPLITS, instance, split_of
from tests.agentgym.games.test_game_2048_rules import board_of

OPTIONS = [{"level": "4x4"}, {"level": "3x3"}, {"level": "3072"}, {"size": 2}, {"size": 5}]


def options(**given):
    return GAME.options(**given)


@pytest.mark.parametrize("given", OPTIONS)
def test_a_start_has_two_small_tiles_and_a_target(given):
    for seed in range(20):
        start = instance(GAME, options(**given), "test", seed).start
        tiles = [k for row in board_of(start) for k in row if k]
        assert len(tiles) == 2
        assert set(tiles) <= {1, 2}
        assert (start[SCORE], start[COUNTER], start[TOP]) == (0, 2, max(tiles))
        assert start[KEY] > 0
        assert not GAME.terminal(start)


@pytest.mark.parametrize(
    ("given", "size", "target"),
    [
        ({}, 4, 2048),
        ({"level": "3x3"}, 3, 256),
        ({"level": "3072"}, 4, 3072),
        ({"size": 2}, 2, 16),
        ({"size": 5}, 5, 2048),
        ({"level": "3x3", "base": 3}, 3, 384),
    ],
)
def test_size_base_and_target(given, size, target):
    start = instance(GAME, options(**given), "train", 0).start

    assert start[SIZE] == size
    assert start[BASE] << (start[GOAL] - 1) == target


def test_arguments_that_make_a_level_are_that_level():
    assert options(size=3).instance_key == "3x3"
    assert options(base=3).instance_key == "3072"
    assert options(level="3x3", size=4).instance_key == "4x4"
    assert options(size=5, base=7).instance_key == "5x5-base7"


def test_milestones_go_from_16_times_the_base_to_the_highest_tile_that_fits():
    names = {n: GAME.layout(options(size=n), None).milestones for n in (2, 3, 4)}

    assert names[2] == ("tile_32",)
    assert names[3] == tuple(f"tile_{2**k}" for k in range(5, 11))
    assert names[4] == tuple(f"tile_{2**k}" for k in range(5, 18))
    assert GAME.layout(options(level="3072"), None).milestones[0] == "tile_48"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"level": "4x5"}, UnknownName, "Did you mean '4x4'"),
        ({"size": 6}, InvalidOption, "size is a whole number from 2 to 5, got 6"),
        ({"size": 0}, InvalidOption, "got 0"),
        ({"base": 0}, InvalidOption, "base is a whole number from 1 to 1000, got 0"),
        ({"base": 2.5}, InvalidOption, "got 2.5"),
    ],
)
def test_bad_arguments(given, error, says):
    with pytest.raises(error, match=says):
        options(**given)


def file(tmp_path, text):
    path = tmp_path / "boards.jsonl"
    path.write_text(text)
    return path


def test_boards_load_from_json_lines(tmp_path):
    path = file(
        tmp_path,
        '{"board": [[0, 2, 4], [8, 0, 0], [0, 0, 512]], "key": 7, "score": 100}\n\n'
        '{"board": [[2, 0, 0], [0, 0, 0], [0, 0, 0]]}\n',
    )
    first, second = load(path, options())

    assert board_of(first) == [[0, 1, 2], [3, 0, 0], [0, 0, 9]]
    assert (first[KEY], first[SCORE], first[SIZE], first[TOP], first[GOAL]) == (7, 100, 3, 9, 8)
    assert (second[KEY], second[SCORE]) == (3, 0)
    env = gym.make("agentgym/2048-v0", instances=str(path), oracle=False)
    text, info = env.reset(options={"index": 0})
    assert text == "   .    2    4\n   8    .    .\n   .    .  512"
    assert info["score"] == 100.0
    assert info["success"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[[2]]", 'expected an object with a "board"'),
        ('{"bord": 1}', 'expected an object with a "board"'),
        ("{board}", "Expecting property name"),
        ('{"board": [[2, 0], [0]]}', "a board has 2 to 5 rows of as many cells"),
        ('{"board": 5}', "a board has 2 to 5 rows of as many cells"),
        ('{"board": [2, 2]}', "a board has 2 to 5 rows of as many cells"),
        ('{"board": [[2]]}', "a board has 2 to 5 rows of as many cells"),
        ('{"board": [[2, 0], [0, 3]]}', r"a cell is 0 or 2 \* 2\^k up to 32, got 3"),
        ('{"board": [[2, 0], [0, 64]]}', "up to 32, got 64"),
        ('{"board": [[2, 0], [0, true]]}', "got True"),
        ('{"board": [[2, 4], [4, 2]]}', "no move is legal"),
        ('{"board": [[0, 0], [0, 0]]}', "no move is legal"),
        ('{"board": [[2, 0], [0, 2]], "key": -1}', r"key is a whole number from 0 .* got -1"),
        ('{"board": [[2, 0], [0, 2]], "score": "9"}', "score is a whole number from 0"),
        ('{"board": [[2, 0, 0], [0, 0, 0], [0, 0, 0]]}', "all boards of a file have one size, 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, says):
    path = file(tmp_path, '{"board": [[2, 0], [0, 2]]}\n' + line + "\n")

    with pytest.raises(InvalidInstance, match=says) as told:
        load(path, options())
    assert "boards.jsonl:2: " in str(told.value)


SCRIPT = """
import sys
from agentgym.games.game_2048 import GAME
from agentgym.splits import instance
count, order = int(sys.argv[1]), sys.argv[2]
for level in ("4x4", "3x3", "3072"):
    for seed in range(count) if order == "up" else range(count - 1, -1, -1):
        made = instance(GAME, GAME.options(level=level), "test", seed)
        print(level, seed, made.start.tobytes().hex())
"""


def starts_of(count, order, hash_seed):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count), order],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(run.stdout.splitlines())


def test_instances_are_the_same_bytes_in_any_process_and_order():
    assert starts_of(50, "up", "1") == starts_of(50, "down", "2")


@pytest.mark.slow
def test_ten_thousand_instances_are_the_same_bytes_in_any_process_and_order():
    assert starts_of(10_000, "up", "1") == starts_of(10_000, "down", "2")


def check_splits(level, count):
    """No form is in two splits, all instances are sound, and none comes twice."""
    forms = {}
    for split in SPLITS:
        made = [instance(GAME, options(level=level), split, seed) for seed in range(count)]
        assert all(split_of(one.canonical) == split for one in made)
        assert not any(GAME.terminal(one.start) or GAME.success(one.start) for one in made)
        forms[split] = {one.canonical for one in made}
        assert len(forms[split]) == count
    assert len(set().union(*forms.values())) == 3 * count


@pytest.mark.parametrize("level", LEVELS)
def test_splits_share_no_instance(level):
    check_splits(level, 500)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_splits_share_no_instance_of_twenty_thousand(level):
    check_splits(level, 20_000)


def test_canonical_form_is_key_size_base_and_board():
    start = instance(GAME, options(), "test", 0).start
    form = GAME.canonical(start)

    assert np.frombuffer(form, np.int64)[:3].tolist() == [start[KEY], 4, 2]
    other = start.copy()
    other[KEY] += 1
    assert GAME.canonical(other) != form
