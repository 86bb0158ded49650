"""Runs compared by pairs: numbers worked out by hand, and the command on runs of real games."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import compare, paired, record, run_folder
from harness.record import Episode, Key, Result, Start

GAMES = ("agentgym/Sokoban-v0", "agentgym/RushHour-v0", "agentgym/Minesweeper-v0")


@pytest.fixture
def run(tmp_path):
    """Writes a run from {(environment, seed): successes of its rollouts}; its folder."""

    def build(name, played, prompt="p1", spoilt=()):
        folder = tmp_path / name
        configuration = run_folder.Configuration(
            agentgym="0", prompt_hashes=(prompt,), model=name, model_settings={}, suite={}
        )
        with record.Writer(run_folder.enter(folder, configuration, [])) as writer:
            for (env_id, seed), wins in played.items():
                for rollout, won in enumerate(wins):
                    lost = Result.PROVIDER_ERROR if (env_id, seed) in spoilt else Result.STEP_LIMIT
                    writer.append(
                        Episode(
                            key=Key(env_id=env_id, seed=seed, rollout=rollout),
                            instance=f"{env_id}-{seed}",
                            env_version="0",
                            prompt_hash=prompt,
                            model=name,
                            result=Result.WON if won else lost,
                            success=bool(won),
                            score=float(won),
                            progress=float(won),
                            start=Start(observation="", score=0.0, progress=0.0),
                            turns=(),
                        )
                    )
        return folder

    return build


def single(env_id, wins):
    return {(env_id, seed): (won,) for seed, won in enumerate(wins)}


def compared(*runs, **options):
    return compare.compare(compare.Arguments(runs=runs, **options))


def test_single_rollouts_are_compared_by_mcnemars_exact_test():
    # Seven instances only the first run wins, one only the second: 2 (C(8,0) + C(8,1)) / 2^8.
    found = paired.compare([[1.0] * 7 + [-1.0] + [0.0] * 12], share=True)

    assert found.test == (pytest.approx(18 / 256), "exact sign test")
    assert (found.higher, found.lower, found.equal) == (7, 1, 12)
    assert found.difference.mean == pytest.approx(0.3)
    # Sum of squares 8 - 20 * 0.09 = 6.2; t(19, 97.5 %) = 2.0930.
    half = 2.0930240544 * math.sqrt(6.2 / 19 / 20)
    assert found.difference.low == pytest.approx(0.3 - half)
    assert found.difference.high == pytest.approx(0.3 + half)
    # The interval leaves out 0 and the exact test does not: not shown to differ.
    assert found.difference.low > 0
    assert found.tied


def test_eight_to_none_is_no_tie():
    found = paired.compare([[1.0] * 8 + [0.0] * 12], share=True)

    assert found.test.p == pytest.approx(2 / 256)
    assert not found.tied


def test_rollouts_are_compared_by_sign_flips():
    # Signs of 3/4, 1/2, 1/4 give 8 sums; 3/2 or more in size: two. 5/4 would give the same two.
    assert paired.sign_flip([0.75, 0.5, 0.25]) == (pytest.approx(2 / 8), "exact sign-flip")
    # 3/4 + 1/2 - 1/4 = 1 in size or more: +++, ++-, ---, --+.
    assert paired.sign_flip([0.75, 0.5, -0.25]).p == pytest.approx(4 / 8)
    assert paired.sign_flip([0.0, 0.0]) == (1.0, "no difference")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=8), st.sampled_from([1, 3, 7, 60]))
def test_the_exact_chance_is_the_one_of_all_signs_written_out(numbers, unit):
    sums = [
        abs(sum(s * abs(n) for s, n in zip(signs, numbers, strict=True)))
        for signs in product((-1, 1), repeat=len(numbers))
    ]
    expected = sum(found >= abs(sum(numbers)) for found in sums) / len(sums)

    assert paired.sign_flip([n / unit for n in numbers]).p == pytest.approx(expected)


def test_irregular_numbers_are_enumerated_and_if_many_drawn():
    few = [math.pi, math.e, -math.sqrt(2)]
    many = [math.sqrt(n) for n in range(2, 22)]

    # pi + e - sqrt 2 is reached by its own signs, by + + +, and by the opposite of both.
    assert paired.sign_flip(few) == (pytest.approx(4 / 8), "exact sign-flip")
    drawn = paired.sign_flip(many)
    assert drawn.method == "sign-flip, 100,000 draws"
    assert drawn.p < 1e-4
    assert drawn == paired.sign_flip(many)
    assert paired.sign_flip([n * (-1) ** k for k, n in enumerate(many)]).p > 0.5


def test_equal_differences_have_the_interval_of_the_share_that_could_differ():
    found = paired.difference([0.0] * 10, share=True)
    # Wilson's upper end of 0 in 10 is z^2 / (10 + z^2).
    z2 = 1.959963984540054**2
    assert found.high == pytest.approx(z2 / (10 + z2))
    assert found.low == pytest.approx(-found.high)

    sure = paired.difference([1.0] * 10, share=True)
    assert (sure.low, sure.high) == (pytest.approx(1 - 2 * z2 / (10 + z2)), 1.0)
    assert math.isnan(paired.difference([3.0] * 10, share=False).low)


def test_environments_have_equal_weight():
    # Means 1/2 and 0 over 2 and 20 instances.
    found = paired.compare([[1.0, 0.0], [0.0] * 20], share=True)

    assert found.difference.mean == pytest.approx(0.25)
    assert found.difference.instances == 22
    assert found.tied


def test_being_tied_does_not_carry_over():
    tied = {
        frozenset("AB"): True,
        frozenset("BC"): True,
        frozenset("AC"): False,
        frozenset("AD"): False,
        frozenset("BD"): False,
        frozenset("CD"): False,
    }

    assert paired.tied_sets("ABCD", tied) == [("A", "B"), ("B", "C"), ("D",)]
    assert paired.tied_sets("AB", {frozenset("AB"): True}) == [("A", "B")]


def test_rollouts_are_averaged_before_they_are_paired(run):
    a = run("a", {("X", 0): (1, 1), ("X", 1): (1, 0), ("X", 2): (0, 0)})
    b = run("b", {("X", 0): (0, 0, 0, 1), ("X", 1): (1, 0), ("X", 2): (0,)})

    found = compared(a, b)

    assert found.pairs[0].environments["X"].difference.mean == pytest.approx(0.25)
    assert found.pairs[0].overall is None
    [(instance, means)] = found.differ_most(10)
    assert instance == ("X", "X-0")
    assert means == [1.0, 0.25]


def test_only_the_common_part_is_compared_and_its_size_said(run, capsys):
    a = run("a", single("X", [1, 1, 1, 0]))
    b = run("b", single("X", [0, 1, 0]), spoilt={("X", 2)})

    assert compare.main([str(a), str(b)]) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert "Compared on 2 of 4 instances (50 %)" in shown
    assert "1 spoilt episodes left out" in shown
    assert "Tied with each other: {A, B}" in shown
    assert "Instances on which they differ most: 1" in shown


def test_nothing_in_common_is_refused(run, capsys):
    a, b = run("a", single("X", [1])), run("b", single("Y", [1]))

    assert compare.main([str(a), str(b)]) == 1

    said = " ".join(capsys.readouterr().err.split())
    assert "no instance in common" in said
    assert "1 of X" in said
    assert "Give runs of the same suite" in said


def test_other_prompts_are_refused_unless_asked_for(run, capsys):
    a, b = run("a", single("X", [1, 0])), run("b", single("X", [1, 1]), prompt="p2")

    assert compare.main([str(a), str(b)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "The prompts of X are not the same: hash p1 in" in said
    assert compare.main([str(a), str(b), "--across-prompts"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--metric", "sucess"], "Did you mean 'success'?"),
        (["--env", "Z"], "Unknown environment"),
        ([], "Compare takes 2 to 26 folders of runs, got 1"),
    ],
)
def test_wrong_arguments_are_named(run, capsys, arguments, said):
    a = str(run("a", single("X", [1, 0])))
    runs = [a, a] if arguments else [a]

    assert compare.main([*runs, *arguments]) == 1
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_is_no_run_is_named(tmp_path, capsys):
    assert compare.main([str(tmp_path), str(tmp_path)]) == 1
    assert "run.json" in capsys.readouterr().err


def test_three_runs_are_ranked_and_the_tied_ones_grouped(run, capsys):
    runs = [
        run("good", single("X", [1] * 20 + [0] * 4)),
        run("bad", single("X", [0] * 24)),
        run("best", single("X", [1] * 22 + [0] * 2)),
    ]

    found = compared(*runs)

    assert found.tied == {"X": [("C", "A"), ("B",)]}
    assert compare.main([str(each) for each in runs]) == 0
    shown = capsys.readouterr().out
    assert "Tied with each other: {C, A}" in shown
    assert "C is higher" in shown


def test_runs_of_real_games_are_compared(scripted_runs, capsys):
    oracle, rand = scripted_runs

    found = compared(oracle, rand)
    assert compare.main([str(oracle), str(rand)]) == 0

    shown = capsys.readouterr().out
    tables = shown[shown.index("mean ") :].splitlines()
    assert max(map(len, tables[: tables.index("Tied with each other: {A, B}")])) <= 80
    assert found.played == len(found.common) == 9
    assert set(found.means["A"]) == {*GAMES, "all"}
    assert found.means["A"]["agentgym/Sokoban-v0"].mean == 1.0
    assert found.pairs[0].verdict.difference.mean > 0.5
    assert "A is higher" in shown
    assert compared(oracle, oracle).pairs[0].verdict.tied
