"""The folder of an export: never one that holds something, and there whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from buffers.location import named_errors
from harness_mdp.errors import InputError

__all__ = ["new_folder"]


@contextmanager
def new_folder(out: Path, *, buffer: str) -> Generator[Path]:
    """A folder to write into, which becomes `out` when the block ends, and is gone when it fails.

    Args:
        out: not there yet, or an empty folder.
        buffer: path or URI that `out` must not lie in: vacuum deletes what the table's log does not name.

    Raises:
        InputError: `out` holds something, lies in the buffer, or cannot be written.
    """
    if not out.name or not str(out).isprintable():
        raise InputError(f"out is {str(out)!r}", expected="the name of a new folder")
    with named_errors(out):
        if out.is_symlink() or (out.exists() and not (out.is_dir() and not any(out.iterdir()))):
            raise InputError(
                "exists already, and an export overwrites nothing",
                file=out,
                expected="a path where nothing is",
                remedy="Choose another path, or remove what is there",
            )
        if "://" not in buffer and out.resolve().is_relative_to(Path(buffer).resolve()):
            raise InputError("lies in the buffer's own folder", file=out, expected="a path outside of it")
        draft = out.with_name(f".{out.name}.{os.getpid()}")
        shutil.rmtree(draft, ignore_errors=True)  # left by a process that was killed
        draft.mkdir(parents=True)
        try:
            yield draft
            draft.replace(out)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
