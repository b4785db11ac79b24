"""Closed sets from the text of a configuration."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from harness_mdp.errors import ConfigError

__all__ = ["member"]

_E = TypeVar("_E", bound=StrEnum)


def member(kind: type[_E], key: str, value: str) -> _E:
    """The member of `kind` whose value is `value`.

    Raises:
        ConfigError: there is none; names `key` and what can be given.
    """
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{key} is {value!r}; expected one of {', '.join(kind)}") from None
