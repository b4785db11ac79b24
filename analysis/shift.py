r"""How the process will shift, said before anything is run (DESIGN section 11).

Under weights :math:`w_i` of the episodes of a buffer, the mean of any statistic :math:`\Psi_i` of an episode moves by

.. math::

    E_w[\Psi] - E[\Psi] = \mathrm{Cov}(w, \Psi) / E[w] \qquad \text{(population covariance)}

An event of maturity is 1 where it fired, 0 where it did not, over the episodes where it was applicable; a reweighting
then moves its rate among applicable episodes. No reweighting brings a mean above the best value in the buffer.

The identity is exact for the *reweighted buffer*, which is what advantage-weighted learning imitates. The controller
is another thing: it decides from the state alone, and so keeps of an episode's weight what its states and actions
explain, not the luck in it. So the same formula is also told with the importance weights of the controller itself, as
far as its effective number of episodes allows; and `analysis.realised_shift` says what came of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
import polars as pl

from analysis.evaluations import is_simulated
from analysis.frame import evaluation_frame
from analysis.ope.logged import logged
from analysis.ope.support import SupportRules
from analysis.statistics import Floats, Interval, Ints, bootstrap_t, ratio_task_values, resample_counts
from buffers import ReplayBuffer, TrainingArrays
from controllers.awr import effective_sample_size
from controllers.data import StepData
from harness_mdp.errors import UnusableBuffer
from harness_mdp.hashing import Json
from harness_mdp.mdp import DecisionBatch, Probs
from harness_mdp.scoring.maturity import MaturityEvent

if TYPE_CHECKING:  # learners load torch and scikit-learn
    from controllers.learners import Learned

__all__ = [
    "BY_POLICY",
    "BY_WEIGHTS",
    "MEANS",
    "STATISTICS",
    "ShiftIntervals",
    "episode_weights",
    "held_out_probs",
    "learner_weights",
    "policy_weights",
    "predicted_shifts",
    "process_statistics",
    "shift_records",
    "task_sums",
    "weighted_shift",
]

BY_WEIGHTS = "weights"
"""The buffer reweighted by what the learner gave its steps."""

BY_POLICY = "policy"
"""The buffer reweighted by how likely the controller makes each episode, relative to the behaviour policy."""

MEANS = {"quality": 1.0, "maturity": 2.0}
"""Statistics that every episode has, or nearly every one: the width of the range of each."""

STATISTICS = (*MEANS, *(event.value for event in MaturityEvent))
"""What shifts are told of: quality, HMS, and the rate of each event."""


_NOTHING = dict.fromkeys(("weighted", "predicted", "low", "high"), np.nan)


def weighted_shift(weights: Floats, statistic: Floats) -> float:
    """Cov(w, Ψ)/E[w], what the mean of Ψ moves by under weights w.

    Args:
        weights: (m,) at least 0, one above it.
        statistic: (m,) Ψ of each episode.
    """
    mean = float(weights.mean())
    return float(((weights - mean) * (statistic - statistic.mean())).mean()) / mean


def episode_weights(data: StepData, step_weights: Floats) -> Floats:
    """(m,) weight of each episode in the reweighted buffer: the mean of its steps' weights; NaN without a step.

    With trajectory advantages all steps of an episode have the same weight, and that is its own. With weights that
    differ from step to step (`aw_step`, `aw_planned`) the mean says how much the learner reads of the episode for
    its length; the choices that such a learner makes multiply over the steps, so its shift is larger, and better
    told from the policy itself: see `policy_weights`.

    Args:
        data: n steps of m episodes.
        step_weights: (n,) w of each step.
    """
    count = np.bincount(data.episode, minlength=len(data.returns))
    total = np.bincount(data.episode, weights=step_weights, minlength=len(data.returns))
    weights: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return weights


def policy_weights(data: StepData, probs: Probs) -> Floats:
    """(m,) importance weight Π_t π(a_t|s_t)/μ(a_t|s_t) of each episode: how a policy itself reweights the buffer.

    The buffer so weighted is, in expectation, what the policy would do; how far a sample of it can be trusted says
    its effective size. The policy should not have learned from these tasks: see `held_out_probs`.

    Args:
        data: n steps of m episodes.
        probs: (n, 7) π of each step.

    Raises:
        UnusableBuffer, ValueError: as `analysis.ope.logged`.
    """
    return logged(data, probs).weights


def held_out_probs(data: StepData, learned: Learned) -> Probs:
    """(n, 7) what the learner's task-fold controllers do, each on the tasks that it did not learn from.

    Raises:
        ValueError: no fold holds an episode out.
    """
    probs = np.full(data.propensities.shape, np.nan)
    for fold in learned.folds:
        rows = fold.held_out[data.episode]
        batch = DecisionBatch(data.features[rows], data.mask[rows], data.base_action[rows])
        probs[rows] = fold.controller.probs_batch(batch)
    if np.isnan(probs).any():
        raise ValueError(f"{len(learned.folds)} fold controllers leave tasks that no one was held out from")
    return probs


def learner_weights(data: StepData, learned: Learned) -> dict[str, Floats]:
    """Both weightings of the m episodes, as far as the learner has them: `BY_WEIGHTS`, and with folds `BY_POLICY`."""
    found: dict[str, Floats] = {}
    if learned.step_weights is not None:
        found[BY_WEIGHTS] = episode_weights(data, learned.step_weights)
    if learned.folds:
        found[BY_POLICY] = policy_weights(data, held_out_probs(data, learned))
    return found


def process_statistics(episodes: pl.DataFrame, preset: str = "strict") -> Floats:
    """(m, 9) `STATISTICS` of each episode; NaN where an event was not applicable, or nothing was judged.

    Args:
        episodes: as `ReplayBuffer.episodes_df`; the order of rows is kept.
        preset: of maturity, among the stored ones.

    Raises:
        ConfigError, InputError: as `analysis.frame.evaluation_frame`.
    """
    frame = evaluation_frame(episodes, preset=preset)
    verdict = pl.element().struct
    events = [
        pl.col("verdicts")
        .list.filter((verdict.field("event") == event.value) & verdict.field("applicable"))
        .list.first()
        .struct.field("fired")
        .cast(pl.Float64)
        .alias(event.value)
        for event in MaturityEvent
    ]
    table = frame.select(pl.col("return").alias("quality"), "maturity", *events).fill_null(float("nan"))
    return table.select(STATISTICS).to_numpy().astype(np.float64)


def task_sums(values: Floats, task: Ints, n_tasks: int = 0) -> Floats:
    """(k,) sum of the values (m,) of each task; k is the largest index plus 1, or `n_tasks` if that is more."""
    return np.bincount(task, weights=values, minlength=n_tasks).astype(np.float64)


@dataclass(frozen=True)
class ShiftIntervals:
    """Intervals of shifts: bootstrap-t over tasks; holds the resamples that all rows share."""

    level: float = 0.95
    draws: int = 10_000
    seed: int = 0
    _counts: dict[int, Floats] = field(default_factory=dict[int, Floats])

    def of(self, task_values: Floats, statistic: str) -> dict[str, object]:
        """`low`, `high` and `note` of the mean of task values (k,); no interval from a single task."""
        n = len(task_values)
        if n < 2:
            return {"low": np.nan, "high": np.nan, "note": "one task: no interval"}
        if n not in self._counts:
            self._counts[n] = resample_counts(n, self.draws, self.seed)
        width = MEANS.get(statistic, 1.0)
        found: Interval = bootstrap_t(task_values, self._counts[n], level=self.level, support=(-width, width))
        return {"low": found.low, "high": found.high, "note": found.degeneracy.value}


def predicted_shifts(
    buffer: ReplayBuffer,
    arrays: TrainingArrays,
    weightings: Mapping[str, Floats],
    *,
    preset: str = "strict",
    level: float = 0.95,
    draws: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """What a reweighting of the buffer moves: the shift of quality, maturity and each event.

    Args:
        buffer: where `arrays` come from; it holds the verdicts.
        arrays: the m episodes that were learned from.
        weightings: name -> weights (m,), e.g. those of `learner_weights`; NaN leaves an episode out.
        preset: of maturity. `strict` reads no quality; with `paper` the shift of EarlySubmit is partly that of
            quality, which the weights are made of.
        level: of the intervals.
        draws: resamples of tasks.
        seed: of the resamples.

    Returns:
        One row for each weighting and each of `STATISTICS`: `by statistic buffer weighted predicted low high n_tasks
        n_applicable ess note simulated`. `buffer` and `weighted` are E[Ψ] and E_w[Ψ] over the applicable episodes,
        and `predicted` their difference Cov(w, Ψ)/E[w]; episodes weigh as the learner sees them, not tasks equally.
        The interval is a bootstrap-t over tasks of the linearised ratios. `ess` is the effective number of applicable
        episodes: under 30, `BY_POLICY` has no number, as in off-policy evaluation. NaN where `note` says why.

    Raises:
        UnusableBuffer: an episode of `arrays` is not in the buffer.
        ValueError: weights of another length, or a negative or infinite one.
    """
    for name, weights in weightings.items():
        if weights.shape != (arrays.n_episodes,) or (weights < 0).any() or np.isinf(weights).any():
            raise ValueError(
                f"weights {name} have shape {weights.shape}; expected ({arrays.n_episodes},), finite and at least 0"
            )
    episodes = _in_order(buffer, arrays.episode_ids)
    statistics = process_statistics(episodes, preset)
    intervals = ShiftIntervals(level, draws, seed)
    rows: list[dict[str, object]] = []
    for by, weights in weightings.items():
        for name, values in zip(STATISTICS, statistics.T, strict=True):
            known = ~np.isnan(values) & ~np.isnan(weights)
            task = np.unique(arrays.task[known], return_inverse=True)[1]
            row = {"by": by, "statistic": name} | _row(name, weights[known], values[known], task, intervals)
            if by == BY_POLICY and row["n_applicable"] and cast("float", row["ess"]) < SupportRules().ess_weak:
                row |= {**_NOTHING, "note": "insufficient support"}
            rows.append(row)
    return pd.DataFrame(rows).assign(simulated=is_simulated(episodes))


def shift_records(shifts: pd.DataFrame) -> list[dict[str, Json]]:
    """Rows as plain values for a manifest, NaN as None; `pandas.DataFrame` reads them back."""
    rows = pl.from_pandas(shifts).with_columns(pl.selectors.float().fill_nan(None))
    return rows.to_dicts()


def _in_order(buffer: ReplayBuffer, episode_ids: Sequence[str]) -> pl.DataFrame:
    found = buffer.episodes_df(episode_id=list(episode_ids))
    ordered = pl.DataFrame({"episode_id": list(episode_ids)}).join(
        found, on="episode_id", how="inner", maintain_order="left"
    )
    if len(ordered) != len(episode_ids):
        missing = sorted(set(episode_ids) - set(found["episode_id"]))
        raise UnusableBuffer(
            f"{buffer.path} lacks {len(missing)} of the {len(episode_ids)} episodes that were learned from, e.g. "
            f"{missing[0]}. Give the buffer that they were read from"
        )
    return ordered


def _row(name: str, weights: Floats, values: Floats, task: Ints, intervals: ShiftIntervals) -> dict[str, object]:
    """One row of `predicted_shifts` but for its name, from the applicable episodes alone."""
    row: dict[str, object] = {
        "buffer": float(values.mean()) if len(values) else np.nan,
        **_NOTHING,
        "n_tasks": len(np.unique(task)),
        "n_applicable": len(values),
        "ess": effective_sample_size(weights),
        "note": "",
    }
    if len(values) == 0:
        return row | {"note": "never applicable"}
    if not weights.any():
        return row | {"note": "all applicable episodes have weight 0"}
    shift = weighted_shift(weights, values)
    row |= {"weighted": float(values.mean()) + shift, "predicted": shift}
    if np.ptp(weights) == 0:
        return row | {"low": 0.0, "high": 0.0, "note": "equal weights"}
    weighted = ratio_task_values(task_sums(weights * values, task), task_sums(weights, task))
    plain = ratio_task_values(task_sums(values, task), task_sums(np.ones(len(task)), task))
    return row | intervals.of(weighted - plain, name)
