"""Is a learned controller worth deploying? Only where it beats the rule of thumb and is above base; said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd
import polars as pl

from analysis.comparison import compare
from harness_mdp.errors import ConfigError

__all__ = ["Judgement", "Verdict", "judge", "verdicts"]


_SAME = 1e-9
"""A smaller difference to base is rounding: the controller does what base does."""


class Judgement(StrEnum):
    """What the paired difference in quality to the rule says."""

    BETTER = "better"
    WORSE = "worse"
    UNDECIDED = "undecided"


def judge(low: float, high: float) -> Judgement:
    """What an interval of a difference says: it lies above 0, below 0, or around it."""
    return Judgement.BETTER if low > 0 else Judgement.WORSE if high < 0 else Judgement.UNDECIDED


@dataclass(frozen=True, slots=True)
class Verdict:
    """One learner against the rule on matched pairs."""

    setting: str
    learner: str
    rule: str
    delta: float
    """Quality of the learner minus that of the rule."""
    low: float
    high: float
    judgement: Judgement
    to_base: float | None = None
    """Quality of the learner minus that of base; None where base was not run."""

    @property
    def worth_deploying(self) -> bool:
        """It beats the rule, and is above base: where the rule hurts, beating it is no merit."""
        return self.judgement is Judgement.BETTER and (self.to_base is None or self.to_base > _SAME)

    def sentence(self) -> str:
        """For a person, with n left to the table."""
        by = f"{self.delta:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"
        advice = {
            Judgement.BETTER: f"beats {self.rule}: worth deploying",
            Judgement.WORSE: f"is worse than {self.rule}: do not deploy it, the rule is better",
            Judgement.UNDECIDED: f"does not beat {self.rule}: not worth deploying on this evidence",
        }[self.judgement]
        if self.judgement is Judgement.BETTER and not self.worth_deploying:
            advice = f"beats {self.rule}, but is {self._beside_base()}"
        elif self._as_base:
            advice += "; it scores as base does"
        return f"{self.setting}: {self.learner} {advice} (quality {by})"

    @property
    def _as_base(self) -> bool:
        return self.to_base is not None and abs(self.to_base) <= _SAME

    def _beside_base(self) -> str:
        if self._as_base:
            return "worth what base is: nothing to deploy"
        return f"below base ({self.to_base:+.3f}): not worth deploying on this evidence"


def verdicts(
    episodes: pd.DataFrame | pl.DataFrame,
    learners: Sequence[str],
    rule: str = "check_revise",
    level: float = 0.95,
    base: str = "base",
) -> tuple[Verdict, ...]:
    """Every learner against `rule`, setting by setting, by the interval of the paired difference in quality.

    Args:
        episodes: as for `compare`.
        learners: arms to judge.
        rule: the arm that a learner has to beat.
        level: of the interval.
        base: an arm that a learner must be above, where it was run.

    Raises:
        ConfigError: no learner, or no such arms.
        UnusableBuffer: arms that are not matched.
    """
    if not learners:
        raise ConfigError("no learner to judge")
    own = episodes if isinstance(episodes, pl.DataFrame) else pl.from_pandas(episodes)
    arms = [*learners, base] if base != rule and base not in learners and base in set(own["arm"]) else list(learners)
    rows = pl.from_pandas(compare(episodes, reference=rule, arms=arms, level=level).rows)
    told = rows.filter(pl.col("outcome") == "quality")
    # Both differences are to the rule, on the same pairs.
    of_base = {str(row["setting"]): float(row["delta"]) for row in told.filter(arm=base).iter_rows(named=True)}
    quality = told.filter(pl.col("arm").is_in(list(learners)))
    found: list[Verdict] = []
    for row in quality.iter_rows(named=True):
        low, high = float(row["ci_low"]), float(row["ci_high"])
        setting, delta = str(row["setting"]), float(row["delta"])
        to_base = delta - of_base[setting] if setting in of_base and base != rule else None
        found.append(Verdict(setting, str(row["arm"]), rule, delta, low, high, judge(low, high), to_base))
    return tuple(found)
