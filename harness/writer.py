"""Writes the lines of a record, each on disk before the next one begins to be written."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from pydantic import BaseModel

from agentgym.errors import AgentGymError


class RecordError(AgentGymError):
    """A run folder or a line in it that cannot be read, written or gone on with."""


class Writer:
    """Appends episodes to a file that no other process writes; safe to call from many threads."""

    def __init__(self, path: Path) -> None:
        """Open the file, cut off a torn last line, and lock it.

        Raises:
            RecordError: It cannot be opened, or another process writes to it.
        """
        self._path = path
        self._guard = Lock()
        try:
            self._file: BinaryIO = path.open("ab", buffering=0)
        except OSError as fault:
            raise RecordError(f"Cannot write {path}: {fault.strerror}.") from fault
        try:
            _lock(self._file, path)
            self._size = _cut_torn_line(path)
        except BaseException:
            self._file.close()
            raise

    def append(self, episode: BaseModel) -> None:
        """Write one line and return when it is on disk.

        Raises:
            RecordError: The disk is full or gone; what was written before stays readable.
        """
        line = episode.model_dump_json().encode() + b"\n"
        with self._guard:
            try:
                _write_all(self._file, line)
                os.fsync(self._file.fileno())
            except OSError as fault:
                with suppress(OSError):
                    self._file.truncate(self._size)
                raise RecordError(
                    f"Cannot write {self._path}: {fault.strerror}; the episodes before are kept. "
                    "Make room and give the same command again."
                ) from fault
            self._size += len(line)

    def close(self) -> None:
        """Close the file, which frees the lock."""
        self._file.close()

    def __enter__(self) -> Writer:
        """The writer itself."""
        return self

    def __exit__(self, *fault: object) -> None:
        """Close."""
        self.close()


def _write_all(file: BinaryIO, line: bytes) -> None:
    # A raw file may take only part of what it is given, for example when the disk fills up.
    rest = memoryview(line)
    while rest:
        rest = rest[file.write(rest) :]


def _cut_torn_line(path: Path) -> int:
    """Cut what follows the last line break; the size that is left."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            start = max(0, keep - 65536)
            file.seek(start)
            found = file.read(keep - start).rfind(b"\n")
            if found >= 0:
                keep = start + found + 1
                break
            keep = start
        file.truncate(keep)
        return keep


def _lock(file: BinaryIO, path: Path) -> None:
    """Hold the file until it is closed or the process dies; Windows goes without."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as fault:
        raise RecordError(
            f"Another process is writing {path}; wait for it, or give another folder with --out."
        ) from fault
    except OSError:
        # Some network file systems have no locks; the run goes on as on Windows.
        return
