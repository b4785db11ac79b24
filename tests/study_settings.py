"""Settings that do not work, each in its own way, for `setting=custom setting.name=tests.study_settings:CLASS`."""

from __future__ import annotations

import os
from pathlib import Path

from harness_mdp.settings.planning.setting import Planning
from harness_mdp.settings.tasks import TaskStore


class Broken(Planning):
    """Cannot make its tasks."""

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        raise ZeroDivisionError("tasks over nothing")


class Stopped(Planning):
    """Is stopped by its user while it makes its tasks, unless the file that `STUDY_GOES_ON` names is there."""

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        if not Path(os.environ["STUDY_GOES_ON"]).exists():
            raise KeyboardInterrupt
        return super().tasks(seed=seed, n=n, path=path)
