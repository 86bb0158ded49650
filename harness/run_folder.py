"""The folder of a run: `run.json`, which says how to repeat it, and `episodes.jsonl`.

The same command goes on where the folder stands; another one is refused, with the difference.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

import agentgym
from harness import prompts, suites
from harness.models.service import public
from harness.record import EPISODES, SCHEMA, Data, RecordError, Writer, check_schema
from harness.suites import Suite

RUN = "run.json"
_UNFINISHED = "run.json.new"


class Configuration(Data, frozen=True):
    """What must be equal for two sessions to belong to one run.

    Attributes:
        agentgym: Its version.
        prompt_hashes: Of everything that shapes the prompts, one per row of the suite.
        model: As given to `--model`.
        model_settings: Weights, sampling and the like, as the model reports them.
        suite: Name, description and rows, with every change of the command line worked in.
    """

    agentgym: str
    prompt_hashes: tuple[str, ...]
    model: str
    model_settings: dict[str, Any]
    suite: dict[str, Any]


class Session(Data, frozen=True):
    """One start of the program that played into the folder.

    Attributes:
        started: UTC, ISO 8601.
        arguments: Of the command line; addresses without user, password and query.
        python: Version and implementation.
        platform: Operating system and machine.
        cpu: Model of the processor, as the system calls it.
        cores: How many of them this process may use.
        memory_gib: Of the machine; None where the system does not say.
        git_commit: Of agentgym's own checkout, "-dirty" appended if changed; "" if installed.
        packages: Version of every installed distribution.
        spent: Cost of the run by the end of this session, all sessions together; 0 where no price
            is known, or the session was killed.
    """

    started: str
    arguments: tuple[str, ...]
    python: str
    platform: str
    cpu: str
    cores: int
    memory_gib: float | None
    git_commit: str
    packages: dict[str, str]
    spent: float = 0.0


class RunHeader(Data, frozen=True):
    """The content of `run.json`.

    Attributes:
        schema_version: `SCHEMA` of the writer; "schema" in the file.
        configuration: What was played, with what.
        sessions: Every start, the first one first.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    configuration: Configuration
    sessions: tuple[Session, ...]


def configuration_of(suite: Suite, model: str, settings: Mapping[str, Any]) -> Configuration:
    """The configuration of a suite that a model plays.

    Args:
        suite: As it is played.
        model: Its name.
        settings: Of the model, as it reports them.
    """
    return Configuration(
        agentgym=agentgym.__version__,
        prompt_hashes=tuple(prompts.prompt_hash(row.settings.style) for row in suite.rows),
        model=model,
        model_settings=dict(settings),
        suite=suites.plain(suite),
    )


def enter(folder: Path, configuration: Configuration, arguments: Sequence[str]) -> Path:
    """Begin a run in the folder, or go on with the one that is there.

    Args:
        folder: Made if it is missing.
        configuration: Of this start.
        arguments: Of the command line, for the record.

    Returns:
        The path of the episodes' file.

    Raises:
        RecordError: The folder holds another run or something else, or cannot be written.
    """
    _header_to_go_on_with(folder, configuration)  # Nothing is put into a folder of others.
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise RecordError(f"Cannot write into {folder}: {fault.strerror or fault}.") from fault
    with Writer(folder / EPISODES):  # Who cannot have the record leaves the header alone too.
        header = _header_to_go_on_with(folder, configuration)
        sessions = (*(header.sessions if header else ()), session(arguments))
        _write(folder, RunHeader(configuration=configuration, sessions=sessions))
    return folder / EPISODES


def note_spent(folder: Path, spent: float) -> None:
    """Write down what the run has cost by the end of this session.

    Args:
        folder: That was entered.
        spent: By all sessions; the record lacks what episodes cost that were live at the end.

    Raises:
        RecordError: The header cannot be read or written.
    """
    header = read_header(folder)
    last = header.sessions[-1].model_copy(update={"spent": spent})
    _write(folder, header.model_copy(update={"sessions": (*header.sessions[:-1], last)}))


def _write(folder: Path, header: RunHeader) -> None:
    try:
        _write_whole(folder / RUN, header.model_dump_json(indent=2) + "\n")
    except OSError as fault:
        raise RecordError(f"Cannot write into {folder}: {fault.strerror or fault}.") from fault


def read_header(folder: Path) -> RunHeader:
    """The header of a run.

    Raises:
        RecordError: There is none, or it cannot be read.
    """
    path = folder / RUN
    try:
        found = json.loads(path.read_bytes())
    except OSError as fault:
        raise RecordError(f"Cannot read {path}: {fault.strerror}.") from fault
    except ValueError as fault:
        raise RecordError(f"{path} is not JSON ({fault}).") from fault
    check_schema(found, str(path))
    try:
        return RunHeader.model_validate(found)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RecordError(f"{path} is no run header: {where}: {first['msg']}.") from fault


def _header_to_go_on_with(folder: Path, configuration: Configuration) -> RunHeader | None:
    if folder.exists() and not folder.is_dir():
        raise RecordError(f"{folder} is a file; give a folder with --out.")
    held = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    begun = {_UNFINISHED}  # All that a start leaves that was killed before its header was there.
    if EPISODES in held and not (folder / EPISODES).stat().st_size:
        begun.add(EPISODES)
    if not set(held) - begun:
        return None
    if RUN not in held:
        raise RecordError(
            f"{folder} holds no {RUN} but {', '.join(held[:3])}; give an empty or new folder with "
            "--out."
        )
    header = read_header(folder)
    changes = list(differences(_plain(header.configuration), _plain(configuration)))
    if changes:
        shown = "; ".join(changes[:5]) + ("; and more" if len(changes) > 5 else "")
        raise RecordError(
            f"{folder} holds another run: {shown}. Give the command of that run, or another folder "
            "with --out."
        )
    return header


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ, one phrase each: "suite.rows.0.instances is 3 there, 5 now"."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys((*before, *now)):
            yield from differences(before.get(name), now.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from differences(old, new, f"{path}.{index}")
    elif before != now:
        yield f"{path} is {_short(before)} there, {_short(now)} now"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _plain(configuration: Configuration) -> Any:
    return json.loads(configuration.model_dump_json())


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the new one, never half of it."""
    new = path.with_name(_UNFINISHED)
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def session(arguments: Sequence[str]) -> Session:
    """This start, on this machine."""
    return Session(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        arguments=tuple(map(public, arguments)),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=platform.platform(),
        cpu=_cpu(),
        cores=_cores(),
        memory_gib=_memory_gib(),
        git_commit=_git_commit(),
        packages=_packages(),
    )


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_gib() -> float | None:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(total / 2**30, 1)


def _packages() -> dict[str, str]:
    found = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _git_commit() -> str:
    here = Path(__file__).resolve()
    # An installed copy may lie inside another project's checkout, whose commit says nothing.
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is None:
        return ""
    commit = _git(here.parent, "rev-parse", "HEAD") or ""
    return f"{commit}-dirty" if _git(here.parent, "status", "--porcelain", "-uno") else commit


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers; None where there is no git, no checkout, or the answer is no."""
    command = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
