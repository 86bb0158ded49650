"""Each game's card says what the code does."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from agentgym.registration import NAMESPACE, ROWS, Row, game_module

_FILE = Path(__file__).parent.parent / "docs" / "generate.py"
_SPEC: Any = spec_from_file_location("generate", _FILE)
generate: Any = module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate)

GAMES = tuple(dict.fromkeys(row.game for row in ROWS))
games = pytest.mark.parametrize("game", GAMES)


def _card(game: str) -> Any:
    return generate.card(generate.load_game(game_module(game)))


def _rows(game: str) -> list[Row]:
    return [row for row in ROWS if row.game == game]


def _terms(text: str) -> set[str]:
    """What stands in back-ticks, double ones too."""
    return set(re.findall(r"`+([^`\n]+)`+", text))


@games
def test_the_headings_stand_in_order_and_none_is_empty(game: str) -> None:
    card = _card(game)

    assert tuple(card.sections) == generate.HEADINGS
    assert [heading for heading, text in card.sections.items() if not text.strip()] == []


@games
def test_the_examples_are_what_the_code_prints(game: str) -> None:
    results = doctest.testmod(import_module(game_module(game)), optionflags=doctest.ELLIPSIS)

    assert results.attempted > 0
    assert results.failed == 0
    assert ">>>" in _card(game).sections["Observation"]


@games
def test_the_variants_are_the_registered_ids(game: str) -> None:
    named = set(re.findall(rf"{NAMESPACE}/[\w-]+", _card(game).sections["Variants"]))

    assert named == {f"{NAMESPACE}/{row.id}" for row in _rows(game)}


@games
def test_the_turn_limits_are_those_of_the_table(game: str) -> None:
    limits = {f"{NAMESPACE}/{row.id}": row.max_turns for row in _rows(game)}
    rows = re.findall(r"^\|(.*)\| (\d+) \|$", _card(game).sections["Variants"], re.MULTILINE)
    told = {
        env_id: int(limit) for cells, limit in rows for env_id in limits if f"`{env_id}`" in cells
    }

    assert told == limits


@games
def test_the_version_is_that_of_the_ids(game: str) -> None:
    version = generate.load_game(game_module(game)).version
    card = _card(game)

    assert {row.id.rpartition("-")[2] for row in _rows(game)} == {f"v{version}"}
    assert f"v{version}" in card.sections["Versions"]


@games
def test_the_milestones_are_named_and_no_others(game: str) -> None:
    terms = _terms(_card(game).sections["Milestones"])
    told = {re.sub(r"_\w+$", "_*", term) for term in terms if term.isidentifier()}
    envs: list[Any] = [gym.make(f"{NAMESPACE}/{row.id}").unwrapped for row in _rows(game)]
    names = {name for env in envs for name in env.setup.layout.milestones}

    assert told == {re.sub(r"_\w+$", "_*", name) for name in names}


@games
def test_the_info_keys_exist(game: str) -> None:
    env = gym.make(f"{NAMESPACE}/{_rows(game)[0].id}")
    _, info = env.reset(seed=0)
    keys = {*info, *info["milestones"], *info["oracle"], "milestones", "oracle", "action_values"}
    named = {term for term in _terms(_card(game).sections["Info"]) if term.isidentifier()}

    assert named
    assert named - keys == set()
