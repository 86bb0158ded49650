"""Scores against numbers worked out by hand, and the intervals' coverage by simulation."""

import math

import numpy as np
import pytest

from harness.record import Episode, Key, Note, Result, Start, Turn
from harness.score import (
    COUNT,
    METRICS,
    SHARE,
    Estimate,
    average,
    estimate,
    pass_at_k,
    score,
    wilson,
)


def note(cost_to_go=4.0, dead_end=False):
    return Note(
        cost_to_go=cost_to_go,
        value=-cost_to_go,
        progress=0.0,
        dead_end=dead_end,
        exact=True,
        best_actions=(),
    )


def turn(valid=True, strict=True, score=0.0, tokens=None, dead_end=False, **fields):
    return Turn(
        observation="",
        reply="",
        attempt="",
        strict=strict,
        action="",
        valid=valid,
        error="",
        reward=0.0,
        score=score,
        progress=0.0,
        success=False,
        note=note(dead_end=dead_end),
        stop_reason="stop",
        completion_tokens=tokens,
        seconds_waiting=0.5,
        seconds_generating=1.0,
        seconds_game=0.25,
        **{"cost": 0.0625, **fields},
    )


def episode(seed=0, rollout=0, *, success=False, turns=(), env="agentgym/A-v0", **fields):
    fields = {"result": Result.WON if success else Result.LOST, "score": 0.0} | fields
    return Episode(
        key=Key(env_id=env, seed=seed, rollout=rollout),
        instance=f"{env}/{seed}",
        env_version="0",
        prompt_hash="",
        model="m",
        success=success,
        progress=float(success),
        start=Start(
            observation="",
            score=0.0,
            progress=0.0,
            note=fields.pop("start_note", note()),
            seconds_game=0.125,
        ),
        turns=turns,
        **fields,
    )


def close(found, mean, low, high, instances):
    assert found.instances == instances
    assert (found.mean, found.low, found.high) == pytest.approx((mean, low, high), abs=5e-4)


def test_success_of_three_instances_with_two_rollouts_by_hand():
    won = {(0, 0): True, (0, 1): True, (1, 0): True, (1, 1): False, (2, 0): False, (2, 1): False}

    found = score(episode(s, r, success=w) for (s, r), w in won.items()).environments[0]

    # Instance means 1, 1/2, 0: mean 1/2, standard deviation 1/2, standard error 1/(2 sqrt 3),
    # t(0.975, 2) = 4.3027, so 1/2 +- 1.242, cut to [0, 1].
    close(found.metrics["success"], 0.5, 0.0, 1.0, 3)
    assert (found.episodes, found.instances, found.spoilt) == (6, 3, 0)
    # pass@2: 1, 1 - C(1,2)/C(2,2) = 1, 0.
    assert found.pass_at[2].mean == pytest.approx(2 / 3)
    assert found.results == {Result.WON: 3, Result.LOST: 3}


def test_a_clustered_mean_by_hand():
    found = estimate([[1.0, 3.0], [4.0, 4.0], [6.0, 6.0]])

    # Means 2, 4, 6: mean 4, sd 2, se 2/sqrt 3 = 1.1547, times 4.3027 is 4.9683.
    close(found, 4.0, 4 - 4.9683, 4 + 4.9683, 3)


def test_an_interval_is_cut_where_the_metric_ends():
    groups = [[0.0], [0.0], [9.0]]

    # Mean 3, sd 5.196, se 3, times 4.3027 is 12.908.
    close(estimate(groups), 3.0, -9.908, 15.908, 3)
    close(estimate(groups, COUNT), 3.0, 0.0, 15.908, 3)


def test_rollouts_of_one_instance_do_not_narrow_the_interval():
    few = estimate([[0.0], [1.0], [1.0], [0.5]])
    many = estimate([[0.0] * 9, [1.0] * 9, [1.0] * 9, [0.5] * 9])

    assert (few.low, few.high) == (many.low, many.high)


@pytest.mark.parametrize(
    ("won", "n", "low", "high"),
    # Newcombe 1998, table I, method 3 (score, no continuity correction).
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_newcombes_published_intervals(won, n, low, high):
    assert wilson(won / n, n) == pytest.approx((low, high), abs=5e-5)


def test_one_rollout_each_gets_wilsons_interval():
    found = score(episode(s, success=s < 1) for s in range(29)).environments[0]

    close(found.metrics["success"], 1 / 29, 0.0061, 0.1718, 29)
    assert found.pass_at == {}


def test_a_share_without_spread_is_not_called_certain():
    found = score(episode(s, r, success=True) for s in range(20) for r in range(4)).environments[0]

    close(found.metrics["success"], 1.0, 1 - 0.1611, 1.0, 20)
    close(found.pass_at[4], 1.0, 1 - 0.1611, 1.0, 20)


@pytest.mark.parametrize("groups", [[[3.0, 5.0]], [[4.0]] * 9])
def test_without_spread_between_instances_there_is_no_interval(groups):
    found = estimate(groups)

    assert (found.mean, found.instances) == (4.0, len(groups))
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize(
    ("won", "played", "k", "expected"),
    [
        (0, 4, 2, 0.0),
        (1, 4, 1, 0.25),
        (1, 4, 2, 0.5),
        (2, 4, 2, 5 / 6),
        (3, 4, 2, 1.0),
        (1, 4, 4, 1.0),
    ],
)
def test_pass_at_k_by_counting_the_pairs(won, played, k, expected):
    assert pass_at_k(won, played, k) == pytest.approx(expected)


def test_metrics_of_one_episode_by_hand():
    turns = (
        turn(valid=False, strict=False, score=1.0, tokens=10, problem="unclosed_think"),
        turn(score=3.0, tokens=20),
        turn(score=2.0, tokens=None),
        turn(score=2.0, tokens=5, dead_end=True, cost=0.5),
        turn(score=2.0, tokens=5, problem="unclosed_think"),
    )
    played = episode(
        success=True, turns=turns, score=2.0, milestones=1, milestone_total=4, start_note=note(3.0)
    )

    found = {title: metric.measure(played) for title, metric in METRICS.items()}

    assert found == {
        "success": 1.0,
        "strict success": 0.0,
        "score": 2.0,
        "best score": 3.0,
        "progress": 1.0,
        "milestones": 0.25,
        "dead ends": 1.0,
        "invalid": 0.2,
        "strict": 0.8,
        "unclosed thinking": 0.4,
        "regret": 2.0,
        "turns": 5.0,
        "tokens": 40.0,
        "prompt tokens": None,
        "cost": 0.75,
        "seconds": 8.875,
    }


def test_strict_success_wants_every_reply_in_the_asked_format():
    kept = episode(success=True, turns=(turn(), turn()))
    missed = episode(success=True, turns=(turn(strict=False), turn()))
    lost = episode(turns=(turn(), turn()))

    measured = [METRICS["strict success"].measure(each) for each in (kept, missed, lost)]

    assert measured == [1.0, 0.0, 0.0]


def test_a_cost_that_is_not_known_of_each_turn_is_not_zero():
    known, unknown = turn(cost=0.5), turn(cost=None)

    assert METRICS["cost"].measure(episode(turns=(known, unknown))) is None
    assert METRICS["cost"].measure(episode(turns=())) is None
    assert METRICS["cost"].measure(episode(turns=(turn(cost=0.0),))) == 0.0
    assert "cost" not in score([episode(turns=(unknown,))]).environments[0].metrics


@pytest.mark.parametrize("cost", [math.nan, math.inf])
def test_regret_is_said_only_of_won_episodes_with_a_known_optimum(cost):
    unknown = episode(success=True, turns=(turn(),), start_note=note(cost))
    lost = episode(seed=1, success=False, turns=(turn(),))
    bare = episode(seed=2, success=True, turns=(turn(),), start_note=None)

    assert [METRICS["regret"].measure(each) for each in (unknown, lost, bare)] == [None] * 3
    assert "regret" not in score([unknown, lost, bare]).environments[0].metrics


def test_provider_errors_are_counted_and_never_averaged():
    good = [episode(s, success=True) for s in range(3)]
    bad = [episode(s, 1, result=Result.PROVIDER_ERROR, turns=(turn(),)) for s in range(2)]

    found = score([*good, *bad]).environments[0]

    assert found.metrics["success"].mean == 1.0
    assert (found.episodes, found.spoilt) == (3, 2)
    assert found.results[Result.PROVIDER_ERROR] == 2


def test_environments_count_alike_whatever_their_size():
    small = [episode(s, success=True, env="agentgym/A-v0") for s in range(2)]
    large = [episode(s, success=False, env="agentgym/B-v0") for s in range(20)]

    found = score([*small, *large]).overall

    assert found.metrics["success"].mean == 0.5
    # MOVER by hand: Wilson of 2/2 is [0.3424, 1], of 0/20 [0, 0.1611];
    # below = sqrt(0.6576^2 + 0)/2, above = sqrt(0 + 0.1611^2)/2.
    close(found.metrics["success"], 0.5, 0.5 - 0.3288, 0.5 + 0.0806, 22)
    assert "score" not in found.metrics
    assert found.episodes == 22


def test_keyword_arguments_and_splits_make_environments_of_their_own():
    plain = episode()
    other = plain.model_copy(
        update={"key": Key(env_id="agentgym/A-v0", kwargs='{"x": 1, "y": "z"}', seed=0)}
    )
    train = plain.model_copy(update={"key": Key(env_id="agentgym/A-v0", split="train", seed=0)})

    names = [each.name for each in score([plain, other, train]).environments]

    assert names == ["agentgym/A-v0", "agentgym/A-v0 (x=1, y=z)", "agentgym/A-v0 [train]"]


def test_the_order_of_the_record_does_not_matter_to_the_last_bit():
    rng = np.random.default_rng(23)
    episodes = [
        episode(s, r, success=bool(rng.random() < 0.5), score=float(rng.lognormal(sigma=4)))
        for s in range(200)
        for r in range(2)
    ]

    for _ in range(20):
        shuffled = [episodes[i] for i in rng.permutation(len(episodes))]
        # As texts, to the last bit: NaN, where there is no interval, equals nothing.
        assert repr(score(episodes)) == repr(score(shuffled))


def test_pass_at_k_leaves_out_instances_with_fewer_rollouts():
    complete = [episode(0, r, success=r == 0) for r in range(4)]
    short = [episode(1, r, success=True) for r in range(3)]

    found = score([*complete, *short]).environments[0].pass_at

    assert {k: (each.mean, each.instances) for k, each in found.items()} == {
        # Of the complete one's six pairs three hold the success; the other always succeeds.
        2: (0.75, 2),
        4: (1.0, 1),
    }


def test_the_later_of_two_episodes_with_one_key_counts():
    failed = episode(0, result=Result.PROVIDER_ERROR)

    found = score([failed, episode(1, success=True), episode(0, success=True)]).environments[0]

    assert (found.episodes, found.spoilt) == (2, 0)


def test_environments_come_in_the_order_that_is_asked_for():
    episodes = [episode(env=f"agentgym/{letter}-v0") for letter in "CAB"]

    found = score(episodes, ["agentgym/B-v0", "agentgym/X-v0", "agentgym/A-v0"])

    assert [each.name[9] for each in found.environments] == ["B", "A", "C"]


def test_equal_numbers_do_not_seem_to_differ_by_rounding():
    found = estimate([[0.1]] * 9, SHARE)

    assert (found.low, found.high) == wilson(found.mean, 9)


def test_an_empty_record_has_no_numbers():
    found = score([])

    assert found.environments == ()
    assert found.overall.episodes == 0


RUNS = 2000


def covered(estimates, truth):
    return np.mean([each.low <= truth <= each.high for each in estimates])


@pytest.mark.parametrize(
    ("instances", "rollouts", "a", "b"), [(50, 4, 2.0, 2.0), (200, 4, 1.0, 3.0), (30, 8, 1.0, 1.0)]
)
def test_clustered_intervals_cover_the_truth_as_often_as_they_say(instances, rollouts, a, b):
    rng = np.random.default_rng(20)
    rates = rng.beta(a, b, (RUNS, instances))
    won = rng.random((RUNS, instances, rollouts)) < rates[:, :, None]

    found = [estimate(run, SHARE) for run in won.astype(float).tolist()]
    naive = [Estimate(p, *wilson(p, won[0].size), 0) for p in won.mean((1, 2)).tolist()]

    assert 0.93 <= covered(found, a / (a + b)) <= 0.97
    # What ignores the clusters promises too much: the test can tell the difference.
    assert covered(naive, a / (a + b)) < 0.9


@pytest.mark.parametrize(("n", "rate"), [(200, 0.3), (50, 0.5), (200, 0.9)])
def test_wilsons_interval_covers_the_truth_as_often_as_it_says(n, rate):
    rng = np.random.default_rng(21)
    won = (rng.random((RUNS, n, 1)) < rate).astype(float)

    found = [estimate(run, SHARE) for run in won.tolist()]

    assert 0.93 <= covered(found, rate) <= 0.97


def test_the_interval_over_environments_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(22)
    truth = {"a": 0.2, "b": 0.5, "c": 0.9}
    found = []
    for _ in range(RUNS):
        parts = [
            estimate((rng.random((60, 1)) < rate).astype(float).tolist(), SHARE)
            for rate in truth.values()
        ]
        found.append(average(parts))

    assert 0.93 <= covered(found, np.mean(list(truth.values()))) <= 0.97
