"""The tasks of a configured setting, split, and cut to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.config import SettingConfig
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import digest
from harness_mdp.mdp import Budgets
from harness_mdp.settings import open_setting
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.tasks import Task, TaskStore, split_tasks

__all__ = ["TaskSet", "load_tasks"]


@dataclass(frozen=True)
class TaskSet:
    """A setting with its tasks, horizon and budgets as configured."""

    setting: Setting
    store: TaskStore
    """All tasks, their splits set."""
    limit: int | None
    horizon: int
    budgets: Budgets

    def select(self, split: str) -> tuple[Task, ...]:
        """Tasks of `split`, at most `limit` of train and of eval each, in store order.

        Raises:
            ConfigError: the split is unknown or empty.
        """
        tasks = self.store.select(split)
        if self.limit is not None:
            keep = {task.id for name in ("train", "eval") for task in _first(self.store.select(name), self.limit)}
            tasks = tuple(task for task in tasks if task.id in keep)
        if not tasks:
            raise ConfigError(f"setting {self.setting.name}: split {split!r} has no task")
        return tasks


def _first(tasks: Sequence[Task], limit: int) -> list[Task]:
    return sorted(tasks, key=lambda task: digest(["limit", task.hash]))[:limit]


def _kept(tasks: Sequence[Task], config: SettingConfig) -> tuple[Task, ...]:
    """The tasks of the configured difficulties and templates."""
    kept = tuple(tasks)
    for key, wanted, there in (
        ("difficulties", config.difficulties, {task.difficulty for task in tasks}),
        ("templates", config.templates, {task.template for task in tasks}),
    ):
        if wanted is None:
            continue
        if unknown := sorted(set(wanted) - there):
            raise ConfigError(f"setting.{key} holds {unknown}; these tasks have {sorted(there)}")
        kept = tuple(task for task in kept if getattr(task, _FIELDS[key]) in wanted)
    if not kept:
        raise ConfigError("setting.difficulties and setting.templates together leave no task")
    return kept


_FIELDS = {"difficulties": "difficulty", "templates": "template"}


def load_tasks(config: SettingConfig, split_by: str = "task") -> TaskSet:
    """Open the setting and generate or read its tasks.

    Raises:
        ConfigError: unknown setting, a path for a setting that reads none, or a number that cannot be.
        InputError: a missing or damaged benchmark file.
    """
    for name in ("tasks", "limit", "horizon", "tokens"):
        value: int | None = getattr(config, name)
        if value is not None and value < 1:
            raise ConfigError(f"setting.{name} is {value}; expected at least 1")
    if config.usd is not None and config.usd <= 0:
        raise ConfigError(f"setting.usd is {config.usd}; expected more than 0, or null for no limit")
    if config.path is not None and config.tasks != SettingConfig().tasks:
        raise ConfigError(
            f"setting.tasks={config.tasks} says how many tasks to generate, and setting.path reads them from files; "
            "setting.limit uses only so many of each split"
        )
    setting = open_setting(config.name)
    path = Path(config.path) if config.path is not None else None
    store = setting.tasks(seed=config.seed, n=config.tasks, path=path)
    own = setting.budgets
    kept = _kept(store.tasks, config)
    return TaskSet(
        setting=setting,
        store=TaskStore(
            tasks=split_tasks(kept, by=split_by),
            sealed={task.id: store.sealed[task.id] for task in kept},
            answers=store.answers,
            licence=store.licence,
        ),
        limit=config.limit,
        horizon=config.horizon or setting.horizon,
        budgets=Budgets(config.tokens or own.tokens, config.usd if config.usd is not None else own.usd),
    )
