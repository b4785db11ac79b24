"""Where a buffer lies: what a path has to be, and errors of the file system in words that say what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from harness_mdp.errors import InputError

__all__ = ["Location", "first_line", "named_errors", "require_path", "require_writable"]

# Delta turns a path into a URL and back, and these do not survive it: it panics, reads another folder than it wrote,
# or takes `%20` for a space. It resolves symbolic links before. Everything else works, spaces and `#` too.
_NOT_IN_A_URL = re.compile(r"[\[\]^|\\\x00-\x1f\x7f\ud800-\udfff]|%[0-9A-Fa-f]{2}")


@dataclass(frozen=True)
class Location:
    """Where a buffer is: a local folder or an object-store URI, with the options of the store."""

    uri: str
    options: dict[str, str] | None = None

    @property
    def local(self) -> Path | None:
        """The folder; None for a URI."""
        return None if "://" in self.uri else Path(self.uri)


def require_path(path: str | Path) -> None:
    """Refuses a local path that Delta could not write and read again.

    Raises:
        InputError: it is empty, or has such a character.
    """
    if not str(path).strip():
        raise InputError("the path of the buffer is empty", expected="a folder")
    try:
        whole = os.path.realpath(path)  # as Delta does, so the name behind a symbolic link is the one that counts
    except ValueError:  # a NUL or an unpaired surrogate, which no system call takes
        whole = str(path)
    if found := _NOT_IN_A_URL.search(whole):
        below = "" if found[0] in str(path) else f" (it leads to {whole!a})"
        raise InputError(
            f"the path has {found[0]!a}{below}, which the Delta library cannot store a table under",
            file=path if str(path).isprintable() else ascii(str(path)),
            expected="a path without control characters, [ ] ^ | \\, and % before two hexadecimal digits",
            remedy="Rename that folder, or choose another one",
        )


@contextmanager
def named_errors(path: str | Path, doing: str = "be written") -> Generator[None]:
    """Turns an `OSError` into an `InputError`: "`path` cannot `doing`", why, and what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot {doing} ({first_line(error)})", file=path, remedy=_remedy(error)) from error


def _remedy(error: OSError) -> str:
    if isinstance(error, NotADirectoryError | FileExistsError):
        return "A part of the path is a file: choose another path"
    if isinstance(error, FileNotFoundError):
        return "Check the path"
    return "Check its permissions and the space that is left, or choose another folder"


def require_writable(folder: Path) -> None:
    """Opens an unnamed file in `folder`, which is there; permission bits alone do not tell (root, read-only mounts).

    Raises:
        InputError: nothing can be written there.
    """
    with named_errors(folder), TemporaryFile(dir=folder):
        pass


def first_line(error: BaseException) -> str:
    """The message of a foreign error, in one line of at most 200 characters."""
    text = str(error).strip() or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if isinstance(error.filename, str) else error.strerror
    return text.splitlines()[0][:200]
