"""The seven rules of `maturity_events` over many stored episodes at once, as polars expressions.

The scalar rules are the definition; these give the same verdicts and the same HMS, bit for bit, and a test holds the
two together on random and on collected episodes. Words and indices are theirs. A verdict is null where the event is
not applicable, so that the mean of a column is the rate among applicable episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from harness_mdp.errors import InputError
from harness_mdp.mdp import Action, Status, Termination
from harness_mdp.scoring.maturity_config import MaturityConfig, MaturityEvent

__all__ = ["FACTS", "STEPS", "judge"]

FACTS: Mapping[str, pl.DataType] = {
    "episode_id": pl.String(),
    "horizon": pl.Int32(),
    "termination": pl.String(),
    "tests_code": pl.Boolean(),
    "has_check": pl.Boolean(),
    "requires_evidence": pl.Boolean(),
    "quality": pl.Float64(),
    "criteria": pl.List(pl.Float64()),
}
"""Columns of the episodes: their id, and the fields of `EpisodeFacts`."""

STEPS: Mapping[str, pl.DataType] = {
    "episode_id": pl.String(),
    "action": pl.Int8(),
    "status": pl.String(),
    "evidence": pl.UInt32(),
    "tool_valid": pl.Boolean(),
    "tool_ok": pl.Boolean(),
    "tool_version": pl.Int32(),
    "tool_passed": pl.Int32(),
    "tool_total": pl.Int32(),
    "check_score": pl.Float64(),
    "check_version": pl.Int32(),
    "check_problems": pl.UInt32(),
    "artifact_version": pl.Int32(),
    "claims": pl.UInt32(),
    "claims_supported": pl.UInt32(),
}
"""Columns of the steps, one row a step, those of an episode in order. `evidence`, `check_problems`, `claims` are
counts; what the event does not have (a tool result, a check, an artifact, claims) is null."""


def judge(steps: pl.DataFrame, facts: pl.DataFrame, config: MaturityConfig) -> pl.DataFrame:
    """HMS and verdicts of every episode.

    Args:
        steps: columns of `STEPS`.
        facts: columns of `FACTS`, one row an episode; one without steps is judged as well.
        config: thresholds and weights.

    Returns:
        One row an episode, in the order of `facts`: `episode_id`, `hms` (null when no event with a weight was
        applicable), and a column for each event: null when not applicable, else whether it fired.

    Raises:
        InputError: an episode whose events contradict its termination or its horizon.
    """
    counts = ("steps", "tool_calls", "tool_calls_valid", "failures", "unanswered", "version", "final_claims")
    submitted = pl.col("termination") == Termination.SUBMIT.value
    runs = (
        facts.join(_traces(steps, config), on="episode_id", how="left", maintain_order="left")
        .with_columns(pl.col(counts).fill_null(0))
        .with_columns(submit=pl.when(submitted).then(pl.col("steps")))
    )
    _require_consistent(runs)
    verdicts = runs.select("episode_id", **{event.value: rule(config) for event, rule in _RULES.items()})
    return verdicts.select("episode_id", _hms(config), *(event.value for event in MaturityEvent))


def _traces(steps: pl.DataFrame, config: MaturityConfig) -> pl.DataFrame:
    """One row an episode that has steps; the columns are what `maturity_events.Trace` holds."""
    t, action = pl.col("t"), pl.col("action")
    checked, tested = pl.col("check_score").is_not_null(), pl.col("tool_total") > 0
    called, ok = action == Action.CALL_TOOL, pl.col("status") == Status.OK.value
    call_valid = called & ok & (pl.col("tool_valid") & pl.col("tool_ok")).fill_null(False)
    failed = ~ok | _tool_failed().fill_null(False) | (pl.col("check_problems") > 0).fill_null(False)
    numbered = steps.with_columns(t=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("episode_id"))
    next_revise = pl.when(action == Action.REVISE).then(t).shift(-1).backward_fill().over("episode_id")
    answered = (next_revise - t <= config.revision_window).fill_null(False)
    return (
        numbered.with_columns(failed=failed, answered=answered, tool_failed=_tool_failed())
        .group_by("episode_id")
        .agg(
            steps=pl.len().cast(pl.Int32),
            last_action=action.last(),
            version=pl.col("artifact_version").drop_nulls().last(),
            check_step=t.filter(checked).last(),
            check_score=pl.col("check_score").filter(checked).last(),
            check_version=pl.col("check_version").filter(checked).last(),
            check_failed=(pl.col("check_problems") > 0).filter(checked).last(),
            test_step=t.filter(tested).last(),
            test_version=pl.col("tool_version").filter(tested).last(),
            test_failed=pl.col("tool_failed").filter(tested).last(),
            test_pass_rate=(pl.col("tool_passed") / pl.col("tool_total")).filter(tested).last(),
            tool_calls=called.sum(),
            tool_calls_valid=call_valid.sum(),
            failures=pl.col("failed").sum(),
            unanswered=(pl.col("failed") & ~pl.col("answered")).sum(),
            final_claims=pl.col("claims").drop_nulls().last(),
            final_supported=pl.col("claims_supported").filter(pl.col("claims").is_not_null()).last(),
            first_claim=t.filter(pl.col("claims") > 0).first(),
            first_evidence=t.filter(pl.col("evidence") > 0).first(),
        )
    )


def _tool_failed() -> pl.Expr:
    """Null without a tool result."""
    return ~pl.col("tool_valid") | ~pl.col("tool_ok") | (pl.col("tool_passed") < pl.col("tool_total"))


def _require_consistent(runs: pl.DataFrame) -> None:
    """What `maturity_events.trace` refuses."""
    submitted = pl.col("submit").is_not_null()
    unsubmitted = runs.filter(submitted & pl.col("last_action").ne_missing(int(Action.SUBMIT)))
    if unsubmitted.height:
        episode, last = unsubmitted.select("episode_id", "last_action").row(0)
        name = "no step" if last is None else Action(last).label
        raise InputError(
            f"episode {episode}: the last step is {name}", field="steps", expected="submit, as the termination says"
        )
    too_long = runs.filter(pl.col("steps") > pl.col("horizon"))
    if too_long.height:
        episode, found, horizon = too_long.select("episode_id", "steps", "horizon").row(0)
        raise InputError(f"episode {episode}: {found} steps", field="steps", expected=f"at most the horizon, {horizon}")


def _hms(config: MaturityConfig) -> pl.Expr:
    """Σ sign·weight·fired / Σ weight over the applicable events, added up in the order of the scalar score."""
    earned = possible = pl.lit(0.0)
    for event in MaturityEvent:
        fired, weight = pl.col(event.value), float(config.weight(event))
        earned = earned + (fired.cast(pl.Float64) * (event.sign * weight)).fill_null(0.0)
        possible = possible + fired.is_not_null().cast(pl.Float64) * weight
    return pl.when(possible > 0).then(earned / possible).alias("hms")


def _verdict(applicable: pl.Expr, fires: pl.Expr) -> pl.Expr:
    """`fires`, where a null in it (no check, no test, no submit) means that it does not; null if not applicable."""
    return pl.when(applicable).then(fires.fill_null(False))


def _check_counts(config: MaturityConfig) -> pl.Expr:
    """`strict`: the last check saw the submitted version."""
    if not config.check_of_submitted_version:
        return pl.lit(True)
    return (pl.col("check_version") > 0) & (pl.col("check_version") == pl.col("version"))


def _check_before_submit(config: MaturityConfig) -> pl.Expr:
    gap = pl.col("submit") - pl.col("check_step")
    fires = _check_counts(config) & (~pl.col("check_failed") | (gap >= config.failed_check_gap))
    return _verdict(pl.col("has_check"), pl.col("submit").is_not_null() & fires)


def _evidence_before_claim(config: MaturityConfig) -> pl.Expr:
    in_time = pl.col("first_evidence") < pl.col("first_claim")
    supported = pl.col("final_supported") / pl.col("final_claims") >= config.claims_supported
    return _verdict(~pl.col("tests_code") & (pl.col("final_claims") > 0), in_time & supported)


def _test_before_submit(config: MaturityConfig) -> pl.Expr:
    of_submitted = (pl.col("test_version") > 0) & (pl.col("test_version") == pl.col("version"))
    gap = pl.col("submit") - pl.col("test_step")
    fires = of_submitted & (~pl.col("test_failed") | (gap >= config.failed_test_gap))
    return _verdict(pl.col("tests_code"), pl.col("submit").is_not_null() & fires)


def _revision_after_failure(config: MaturityConfig) -> pl.Expr:
    del config  # its window went into `unanswered`
    return _verdict(pl.col("failures") > 0, pl.col("unanswered") == 0)


def _valid_tool_use(config: MaturityConfig) -> pl.Expr:
    share = pl.col("tool_calls_valid") / pl.col("tool_calls")
    return _verdict(pl.col("tool_calls") > 0, share >= config.valid_tool_share)


def _stop_when_sufficient(config: MaturityConfig) -> pl.Expr:
    before_horizon = pl.col("submit") < pl.col("horizon")
    fresh = pl.col("submit") - pl.col("check_step") <= config.sufficient_age
    sufficient = pl.col("check_score") >= config.sufficient_score
    return _verdict(pl.col("has_check"), before_horizon & _check_counts(config) & sufficient & fresh)


def _early_submit(config: MaturityConfig) -> pl.Expr:
    low_pass_rate = pl.col("tests_code") & (pl.col("test_pass_rate") < config.early_pass_rate)
    unfounded = pl.col("requires_evidence") & pl.col("first_evidence").is_null() & (pl.col("final_claims") > 0)
    fires = low_pass_rate.fill_null(False) | unfounded
    if config.early_reads_quality:
        fires = fires | _early_by_quality(config)
    return _verdict(pl.col("submit").is_not_null(), fires)


def _early_by_quality(config: MaturityConfig) -> pl.Expr:
    submit, horizon, criteria = pl.col("submit"), pl.col("horizon"), pl.col("criteria")
    few_steps = (submit - 1) / horizon <= config.early_share
    missed = criteria.list.eval(pl.element() < config.missed_criterion).list.sum()
    many_missed = (criteria.list.len() > 0) & (missed / criteria.list.len() >= config.missed_share)
    return ((pl.col("quality") < config.early_quality) & few_steps) | ((submit < horizon) & many_missed)


_RULES: Mapping[MaturityEvent, Callable[[MaturityConfig], pl.Expr]] = {
    MaturityEvent.CHECK_BEFORE_SUBMIT: _check_before_submit,
    MaturityEvent.EVIDENCE_BEFORE_CLAIM: _evidence_before_claim,
    MaturityEvent.TEST_BEFORE_SUBMIT: _test_before_submit,
    MaturityEvent.REVISION_AFTER_FAILURE: _revision_after_failure,
    MaturityEvent.VALID_TOOL_USE: _valid_tool_use,
    MaturityEvent.STOP_WHEN_SUFFICIENT: _stop_when_sufficient,
    MaturityEvent.EARLY_SUBMIT: _early_submit,
}
