"""One process at a time works on a buffer or a cell of a study; a lock ends with the process that holds it."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]


@contextmanager
def locked(file: Path, waiting: Callable[[], None] = lambda: None) -> Generator[None, None, None]:
    """Hold the lock of `file` for the length of a `with`; `waiting` is called once if another process has it.

    The file is made and stays: what locks is the kernel, so that a killed process leaves no lock behind.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
