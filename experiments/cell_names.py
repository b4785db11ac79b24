"""What a cell and its buffer are called: a readable word or two, and a hash of everything that can change a figure.

Left out is what only says where, how fast and how dearly: paths, device, concurrency, limits, an endpoint's address,
key, retries and rate, and which tables are shown at the end. So the same work elsewhere has the same name.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from experiments.config import ExecutorConfig
from experiments.study_config import CellConfig
from harness_mdp.errors import HarnessError
from harness_mdp.hashing import Json, digest
from harness_mdp.settings import open_setting

__all__ = ["buffer_name", "cell_name", "cell_values"]

_HASH_DIGITS = 12
_OPERATION = ("base_url", "api_key_env", "requests_per_minute", "max_retries", "timeout", "cache")
"""Keys of an executor that do not change what it answers."""


def cell_values(config: CellConfig) -> dict[str, Json]:
    """The part of the configuration that decides a cell's figures, as JSON."""
    return {
        **_collected(config, config.executor),
        "method": asdict(config.method),
        "returns": asdict(config.returns),
        "guard": [config.guard, config.guard_margin],
        "train": asdict(config.train),
        "evaluate": asdict(config.evaluate),
        "evaluate_on": None if config.evaluate_on is None else _executor(config.evaluate_on),
    }


def cell_name(config: CellConfig) -> str:
    """`coding-aw-0-…`: setting, method, training seed and a hash of `cell_values`."""
    words = (config.setting.name, config.method.method, str(config.train.seed))
    return "-".join([*map(_word, words), digest(cell_values(config), _HASH_DIGITS)])


def buffer_name(config: CellConfig, executor: ExecutorConfig) -> str:
    """`coding-…`: the setting and a hash of what is collected with `executor`, which seeds and methods share."""
    return f"{_word(config.setting.name)}-{digest(_collected(config, executor), _HASH_DIGITS)}"


def _collected(config: CellConfig, executor: ExecutorConfig) -> dict[str, Json]:
    return {
        "setting": _setting(config),
        "executor": _executor(executor),
        "policy": asdict(config.policy),
        "collect": asdict(config.collect),
        "split_by": config.split_by,
    }


def _setting(config: CellConfig) -> dict[str, Json]:
    """With its version, so that episodes of an older one are not taken for finished; files count by their name."""
    path = config.setting.path
    try:
        version = open_setting(config.setting.name).version
    except HarnessError:  # the cell itself will say so
        version = None
    return {**asdict(config.setting), "path": Path(path).name if path else None, "version": version}


def _executor(config: ExecutorConfig) -> dict[str, Json]:
    return {key: value for key, value in asdict(config).items() if key not in _OPERATION}


def _word(text: str) -> str:
    """`text` as a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._") or "_"
