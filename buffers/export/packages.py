"""Packages that only an export needs, with the command that brings them."""

from __future__ import annotations

from harness_mdp.errors import ConfigError

__all__ = ["ATIF", "MINARI", "missing_package"]

MINARI = "minari>=0.5.4,<0.6"
ATIF = "atif>=1.8,<2"


def missing_package(name: str, requirement: str, error: ImportError) -> ConfigError:
    """What to say when `name` cannot be imported."""
    return ConfigError(
        f"format={name} needs the package {name}, which cannot be imported here ({error}). Install it: "
        f'python -m pip install "{requirement}"'
    )
