"""Who may import whom, how long functions and files may be; each rule is also shown to bite."""

from __future__ import annotations

import ast
import graphlib
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "agentgym": {"agentgym", "numpy", "numba", "gymnasium"},
    "agentgym.multi": {"agentgym", "numpy", "numba", "gymnasium", "pettingzoo"},
}
"""What a package and all below it may import besides the standard library; the longest fits."""
NEVER = {"harness": {"torch", "baselines", "leaderboard"}}
DRAWERS = {"common", "helper", "helpers", "misc", "util", "utils"}
BODY, MEDIAN_BODY, FILE = 40, 8, 400


class Module(NamedTuple):
    """A source file: its import path, whether it is a package's `__init__`, text and tree."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module


class Import(NamedTuple):
    """`importer` needs `imported`, both import paths."""

    importer: str
    imported: str


def modules(root: Path, *packages: str) -> dict[str, Module]:
    """Every module of the packages below `root`, by import path."""
    found: dict[str, Module] = {}
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            text = file.read_text(encoding="utf-8")
            found[name] = Module(name, is_package, text, ast.parse(text, str(file)))
    return found


def imports(known: dict[str, Module]) -> Iterator[Import]:
    """Every import, those inside functions too; of a name in a package, the module if it is one."""
    for module in known.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                yield from (Import(module.name, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module.name}:{node.lineno} has a relative import"
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    yield Import(module.name, full if full in known else str(node.module))


def strangers(known: dict[str, Module]) -> list[Import]:
    """Imports that the layer of the importer does not allow."""
    return [i for i in imports(known) if not _allowed(i)]


def _allowed(wanted: Import) -> bool:
    top = wanted.imported.partition(".")[0]
    fitting = [p for p in MAY_IMPORT if f"{wanted.importer}.".startswith(f"{p}.")]
    if not fitting:
        return top not in NEVER.get(wanted.importer.partition(".")[0], ())
    return top in MAY_IMPORT[max(fitting, key=len)] or top in sys.stdlib_module_names


def cycle(known: dict[str, Module]) -> list[str]:
    """Modules or sub-packages of one package that import each other round in a circle, or []."""
    needs: dict[str, dict[str, set[str]]] = {}
    for importer, imported in imports(known):
        if imported in known and imported != importer:
            package, one, other = _siblings(known[importer], known[imported])
            needs.setdefault(package, {}).setdefault(one, set()).add(other)
    for graph in needs.values():
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as fault:
            return fault.args[1]
    return []


def _siblings(importer: Module, imported: Module) -> tuple[str, str, str]:
    """The lowest package that holds both, and its two children that they are, or lie in."""
    one, other = _path(importer), _path(imported)
    shared = 0
    while one[shared] == other[shared]:
        shared += 1
    return ".".join(one[:shared]), ".".join(one[: shared + 1]), ".".join(other[: shared + 1])


def _path(module: Module) -> list[str]:
    return [*module.name.split("."), *(["__init__"] if module.is_package else [])]


def drawers(known: dict[str, Module]) -> list[str]:
    """Modules whose name says nothing of what is inside."""
    return [name for name in known if name.rpartition(".")[2] in DRAWERS]


def bodies(known: dict[str, Module]) -> dict[str, int]:
    """Lines of each function's body, from the first statement after the docstring to the end."""
    return {
        f"{module.name}:{node.lineno} {node.name}": _body(node)
        for module in known.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - statements[0].lineno + 1 if statements else 0


@pytest.fixture(scope="module")
def ours() -> dict[str, Module]:
    return modules(ROOT, "agentgym", "harness")


def test_imports_point_one_way(ours: dict[str, Module]) -> None:
    assert strangers(ours) == []


def test_nothing_imports_in_a_circle(ours: dict[str, Module]) -> None:
    assert cycle(ours) == []


def test_no_module_is_a_drawer(ours: dict[str, Module]) -> None:
    assert drawers(ours) == []


def test_functions_are_short(ours: dict[str, Module]) -> None:
    assert {where: lines for where, lines in bodies(ours).items() if lines > BODY} == {}


@pytest.mark.parametrize("package", ["agentgym", "harness"])
def test_most_functions_are_very_short(package: str) -> None:
    assert statistics.median(bodies(modules(ROOT, package)).values()) <= MEDIAN_BODY


def test_files_are_short() -> None:
    everything = modules(ROOT, "agentgym", "harness", "tests", "benchmarks", "docs")
    lines = {module.name: module.text.count("\n") for module in everything.values()}
    assert {name: count for name, count in lines.items() if count > FILE} == {}


def _made(root: Path, files: dict[str, str]) -> dict[str, Module]:
    """The modules of files given as path without suffix, and text."""
    for path, text in files.items():
        file = root / f"{path}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return modules(root, *sorted({path.partition("/")[0] for path in files}))


def test_the_layer_rule_bites(tmp_path: Path) -> None:
    files = {
        "agentgym/env": "import json\nimport numpy as np\nfrom harness import eval",
        "agentgym/oracle": "def solve():\n    import torch.nn",
        "agentgym/spaces": "import pettingzoo",
        "agentgym/multi/duel": "import pettingzoo",
        "harness/eval": "import agentgym, openai\nfrom torch import nn",
    }

    assert sorted(strangers(_made(tmp_path, files))) == [
        Import("agentgym.env", "harness.eval"),
        Import("agentgym.oracle", "torch.nn"),
        Import("agentgym.spaces", "pettingzoo"),
        Import("harness.eval", "torch"),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"p/a": "import p.b", "p/b": "def later():\n    from p.a import x"},
        {"p/a/x": "import p.b.x", "p/b/x": "", "p/b/y": "from p.a import y", "p/a/y": ""},
        {"p/a/__init__": "from p.a import x", "p/a/x": "from p.a import name"},
    ],
)
def test_the_circle_rule_bites(tmp_path: Path, files: dict[str, str]) -> None:
    assert len(cycle(_made(tmp_path, files))) > 1


def test_a_line_is_no_circle(tmp_path: Path) -> None:
    files = {"p/a": "import p.b", "p/b": "from p import c", "p/c": "import p.x.y", "p/x/y": ""}

    assert cycle(_made(tmp_path, files)) == []


def test_the_size_rules_bite(tmp_path: Path) -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n    x = 1\n    y = 2\n\n    return x + y\n'
    made = _made(tmp_path, {"p/utils": text})

    assert bodies(made) == {"p.utils:1 f": 4}
    assert drawers(made) == ["p.utils"]
