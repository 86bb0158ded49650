"""What the documents say, run or looked up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def _blocks(text: str, language: str) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [content for kind, content in blocks if kind == language]


def test_the_readme_fits_on_a_screen() -> None:
    assert README.count("\n") <= 70


def test_ci_gives_the_readme_s_test_command_to_the_letter() -> None:
    _, tests = _blocks(README, "bash")

    assert "pytest" in tests
    assert f'stage "{tests.strip()}"\n' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_examples_run(page: str) -> None:
    scope: dict[str, object] = {}
    blocks = _blocks((ROOT / page).read_text(encoding="utf-8"), "python")

    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), scope)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [t.partition("#")[0] for t in targets if not t.startswith(("http:", "https:", "#"))]

    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_tree_names_what_is_there() -> None:
    tree = next(block for block in _blocks(README, "") if "registration.py" in block)
    folder, missing = "", list[str]()
    for line in tree.splitlines():
        top = re.match(r"(\w+)/", line)
        folder = top[1] if top else folder
        names = re.findall(r"[\w/]+\.py\b", line)
        missing += [name for name in names if not (ROOT / folder / name).exists()]
        missing += [top[1]] if top and not (ROOT / top[1]).is_dir() else []

    assert missing == []
