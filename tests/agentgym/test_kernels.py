"""Compiled code: cached across processes, never stale, its own copy per game."""

import subprocess
import sys
import textwrap

RULES = """
from agentgym.kernels import kernel

@kernel
def step(x):
    return x + {bonus}
"""
LOOP = """
from agentgym.kernels import specialise

step = None

def loop(n):
    total = 0
    for i in range(n):
        total += step(i)
    return total
"""
MAIN = """
import sys
sys.path.insert(0, sys.argv[1])
import loop_file
from agentgym.kernels import specialise
from rules_a.rules import step as a
from rules_b.rules import step as b
for label, step in (("a", a), ("b", b)):
    run = specialise(loop_file.loop, label, step=step)
    print(run(10), sum(run.stats.cache_hits.values()), sum(run.stats.cache_misses.values()))
"""


def _write(folder, bonus_a, bonus_b):
    for name, bonus in (("a", bonus_a), ("b", bonus_b)):
        package = folder / f"rules_{name}"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "rules.py").write_text(textwrap.dedent(RULES.format(bonus=bonus)))
    (folder / "loop_file.py").write_text(LOOP)
    (folder / "main.py").write_text(MAIN)


def _run(folder):
    command = [sys.executable, str(folder / "main.py"), str(folder)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [tuple(map(int, line.split())) for line in lines]


def test_one_loop_serves_two_rules_and_a_second_process_compiles_nothing(tmp_path):
    _write(tmp_path, 1, 100)

    assert _run(tmp_path) == [(55, 0, 1), (1045, 0, 1)]
    assert _run(tmp_path) == [(55, 1, 0), (1045, 1, 0)]


def test_a_changed_rule_is_compiled_anew_although_the_loop_did_not_change(tmp_path):
    _write(tmp_path, 1, 100)
    _run(tmp_path)

    _write(tmp_path, 2, 100)

    assert _run(tmp_path) == [(65, 0, 1), (1045, 1, 0)]
