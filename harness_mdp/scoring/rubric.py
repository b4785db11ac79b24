"""Task quality: the sealed terminal rubric, Q = Σ w_c s_c / Σ w_c (DESIGN section 9).

The scorer is the only holder of the sealed parts. Nothing it computes reaches a state, a prompt or a check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness_mdp.hashing import text_hash
from harness_mdp.mdp import EvalStatus
from harness_mdp.settings.protocol import Criterion, Setting, rubric_value
from harness_mdp.settings.tasks import Sealed, Task

__all__ = ["RubricScore", "Scorer"]


@dataclass(frozen=True, slots=True)
class RubricScore:
    """The return of an episode and what it is made of."""

    eval_status: EvalStatus
    value: float
    """Q in [0, 1]; 0 for `invalid`."""
    criteria: tuple[Criterion, ...]


class Scorer:
    """Scores submitted artifacts of one setting; remembers verdicts, since drafts repeat."""

    def __init__(self, setting: Setting, sealed: Mapping[str, Sealed]) -> None:
        """`sealed` is by task id, from the task store."""
        self._setting = setting
        self._sealed = sealed
        self._verdicts: dict[tuple[str, str], RubricScore] = {}

    async def score(self, task: Task, artifact: str | None) -> RubricScore:
        """Quality of what was submitted; nothing, or an empty text, is `invalid` with return 0."""
        if artifact is None or not artifact.strip():
            return RubricScore(EvalStatus.INVALID, 0.0, ())
        key = (task.hash, text_hash(artifact))
        if key not in self._verdicts:
            criteria = tuple(await self._setting.criteria(task, self._sealed[task.id], artifact))
            self._verdicts[key] = RubricScore(EvalStatus.SCORED, rubric_value(criteria), criteria)
        return self._verdicts[key]
