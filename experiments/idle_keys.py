"""Keys that were given and that nothing reads: refused, lest someone believes that they did something."""

from __future__ import annotations

from collections.abc import Iterable

from harness_mdp.errors import ConfigError

__all__ = ["refuse_idle"]


def refuse_idle(given: object, untouched: object, idle: Iterable[str], key: str, why: str) -> None:
    """Refuse the first of the `idle` keys that differs between a configuration and its untouched twin.

    Args:
        given: a configuration.
        untouched: the same with every key as it is by default.
        idle: names of keys that nothing reads.
        key: where the configuration stands on the command line.
        why: what does not read them, as `with returns=quality`.

    Raises:
        ConfigError: names the key.
    """
    for name in idle:
        if getattr(given, name) != getattr(untouched, name):
            raise ConfigError(f"{key}.{name} was given and changes nothing {why}; leave it out")
