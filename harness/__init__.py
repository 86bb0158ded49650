"""Lets models play agentgym's games, and records, scores and reports what they did."""

from importlib.util import find_spec

from agentgym.errors import MissingExtra

for _package in ("openai", "pydantic", "rich", "scipy", "tyro"):
    if find_spec(_package) is None:
        raise MissingExtra.of("The harness", _package, "harness")
