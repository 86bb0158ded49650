"""What an installed agentgym-suite promises: its version, its marks, its ids without an import."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pytest

import agentgym
from agentgym.registration import ROWS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HOOK = f"""
import site, sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__module__ != "agentgym_autoload"]
sys.modules.pop("agentgym_autoload", None)
sys.path.insert(0, {str(ROOT)!r})
site.addsitedir({str(ROOT)!r})
"""
"""Reads the checkout's `agentgym_autoload.pth` as Python does at its start, and no other copy."""
HEAVY = ("numba", "pettingzoo", "torch", "openai", "pydantic", "rich", "scipy", "harness")


def _python(*lines: str, folder: Path) -> str:
    """What a new process prints that begins outside the checkout."""
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_version_is_that_of_the_project() -> None:
    assert agentgym.__version__ == PROJECT["version"], "Install the checkout: pip install -e ."


@pytest.mark.parametrize("package", ["agentgym", "harness"])
def test_the_package_says_that_it_is_typed(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()


def test_the_entry_point_registers() -> None:
    (point,) = (p for p in entry_points(group="gymnasium.envs") if p.name == "agentgym")

    assert point.load() is agentgym.register_all


def test_the_command_is_there() -> None:
    (command,) = (p for p in entry_points(group="console_scripts") if p.name == "agentgym")

    assert callable(command.load())


def test_importing_gymnasium_alone_registers_every_id(tmp_path: Path) -> None:
    printed = _python(
        HOOK,
        "import gymnasium",
        "print(*(i for i in gymnasium.registry if i.startswith('agentgym/')))",
        folder=tmp_path,
    )

    assert printed.split() == [f"agentgym/{row.id}" for row in ROWS]


def test_looking_for_gymnasium_is_not_importing_it(tmp_path: Path) -> None:
    printed = _python(
        HOOK,
        "import sys, importlib.util",
        "assert importlib.util.find_spec('gymnasium') is not None",
        "print('gymnasium' in sys.modules)",
        "import gymnasium",
        "print(gymnasium.spec('agentgym/Sokoban-v0').id)",
        folder=tmp_path,
    )

    assert printed.splitlines() == ["False", "agentgym/Sokoban-v0"]


@pytest.mark.parametrize("name", ["agentgym", "gymnasium"])
def test_the_import_is_light(name: str, tmp_path: Path) -> None:
    printed = _python(
        HOOK,
        f"import sys, {name}",
        f"print(*(m for m in {HEAVY} if m in sys.modules))",
        folder=tmp_path,
    )

    assert printed == ""


def test_playing_needs_the_core_alone(tmp_path: Path) -> None:
    printed = _python(
        HOOK,
        "import sys, gymnasium",
        "env = gymnasium.make('agentgym/Sokoban-v0')",
        "env.reset(seed=0)",
        "env.step('Up')",
        f"print(*(m for m in {HEAVY} if m in sys.modules))",
        folder=tmp_path,
    )

    # numba itself looks for scipy.
    assert set(printed.split()) <= {"numba", "scipy"}
