"""The settings, by name. `open_setting("coding")` imports only that setting's module."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from harness_mdp.errors import ConfigError
from harness_mdp.settings.protocol import Setting

__all__ = ["SETTINGS", "open_setting"]

SETTINGS: dict[str, str] = {
    "coding": "harness_mdp.settings.coding:Coding",
    "dbbench": "harness_mdp.settings.dbbench:DBBench",
    "knowledge_work": "harness_mdp.settings.knowledge_work:KnowledgeWork",
    "long_memory": "harness_mdp.settings.long_memory:LongMemory",
    "multi_tool": "harness_mdp.settings.multi_tool:MultiTool",
    "planning": "harness_mdp.settings.planning:Planning",
    "research": "harness_mdp.settings.research:Research",
    "tau_retail": "harness_mdp.settings.tau_retail:TauRetail",
}
"""Name -> `module:class`; the class is made without arguments."""


def open_setting(name: str) -> Setting:
    """The setting `name`.

    Raises:
        ConfigError: there is no such setting.
    """
    if name not in SETTINGS:
        raise ConfigError(f"unknown setting {name!r}; expected one of {', '.join(sorted(SETTINGS))}")
    module, _, cls = SETTINGS[name].partition(":")
    return cast("type[Setting]", getattr(import_module(module), cls))()
