"""Arms on identical (task, rollout) pairs with shared draws, or an error that says what is in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from analysis.frame import INFRA_MISSING, MANIFEST_COLUMNS, PAIR
from harness_mdp.errors import UnusableBuffer
from harness_mdp.hashing import digest
from harness_mdp.mdp import EvalStatus

__all__ = ["MAX_MISSING", "MatchedArm", "match"]

MAX_MISSING = 0.05
"""More pairs than this share without both values, and nothing is compared."""

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class MatchedArm:
    """One arm beside the reference."""

    name: str
    pairs: pl.DataFrame
    """One row per pair that the arm was asked for, sorted by `task_id` and `rollout`: `return`, `maturity`,
    `verdicts`, `eval_status` of the arm, and the same of the reference with suffix `_reference`."""
    manifest: str
    """16 hex digits over task hash, rollout, executor, seed and limits of those pairs."""

    def count(self, status: str) -> int:
        """Episodes of this arm with that `eval_status`."""
        return int((self.pairs["eval_status"] == status).sum())

    @property
    def infra_missing(self) -> int:
        """Episodes of this arm that failed for reasons outside the agent."""
        return self.count(INFRA_MISSING)

    @property
    def invalid(self) -> int:
        """Episodes of this arm that submitted nothing parsable; they count, with return 0."""
        return self.count(EvalStatus.INVALID.value)

    def complete(self, outcome: str) -> pl.DataFrame:
        """The pairs that have `outcome` (`return` or `maturity`) on both sides.

        Raises:
            UnusableBuffer: more than 5 % of the pairs do not, or fewer than two tasks do.
        """
        known = pl.col(outcome).is_not_null() & pl.col(f"{outcome}_reference").is_not_null()
        kept, lost = self.pairs.filter(known), self.pairs.filter(~known)
        if len(lost) > MAX_MISSING * len(self.pairs):
            raise UnusableBuffer(
                f"arm {self.name}: {len(lost)} of {len(self.pairs)} pairs lack a {outcome} on one side or both "
                f"({100 * len(lost) / len(self.pairs):.1f} %; at most {100 * MAX_MISSING:.0f} % are accepted), e.g. "
                f"{_some(lost)}. Run the same evaluation again to retry them"
            )
        tasks = kept["task_id"].n_unique()
        if tasks < 2:
            raise UnusableBuffer(
                f"arm {self.name}: {tasks} task with a {outcome}; intervals and tests resample tasks and need at "
                "least two (20 or more to mean something). Evaluate more tasks"
            )
        return kept


def match(frame: pl.DataFrame, arms: Sequence[str], reference: str) -> list[MatchedArm]:
    """Put every arm of one setting beside the reference, the reference itself included.

    An arm may be made of several policies (training seeds) on disjoint rollouts; it is matched to the same rollouts
    of the reference. It needs every task of the setting at every rollout it has.

    Args:
        frame: `evaluation_frame` rows of one setting.
        arms: in the order wanted; each has rows, and so has the reference.
        reference: the arm to compare with.

    Raises:
        UnusableBuffer: an arm has a pair twice, lacks pairs, or was evaluated under other conditions.
    """
    tables = {arm: _arm_table(frame, arm) for arm in dict.fromkeys([*arms, reference])}
    tasks = frame.select("task_id").unique()
    expected = {arm: tasks.join(tables[arm].select("rollout").unique(), how="cross").sort(PAIR) for arm in arms}
    lacking: list[str] = []
    for arm, pairs in expected.items():
        for side in dict.fromkeys([arm, reference]):
            absent = pairs.join(tables[side], on=PAIR, how="anti")
            if len(absent):
                wanted = "" if side == arm else f" asked of arm {arm}"
                lacking.append(f"arm {side} lacks {len(absent)} of the {len(pairs)} pairs{wanted} ({_some(absent)})")
    if lacking:
        raise UnusableBuffer(
            f"the arms are not matched: {'; '.join(lacking)}. Run the same evaluation again to complete them, "
            "or leave the arm out"
        )
    return [_beside(arm, tables[arm], tables[reference], expected[arm], reference) for arm in arms]


def _arm_table(frame: pl.DataFrame, arm: str) -> pl.DataFrame:
    table = frame.filter(pl.col("arm") == arm)
    twice = table.filter(pl.struct(PAIR).is_duplicated()).sort(PAIR)
    if len(twice):
        first = table.join(twice.head(1), on=PAIR, how="semi")
        raise UnusableBuffer(
            f"arm {arm} has {len(first)} episodes for {_some(first.head(1))} (policies "
            f"{', '.join(sorted(set(first['policy'])))}); an arm has one. Keep one evaluation (executor, seed, "
            "policy), and give the policies of an arm with several training seeds disjoint rollouts"
        )
    return table


def _beside(arm: str, own: pl.DataFrame, base: pl.DataFrame, expected: pl.DataFrame, reference: str) -> MatchedArm:
    pairs = expected.join(own, on=PAIR, how="left").join(base, on=PAIR, how="left", suffix="_reference")
    pairs = pairs.sort(PAIR)
    columns = [name for name in MANIFEST_COLUMNS if name in own.columns]
    drawn = (pl.col("eval_status") != INFRA_MISSING) & (pl.col("eval_status_reference") != INFRA_MISSING)
    for name in columns:
        # Two null budgets are equal: both have none.
        differing = pairs.filter(drawn & pl.col(name).ne_missing(pl.col(f"{name}_reference")))
        if len(differing):
            raise UnusableBuffer(
                f"the manifests do not match: {name} differs in {len(differing)} of {len(pairs)} pairs, e.g. "
                f"{_some(differing.head(1))}: arm {arm} has {differing[name][0]!r}, arm {reference} "
                f"{differing[f'{name}_reference'][0]!r}. Arms can be compared only with the same tasks, executor, "
                "seed and limits"
            )
    known = (pl.coalesce(name, f"{name}_reference") for name in columns)
    manifest = digest([list(row) for row in pairs.select(*PAIR, *known).iter_rows()], 16)
    values = ["return", "maturity", "verdicts", "eval_status"]
    return MatchedArm(arm, pairs.select(*PAIR, *values, *(f"{value}_reference" for value in values)), manifest)


def _some(pairs: pl.DataFrame) -> str:
    told = [f"task {task} rollout {rollout}" for task, rollout in pairs.select(PAIR).head(_SHOWN).iter_rows()]
    return ", ".join(told) + (f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else "")
