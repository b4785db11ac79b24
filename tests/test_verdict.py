"""A learner is worth deploying only where it beats the rule of thumb."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from analysis.verdict import Judgement, verdicts
from harness_mdp.errors import ConfigError


def evaluation(gains: dict[str, float], tasks: int = 20, rollouts: int = 3) -> pl.DataFrame:
    """Arms whose return is the rule's plus a gain, with noise by (task, rollout)."""
    rng = np.random.default_rng(0)
    level = rng.uniform(0.3, 0.6, size=(tasks, rollouts))
    rows = []
    for arm, gain in gains.items():
        noise = rng.normal(0, 0.02, size=level.shape)
        rows += [
            {
                "setting": "toy",
                "arm": arm,
                "task_id": f"t{k}",
                "task_hash": f"h{k}",
                "rollout": r,
                "seed": 1,
                "executor": "scripted",
                "eval_status": "scored",
                "return": float(np.clip(level[k, r] + gain + noise[k, r], 0, 1)),
            }
            for k in range(tasks)
            for r in range(rollouts)
        ]
    return pl.DataFrame(rows)


def test_learners_are_judged_against_the_rule() -> None:
    frame = evaluation({"base": -0.1, "check_revise": 0.0, "good": 0.1, "bad": -0.05, "same": 0.0})
    found = {verdict.learner: verdict for verdict in verdicts(frame, ["good", "bad", "same"])}
    assert found["good"].judgement is Judgement.BETTER
    assert found["bad"].judgement is Judgement.WORSE
    assert found["same"].judgement is Judgement.UNDECIDED
    assert found["good"].delta == pytest.approx(0.1, abs=0.02)
    assert "do not deploy" in found["bad"].sentence()
    assert "not worth deploying" in found["same"].sentence()
    assert "worth deploying (" in found["good"].sentence()


def test_where_the_rule_hurts_beating_it_is_no_merit() -> None:
    frame = evaluation({"base": 0.2, "check_revise": 0.0, "aw": 0.1, "plan": 0.3})
    found = {verdict.learner: verdict for verdict in verdicts(frame, ["aw", "plan"])}
    assert found["aw"].judgement is Judgement.BETTER
    assert found["aw"].to_base == pytest.approx(-0.1, abs=0.02)
    assert not found["aw"].worth_deploying
    assert "beats check_revise, but is below base (-0.1" in found["aw"].sentence()
    assert "not worth deploying" in found["aw"].sentence()
    assert found["plan"].worth_deploying


def test_what_does_as_base_does_is_nothing_to_deploy() -> None:
    frame = evaluation({"base": 0.2, "check_revise": 0.0})
    same = pl.concat([frame, frame.filter(arm="base").with_columns(arm=pl.lit("guarded"))])
    (found,) = verdicts(same, ["guarded"])
    assert found.judgement is Judgement.BETTER
    assert found.to_base == pytest.approx(0.0, abs=1e-9)
    assert not found.worth_deploying
    assert "worth what base is: nothing to deploy" in found.sentence()
    worse = evaluation({"base": 0.0, "check_revise": 0.3})
    same = pl.concat([worse, worse.filter(arm="base").with_columns(arm=pl.lit("guarded"))])
    assert "the rule is better; it scores as base does" in verdicts(same, ["guarded"])[0].sentence()


def test_without_base_the_rule_alone_decides() -> None:
    verdict = verdicts(evaluation({"check_revise": 0.0, "aw": 0.1}), ["aw"])[0]
    assert verdict.to_base is None
    assert verdict.worth_deploying


def test_without_a_learner_there_is_nothing_to_judge() -> None:
    with pytest.raises(ConfigError, match="no learner"):
        verdicts(evaluation({"base": 0.0, "check_revise": 0.0}), [])
