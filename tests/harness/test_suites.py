"""The suites: what they hold, and what the command line changes in them."""

import json
from collections import Counter

import gymnasium as gym
import pytest

from agentgym.errors import InvalidOption, UnknownName
from harness import suites
from harness.episode import make
from harness.prompts import Style
from harness.suites import SUITES, Changes, assignments, changed, custom, find, only

ROWS = [(suite, row) for suite in SUITES.values() for row in suite.rows]


@pytest.mark.parametrize(
    ("suite", "row"), ROWS, ids=[f"{suite.name}-{row.env_id}-{row.kwargs}" for suite, row in ROWS]
)
def test_every_row_can_be_made_and_reset(suite, row):
    one = assignments(only(suite, [row.env_id]))
    each = next(each for each in one if json.loads(each.key.kwargs) == dict(row.kwargs))

    env = make(each)
    observation, info = env.reset(seed=each.key.seed)

    assert observation
    assert f"/{row.split}/0/" in info["instance"]
    env.close()


def limits(suite):
    made = [make(each) for each in assignments(changed(suite, Changes(instances=1, rollouts=1)))]
    return [env.unwrapped.setup.max_turns for env in made]


def test_cast_is_both_levels_of_its_three_games_with_its_turn_limits():
    cast = find("cast")

    assert [row.env_id.removeprefix("agentgym/") for row in cast.rows] == [
        "Sokoban-v0",
        "Sokoban-7x7-3box-v0",
        "Minesweeper-v0",
        "Minesweeper-7x7-10-v0",
        "RushHour-v0",
        "RushHour-9car-v0",
    ]
    assert limits(cast) == [30, 40, 30, 40, 20, 20]
    assert {(row.instances, row.rollouts, row.split) for row in cast.rows} == {(200, 4, "test")}
    assert {row.settings.style.history for row in cast.rows} == {"full"}
    assert (cast.temperature, cast.top_p) == (0.6, 0.95)


def test_proact_is_six_columns_of_forty_without_history():
    proact = find("proact")

    assert len(proact.rows) == 6
    assert {row.settings.style.history for row in proact.rows} == {"stateless"}
    assert Counter(each.key.env_id for each in assignments(proact)) == {
        "agentgym/2048-v0": 40,
        "agentgym/2048-3x3-v0": 40,
        "agentgym/3072-v0": 40,
        "agentgym/Sokoban-8x8-3box-v0": 120,
    }
    assert [(row.kwargs["moves"], row.kwargs["symbols"]) for row in proact.rows[3:]] == [
        ("explicit", "proact"),
        ("push", "proact"),
        ("explicit", "proact-variant"),
    ]
    assert "NOT on ProAct's eight hand-written levels" in proact.description


def test_core_is_two_hundred_instances_of_each_default_level_four_times():
    core = find("core")

    assert {(row.instances, row.rollouts) for row in core.rows} == {(200, 4)}
    assert [row.env_id for row in core.rows] == [
        "agentgym/Sokoban-v0",
        "agentgym/RushHour-v0",
        "agentgym/Minesweeper-v0",
        "agentgym/2048-v0",
    ]
    assert len(assignments(core)) == 3200
    assert max(limits(core)) == 10_000


def test_quick_is_as_small_as_it_says():
    quick = find("quick")

    replies = sum(
        limit * row.instances for limit, row in zip(limits(quick), quick.rows, strict=True)
    )
    tokens = {row.settings.max_tokens for row in quick.rows}

    assert replies == 96
    assert replies * max(tokens) == 4608
    assert "at most 96 replies and 4,608 reply tokens" in quick.description


def test_no_two_episodes_of_a_suite_have_one_key():
    for suite in SUITES.values():
        keys = [each.key for each in assignments(suite)]
        assert len(set(keys)) == len(keys)


def test_the_command_line_changes_every_row():
    wanted = Changes(
        instances=2, rollouts=3, split="train", history="full", max_tokens=7, max_turns=5
    )

    found = assignments(changed(find("proact"), wanted))

    assert len(found) == 6 * 2 * 3
    assert {each.key.split for each in found} == {"train"}
    assert {each.key.seed for each in found} == {0, 1}
    assert {each.key.rollout for each in found} == {0, 1, 2}
    assert {each.settings.style.history for each in found} == {"full"}
    assert {(each.settings.max_tokens, each.settings.max_turns) for each in found} == {(7, 5)}
    # What was not given stays.
    assert {each.settings.max_invalid for each in found} == {10, None}
    assert changed(find("core"), Changes()) == find("core")


def test_the_command_line_changes_what_a_model_sees_and_for_how_long():
    wanted = Changes(
        format="tool",
        lenient=False,
        history=3,
        list_actions=True,
        episode_tokens=900,
        episode_seconds=0.5,
        context_policy="drop",
    )

    (settings,) = {row.settings for row in changed(find("quick"), wanted).rows}

    assert settings.style == Style(history=3, list_actions=True, lenient=False, format="tool")
    assert (settings.episode_tokens, settings.episode_seconds) == (900, 0.5)
    assert settings.context_policy == "drop"
    assert settings.max_tokens == 48


def test_proact_asks_as_the_paper_does_and_the_others_as_cast():
    asked = {
        name: {row.settings.style.format for row in suite.rows} for name, suite in SUITES.items()
    }
    assert asked.pop("proact") == {"move"}
    assert set.union(*asked.values()) == {"fence"}


def test_ids_choose_among_the_rows_or_make_a_suite_of_their_own(walk):
    assert [row.env_id for row in only(find("core"), ["agentgym/2048-v0"]).rows] == [
        "agentgym/2048-v0"
    ]
    assert len(only(find("proact"), ["agentgym/Sokoban-8x8-3box-v0"]).rows) == 3
    own = custom([walk, "agentgym/Sokoban-v0", walk])
    assert [(row.env_id, row.instances, row.rollouts) for row in own.rows] == [
        (walk, 20, 1),
        ("agentgym/Sokoban-v0", 20, 1),
    ]


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda: find("pro-act"), UnknownName, "Unknown suite 'pro-act'. Did you mean 'proact'?"),
        (lambda: only(find("core"), ["agentgym/Sokoban-v1"]), UnknownName, "of the suite 'core'"),
        (lambda: custom(["agentgym/2048-v9"]), UnknownName, "Did you mean 'agentgym/2048-v0'?"),
        (lambda: custom(["CartPole-v1"]), InvalidOption, "none of agentgym's environments"),
        (lambda: changed(find("core"), Changes(split="dev")), UnknownName, "split 'dev'"),
        (lambda: changed(find("core"), Changes(history="some")), UnknownName, "history 'some'"),
        (lambda: changed(find("core"), Changes(format="tag")), UnknownName, "mean 'tags'?"),
        (
            lambda: changed(find("core"), Changes(context_policy="halt")),
            UnknownName,
            "context policy 'halt'",
        ),
        (
            lambda: changed(find("core"), Changes(episode_seconds=0.0)),
            InvalidOption,
            "episode_seconds is above 0, got 0.0",
        ),
        (lambda: changed(find("core"), Changes(instances=0)), InvalidOption, "instances must be"),
        (lambda: changed(find("core"), Changes(max_turns=0)), InvalidOption, "max_turns is at"),
        (
            lambda: changed(find("cast"), Changes(max_turns=31)),
            InvalidOption,
            "max_turns is at most 30, the limit of agentgym/Sokoban-v0 itself, got 31",
        ),
    ],
)
def test_what_is_not_there_is_named(ask, error, says):
    with pytest.raises(error) as raised:
        ask()
    assert says in str(raised.value)


def test_the_record_of_a_suite_is_plain_json_and_ignores_its_prose():
    plain = suites.plain(find("proact"))

    assert json.loads(json.dumps(plain)) == plain
    assert plain["rows"][3]["kwargs"]["moves"] == "explicit"
    assert plain["rows"][0]["settings"]["style"]["history"] == "stateless"
    assert plain["description"] == ""


def test_every_id_of_a_suite_is_registered():
    assert {row.env_id for _, row in ROWS} <= set(gym.registry)


def test_a_limit_of_replies_shortens_and_never_lengthens():
    limits = {row.settings.max_tokens for row in suites.at_most(find("core"), 1024).rows}
    assert limits == {1024}
    assert suites.at_most(find("quick"), 1024) == find("quick")
    assert suites.at_most(find("core"), None) == find("core")
