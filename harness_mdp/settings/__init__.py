"""The settings, by name. `open_setting("coding")` imports only that setting's module."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from harness_mdp.errors import ConfigError
from harness_mdp.settings.protocol import Setting

__all__ = ["PROVING_GROUNDS", "SETTINGS", "open_setting"]

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

PROVING_GROUNDS: dict[str, str] = {"tabular": "harness_mdp.settings.tabular:Tabular"}
"""Settings with known transitions, on which learners and estimators are proved. They open like any other, but say
nothing about agents: so they are in no table of results and not held to what real tools owe."""

_OURS = {**SETTINGS, **PROVING_GROUNDS}


ENTRY_POINTS = "harness_mdp.settings"
"""Group under which another package registers settings of its own."""


_OPENED: dict[str, type[Setting]] = {}
"""Settings opened as `MODULE:CLASS` in this process, by their own name: what a buffer's rows say."""


def open_setting(name: str) -> Setting:
    """The setting `name`: one of ours, one that an installed package registers, or `MODULE:CLASS`.

    Once opened as `MODULE:CLASS`, a setting is known by its own name for the rest of the process.

    Raises:
        ConfigError: there is no such setting, or it cannot be imported.
    """
    if name in _OPENED:
        return _OPENED[name]()
    registered = {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}
    place = name if ":" in name else _OURS.get(name) or registered.get(name)
    if place is None:
        known = ", ".join(sorted({*_OURS, *registered}))
        raise ConfigError(f"unknown setting {name!r}; expected one of {known}, or MODULE:CLASS")
    module, _, cls = place.partition(":")
    try:
        made = cast("type[Setting]", getattr(import_module(module), cls))
        setting = made()
        if name == place and setting.name not in _OURS:
            _OPENED[setting.name] = made
        return setting
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ConfigError(
            f"setting {name!r} cannot be opened ({problem}); expected MODULE:CLASS that Python can import from here"
        ) from problem
