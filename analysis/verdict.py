"""Is a learned controller worth deploying? Only where it beats the rule of thumb, and that is said aloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd
import polars as pl

from analysis.comparison import compare
from harness_mdp.errors import ConfigError

__all__ = ["Judgement", "Verdict", "judge", "verdicts"]


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

    def sentence(self) -> str:
        """For a person, with n left to the table."""
        by = f"{self.delta:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"
        advice = {
            Judgement.BETTER: f"beats {self.rule}: worth deploying",
            Judgement.WORSE: f"is worse than {self.rule}: do not deploy it, the rule is better",
            Judgement.UNDECIDED: f"does not beat {self.rule}: not worth deploying on this evidence",
        }[self.judgement]
        return f"{self.setting}: {self.learner} {advice} (quality {by})"


def verdicts(
    episodes: pd.DataFrame | pl.DataFrame, learners: Sequence[str], rule: str = "check_revise", level: float = 0.95
) -> tuple[Verdict, ...]:
    """Every learner against `rule`, setting by setting, by the interval of the paired difference in quality.

    Args:
        episodes: as for `compare`.
        learners: arms to judge.
        rule: the arm that a learner has to beat.
        level: of the interval.

    Raises:
        ConfigError: no learner, or no such arms.
        UnusableBuffer: arms that are not matched.
    """
    if not learners:
        raise ConfigError("no learner to judge")
    rows = pl.from_pandas(compare(episodes, reference=rule, arms=learners, level=level).rows)
    quality = rows.filter((pl.col("outcome") == "quality") & pl.col("arm").is_in(list(learners)))
    found: list[Verdict] = []
    for row in quality.iter_rows(named=True):
        low, high = float(row["ci_low"]), float(row["ci_high"])
        found.append(
            Verdict(str(row["setting"]), str(row["arm"]), rule, float(row["delta"]), low, high, judge(low, high))
        )
    return tuple(found)
