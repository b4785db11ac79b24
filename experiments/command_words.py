"""A configuration as the words of a command line: what a person may copy, in a form that shell and Hydra both read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from experiments.config import (
    ControllerPolicyConfig,
    EpsilonPolicyConfig,
    PolicyConfig,
    PortfolioPolicyConfig,
    ScriptPolicyConfig,
    SettingConfig,
)
from harness_mdp.hashing import Json

__all__ = ["command_line", "executor_words", "group_options", "hydra_value", "policy_words", "setting_words"]

_SPECIAL = r"\()[]{}:=,"


def command_line(module: str, words: list[str]) -> str:
    """`python -m MODULE WORDS`, each word quoted for the shell where it has to be."""
    return shlex.join(["python", "-m", module, *words])


def hydra_value(value: Json) -> str:
    """`value` as Hydra's override grammar writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Mapping():
            return "{" + ",".join(f"{_plain(str(key))}:{hydra_value(each)}" for key, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(hydra_value, value)) + "]"
        case str():
            return value if _is_plain(value) else _quoted(value)
        case _:
            return str(value)


def setting_words(values: Mapping[str, Json]) -> list[str]:
    """`setting=NAME` and what else is not as it is by default."""
    name = str(values["name"])
    known = name in group_options("setting")
    words = [f"setting={name}"] if known else ["setting=custom", f"setting.name={hydra_value(name)}"]
    return words + _changed("setting", values, SettingConfig, leave=("name",))


def executor_words(values: Mapping[str, Json], schema: type) -> list[str]:
    """`executor=KIND` and what else is not as it is by default."""
    return [f"executor={values['kind']}", *_changed("executor", values, schema, leave=("kind",))]


def policy_words(config: PolicyConfig) -> list[str]:
    """`policy=KIND` with its keys."""
    match config:
        case PortfolioPolicyConfig():
            words = ["policy=portfolio", f"policy.weights={hydra_value(config.weights)}"]
            return words + _changed("policy", vars(config), PortfolioPolicyConfig, leave=("kind", "weights"))
        case EpsilonPolicyConfig():
            words = ["policy=epsilon", f"policy.inner={hydra_value(config.inner)}", f"policy.epsilon={config.epsilon}"]
            return words + _changed("policy", vars(config), EpsilonPolicyConfig, leave=("kind", "inner", "epsilon"))
        case ControllerPolicyConfig():
            words = ["policy=controller", f"policy.path={hydra_value(config.path)}"]
            return words + _changed("policy", vars(config), ControllerPolicyConfig, leave=("kind", "path"))
        case ScriptPolicyConfig():
            return [f"policy={config.name}"]
        case _:
            raise TypeError(f"no words for a policy of kind {config.kind!r}")


def group_options(group: str) -> list[str]:
    """Names that `GROUP=NAME` chooses from: the files of the group, without the schemas."""
    folder = resources.files("experiments.conf").joinpath(group)
    if not folder.is_dir():
        return []
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def _changed(group: str, values: Mapping[str, Json], schema: type, leave: tuple[str, ...]) -> list[str]:
    default: Any = schema()
    return [
        f"{group}.{item.name}={hydra_value(values[item.name])}"
        for item in fields(schema)
        if item.name not in leave and item.name in values and values[item.name] != getattr(default, item.name)
    ]


def _is_plain(text: str) -> bool:
    """Read as this very text without quotes: no character of the grammar, and no number, boolean or null."""
    if not text or text.lower() in ("null", "true", "false", "nan", "inf", "none") or text != text.strip():
        return False
    if any(char in _SPECIAL or char.isspace() or char in "'\"$#&;!~" for char in text):
        return False
    try:
        float(text.replace("_", ""))
    except ValueError:
        return True
    return False


def _quoted(text: str) -> str:
    """A backslash is itself there, except before a quote."""
    inner = re.sub(r"(\\*)'", r"\1\1\\'", text)
    return "'" + re.sub(r"(\\+)$", r"\1\1", inner) + "'"


def _plain(key: str) -> str:
    """A key of a mapping: Hydra knows no quotes there, only backslashes."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in key)
