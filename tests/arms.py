"""Evaluation episodes with known figures, arm by arm, for the comparison tests."""

from __future__ import annotations

import polars as pl


def rows(
    arm: str, gain: float = 0.0, *, tasks: int = 10, rollouts: range = range(4), policy: str = "", **changes: object
) -> list[dict[str, object]]:
    """An arm whose return is (task + rollout / 10) / 20 + gain."""
    return [
        {
            "episode_id": f"{arm}-{policy}-{task}-{rollout}",
            "setting": "coding",
            "arm": arm,
            "policy": policy or arm,
            "task_id": f"t{task:02}",
            "task_hash": f"h{task:02}",
            "rollout": rollout,
            "executor": "simulated-weak-v1",
            "seed": 0,
            "horizon": 10,
            "token_budget": None,
            "eval_status": "scored",
            "return": (task + rollout / 10) / 20 + gain,
            "maturity": gain / 2 + task / 100,
        }
        | changes
        for task in range(tasks)
        for rollout in rollouts
    ]


def frame(*arms: list[dict[str, object]]) -> pl.DataFrame:
    return pl.DataFrame([row for arm in arms for row in arm], infer_schema_length=None)


def verdicts(arm: list[dict[str, object]], fires) -> list[dict[str, object]]:
    """CheckBeforeSubmit applicable in rollouts 0 to 2 and fired as told, ValidToolUse never applicable."""
    for entry in arm:
        fired = entry["rollout"] < 3 and fires(entry)
        entry["maturity_events"] = [
            {"preset": "paper", "event": "CheckBeforeSubmit", "applicable": entry["rollout"] < 3, "fired": fired},
            {"preset": "paper", "event": "ValidToolUse", "applicable": False, "fired": False},
            {"preset": "strict", "event": "CheckBeforeSubmit", "applicable": True, "fired": False},
        ]
    return arm
