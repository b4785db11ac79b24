"""A folder of known files put in place of the one before, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import mkdtemp

from harness_mdp.errors import InputError

__all__ = ["replace_folder"]


def replace_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Makes the folder `target` hold exactly `files` (content by name).

    It is made beside its place and then renamed into it: at any moment `target` is the old folder, the new one or
    nothing, never a mixture. Of an old folder only files of these names are removed.

    Raises:
        OSError: it cannot be written; what was there is still there.
        InputError: it is written, and the folder that it replaced cannot be removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(mkdtemp(prefix=f".{target.name}.new-", dir=target.parent))
    try:
        staged.chmod(0o755)
        for name, content in files.items():
            _write(staged / name, content)
        aside = _put(staged, target)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    if aside is not None:
        _discard(aside, files)


def _write(file: Path, content: bytes) -> None:
    with file.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _put(staged: Path, target: Path) -> Path | None:
    """Renames `staged` to `target`. Returns where the old folder is now; if this fails, that is back in its place."""
    if not target.exists():
        staged.rename(target)
        return None
    aside = Path(mkdtemp(prefix=f".{target.name}.old-", dir=target.parent))
    try:
        target.rename(aside)  # onto an empty folder, which rename replaces
    except BaseException:
        aside.rmdir()
        raise
    try:
        staged.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    return aside


def _discard(aside: Path, names: Iterable[str]) -> None:
    """By name, never as a tree: whatever somebody put there meanwhile stays."""
    try:
        for name in names:
            (aside / name).unlink(missing_ok=True)
        aside.rmdir()
    except OSError as problem:
        raise InputError(
            f"is the folder that was replaced, and cannot be removed ({problem.strerror})",
            file=aside,
            remedy="The new one is in its place and whole; remove the old one yourself",
        ) from problem
