"""The one hierarchy of errors a user can meet.

A message says what was found, where (file, row, field), what was expected, and what to do.
`exit_code` is what a command returns: 2 when the user's input or configuration is at fault, 1 otherwise.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = ["ConfigError", "HarnessError", "InputError", "SchemaMismatch", "UnusableBuffer"]


class HarnessError(Exception):
    """Anything this package refuses to do; the message is meant for the user."""

    exit_code: ClassVar[int] = 1


class ConfigError(HarnessError):
    """A setting, key or combination of keys that cannot work."""

    exit_code: ClassVar[int] = 2


class InputError(HarnessError):
    """A file, row or field that is missing or malformed."""

    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        found: str,
        *,
        file: object | None = None,
        row: int | None = None,
        field: str | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        where = ", ".join(
            part
            for part in (
                str(file) if file is not None else "",
                f"line {row}" if row is not None else "",
                f"field {field!r}" if field is not None else "",
            )
            if part
        )
        message = f"{where}: {found}" if where else found
        if expected is not None:
            message += f"; expected {expected}"
        if remedy is not None:
            message += f". {remedy}"
        super().__init__(message)


class SchemaMismatch(HarnessError):
    """A controller, buffer or row made for other features, actions or settings."""

    exit_code: ClassVar[int] = 2


class UnusableBuffer(HarnessError):
    """A buffer that cannot serve the request: empty, mixed, or without the contrast a learner needs."""

    exit_code: ClassVar[int] = 2
