"""Instances: their names, their splits, their independence of process and order."""

import collections
import os
import subprocess
import sys

import numpy as np
import pytest

from agentgym import splits
from agentgym.errors import InvalidOption, UnknownName
from agentgym.setup import make_setup

WALK = "tests.agentgym.walk_game"


@pytest.fixture
def setup():
    return make_setup(WALK, {"max_turns": 50})


def test_every_form_has_one_split_and_the_shares_are_half_and_two_quarters():
    forms = [k.to_bytes(4, "big") for k in range(20_000)]

    counts = collections.Counter(splits.split_of(form) for form in forms)

    assert sum(counts.values()) == 20_000
    assert counts["train"] == pytest.approx(10_000, abs=300)
    assert counts["validation"] == pytest.approx(5_000, abs=250)
    assert counts["test"] == pytest.approx(5_000, abs=250)


def test_seeds_do_not_overlap_as_seed_plus_index_would(setup):
    starts = [splits.instance(setup.game, setup.options, "test", s).start for s in range(500)]

    assert len({start.tobytes() for start in starts}) == 500


def test_options_that_only_change_looks_do_not_change_the_instance(setup):
    text = make_setup(WALK, {"max_turns": 50, "observation": "text"})
    grid = make_setup(WALK, {"max_turns": 50, "observation": "grid", "action": "index"})

    assert text.instance(5)[0] == grid.instance(5)[0]


def test_an_instance_is_read_only_so_that_nobody_changes_the_shared_one(setup):
    with pytest.raises(ValueError, match="read-only"):
        setup.instance(0)[1].start[0] = 1


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_refused(setup, seed):
    with pytest.raises(InvalidOption, match="whole number"):
        setup.instance(seed)


def test_an_unknown_split_is_named_with_the_nearest(setup):
    with pytest.raises(UnknownName, match="Did you mean 'train'"):
        make_setup(WALK, {"max_turns": 5, "split": "trian"})


def test_the_same_bytes_under_any_hash_seed_and_in_any_order():
    code = (
        "import sys; from agentgym.setup import make_setup\n"
        "seeds = list(range(40)); seeds = seeds[::-1] if sys.argv[1] == 'down' else seeds\n"
        f"s = make_setup({WALK!r}, {{'max_turns': 5}})\n"
        "print(sorted((k, s.instance(k)[0], s.instance(k)[1].start.tobytes()) for k in seeds))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, order],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed, order in (("0", "up"), ("1", "down"))
    }

    assert len(outputs) == 1


def test_the_id_names_game_arguments_source_and_form(setup):
    name, made = setup.instance(7)

    assert name.startswith("Walk-v0/short/test/7/")
    assert name == splits.instance_id(setup.game, setup.options, "test/7", made.canonical)
    assert np.array_equal(setup.instance(7)[1].start, made.start)
