"""Evaluations of the same arms, set side by side: one comparison over their settings, so that Holm covers them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from analysis.comparison import Comparison, compare
from analysis.frame import PAIR
from analysis.report.evaluated import Evaluated
from analysis.report.sources import Source
from analysis.statistics import Interval, bootstrap_t, resample_counts, task_means
from analysis.verdict import Verdict, verdicts
from harness_mdp.errors import HarnessError, UnusableBuffer

__all__ = ["Cost", "Family", "families_of"]

Floats = npt.NDArray[np.float64]

_SPENT = {"tokens": "tokens", "usd": "cost_usd", "steps": "n_steps"}


@dataclass(frozen=True, slots=True)
class Cost:
    """What an arm spends on an episode, and how much more than the reference on the same pairs; tasks weigh equally."""

    label: str
    """Of the evaluation."""
    arm: str
    what: str
    """`tokens`, `usd` or `steps`."""
    mean: float
    delta: Interval | None
    """None for the reference."""
    n_tasks: int


@dataclass(frozen=True, eq=False)
class Family:
    """Evaluations of the same arms, one a setting."""

    label: str
    """What tells it from other families; empty where there is one."""
    evaluations: tuple[Evaluated, ...]
    comparison: Comparison
    """Rows and events by evaluation label, under the preset that was asked for."""
    strict: Comparison | None
    """The same with maturity that reads nothing sealed, for setting it against quality; None where it is not stored."""
    verdicts: tuple[Verdict, ...]
    """Learners against the rule; empty where there is none of either."""
    costs: tuple[Cost, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """The first is the reference."""
        return self.comparison.arms

    @property
    def learners(self) -> tuple[str, ...]:
        """Arms that are learned controllers."""
        return self.evaluations[0].learners


def families_of(
    evaluations: Sequence[Evaluated],
    sources: Sequence[Source],
    *,
    rule: str,
    preset: str,
    draws: int = 10_000,
    seed: int = 0,
) -> tuple[Family, ...]:
    """Group and compare.

    Args:
        evaluations: of `evaluations_of`.
        sources: the buffers they are from, for messages.
        rule: the arm that a learner has to beat.
        preset: of maturity.
        draws: resamples of tasks.
        seed: of resamples and sign flips.

    Raises:
        HarnessError: as `compare`, with the buffer and the runs in question.
    """
    groups: dict[tuple[object, ...], list[Evaluated]] = {}
    for each in evaluations:
        repeat = 0
        while any(other.setting == each.setting for other in groups.get(_key(each, repeat), ())):
            repeat += 1
        groups.setdefault(_key(each, repeat), []).append(each)
    names = [_name(members) for members in groups.values()]
    if len(set(names)) < len(names):
        first = [members[0] for members in groups.values()]
        names = [f"{name}, {sources[m.source].label or m.runs[0]}" for name, m in zip(names, first, strict=True)]
    labels = names if len(names) > 1 else [""] * len(names)
    return tuple(
        _family(label, members, sources, rule, preset, draws, seed)
        for label, members in zip(labels, groups.values(), strict=True)
    )


def _key(each: Evaluated, repeat: int) -> tuple[object, ...]:
    return (frozenset(each.arms), each.arms[0], each.executor.startswith("simulated"), each.behaviours, repeat)


def _name(members: Sequence[Evaluated]) -> str:
    behaviours = members[0].behaviours
    return f"collected by {', '.join(behaviours)}" if behaviours else f"arms {', '.join(members[0].arms)}"


def _family(
    label: str,
    members: Sequence[Evaluated],
    sources: Sequence[Source],
    rule: str,
    preset: str,
    draws: int,
    seed: int,
) -> Family:
    frames = [each.episodes.with_columns(setting=pl.lit(each.label)) for each in members]
    for each, frame in zip(members, frames, strict=True):  # one by one first, so that the message can say which
        try:
            compare(frame, each.arms[0], arms=each.arms, outcomes=["quality"], preset=preset, draws=1)
        except HarnessError as error:
            where = f"{sources[each.source].path} (run {', '.join(each.runs)})"
            message = f"{where}: {error}. runs=[NAME, ...] reports other runs only"
            raise UnusableBuffer(message) from error
    together = pl.concat(frames, how="diagonal_relaxed")
    arms, learners = members[0].arms, members[0].learners
    comparison = compare(together, arms[0], arms=arms, preset=preset, draws=draws, seed=seed)
    strict = None
    if preset == "strict":
        strict = comparison
    elif "maturity_strict" in together.columns and together["maturity_strict"].is_not_null().any():
        strict = compare(together, arms[0], arms=arms, outcomes=["maturity"], preset="strict", draws=draws, seed=seed)
    judged = verdicts(together, learners, rule) if learners and rule in arms else ()
    costs = [cost for each, frame in zip(members, frames, strict=True) for cost in _costs(each, frame, draws, seed)]
    return Family(label, tuple(members), comparison, strict, judged, tuple(costs))


def _costs(each: Evaluated, frame: pl.DataFrame, draws: int, seed: int) -> list[Cost]:
    found: list[Cost] = []
    reference = frame.filter(pl.col("arm") == each.arms[0])
    for arm in each.arms:
        own = frame.filter(pl.col("arm") == arm)
        pairs = own.join(reference, on=PAIR, suffix="_reference").sort(PAIR)
        for what, column in _SPENT.items():
            known = pairs.filter(pl.col("return").is_not_null() & pl.col("return_reference").is_not_null())
            if known[column].null_count() or known[f"{column}_reference"].null_count():
                continue  # an unknown price is not 0
            mine, base = (_by_task(known, name) for name in (column, f"{column}_reference"))
            delta = None
            if arm != each.arms[0]:
                most = float(max(np.concatenate([mine, base]).max(), 0.0))
                delta = bootstrap_t(mine - base, resample_counts(len(mine), draws, seed), support=(-most, most))
            found.append(Cost(each.label, arm, what, float(mine.mean()), delta, len(mine)))
    return found


def _by_task(pairs: pl.DataFrame, column: str) -> Floats:
    names, tasks = np.unique(pairs["task_id"].to_numpy(), return_inverse=True)
    values = pairs[column].cast(pl.Float64).to_numpy()
    return task_means(values, tasks.astype(np.int64), len(names))
