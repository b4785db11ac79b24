"""Episode to row and back, without loss: `to_episode(to_row(e))` equals `e` bit for bit."""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from buffers.schema import FLAT_COLUMNS, SCHEMA, SCHEMA_VERSION
from harness_mdp.errors import InputError
from harness_mdp.mdp import (
    N_ACTIONS,
    Action,
    Artifact,
    Budgets,
    CheckResult,
    Claim,
    Episode,
    EvalStatus,
    Event,
    EventError,
    Status,
    Step,
    Termination,
    ToolResult,
)

__all__ = ["Row", "decode_text", "encode_text", "to_episode", "to_row", "to_table"]

Row = Mapping[str, Any]
"""A row as Arrow gives it: plain Python values of the shape of `SCHEMA`."""

_ESCAPE = "\x1a"
_UNSAFE = re.compile("[\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def encode_text(text: str) -> str:
    """`text` as UTF-8 can hold it: unpaired surrogates, which a model may emit, become U+001A and four digits.

    U+001A itself is escaped too, so the mapping can be undone; all other text stays as it is.
    """
    return text if text.isascii() and _ESCAPE not in text else _UNSAFE.sub(_escape, text)


def decode_text(text: str) -> str:
    """The inverse of `encode_text`."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if _ESCAPE in text else text


def _escape(match: re.Match[str]) -> str:
    return f"{_ESCAPE}{ord(match[0]):04x}"


def _encode_all(texts: Iterable[str]) -> list[str]:
    return [encode_text(text) for text in texts]


def _decode_all(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(decode_text(text) for text in texts)


def to_table(episodes: Iterable[Episode]) -> pa.Table:
    """Episodes as an Arrow table of `SCHEMA`.

    Raises:
        ValueError: an episode that would not come back equal, by id and step.
        InputError: a value that its column cannot hold, e.g. a seed of more than 64 bits, by id and field.
    """
    rows = [to_row(episode) for episode in episodes]
    try:
        return pa.Table.from_pylist(rows, schema=SCHEMA)
    except (OverflowError, pa.ArrowException) as error:
        raise _misfit(rows) or error from error


def _misfit(rows: Iterable[Row]) -> InputError | None:
    """The first value that its column cannot hold; None if each fits."""
    for row in rows:
        for column in SCHEMA:
            value = row[column.name]
            try:
                pa.array([value], column.type)
            except (OverflowError, pa.ArrowException) as error:
                flat = column.name in FLAT_COLUMNS  # else the value is long, and Arrow's message has what is wrong
                return InputError(
                    f"{value!r} does not fit" if flat else f"a value does not fit ({error})",
                    file=f"episode {row['episode_id']}",
                    field=column.name,
                    expected=str(column.type) if flat else "values within the types of the schema",
                )
    return None


def to_row(episode: Episode) -> dict[str, Any]:
    """One row of `SCHEMA`."""
    e = episode
    return {
        "episode_id": e.episode_id,
        "run": e.run,
        "phase": e.phase,
        "setting": e.setting,
        "setting_version": e.setting_version,
        "schema_version": SCHEMA_VERSION,
        "feature_schema_id": e.feature_schema_id,
        "task_id": encode_text(e.task_id),
        "task_hash": e.task_hash,
        "template": encode_text(e.template),
        "split": e.split,
        "difficulty": e.difficulty,
        "executor": encode_text(e.executor),
        "policy": encode_text(e.policy),
        "policy_fingerprint": e.policy_fingerprint,
        "seed": e.seed,
        "rollout": e.rollout,
        "horizon": e.horizon,
        "token_budget": e.budgets.tokens,
        "usd_budget": e.budgets.usd,
        "eval_status": e.eval_status.value,
        "termination": e.termination.value,
        "return": e.return_,
        "rubric": [{"id": encode_text(n), "score": s, "weight": w} for n, s, w in e.rubric],
        "maturity": [{"preset": preset, "score": score} for preset, score in e.maturity.items()],
        "maturity_events": [
            {"preset": preset, "event": event, "applicable": applicable, "fired": fired}
            for preset, event, applicable, fired in e.maturity_events
        ],
        "artifacts": [{"sha256": key, "text": encode_text(text)} for key, text in e.artifacts.items()],
        "final_artifact": e.final_artifact,
        "tokens": e.tokens,
        "cost_usd": e.cost_usd,
        "seconds": e.seconds,
        "propensity_source": e.propensity_source,
        "steps": [_step_row(e.episode_id, step) for step in e.steps],
    }


def _step_row(episode_id: str, step: Step) -> dict[str, Any]:
    if step.event.action is not step.action:
        raise ValueError(
            f"episode {episode_id}, step {step.t}: the event says {step.event.action.label}, "
            f"the step {step.action.label}"
        )
    if step.mask.shape != (N_ACTIONS,) or step.propensities.shape != (N_ACTIONS,) or step.features.ndim != 1:
        raise ValueError(
            f"episode {episode_id}, step {step.t}: mask {step.mask.shape}, propensities "
            f"{step.propensities.shape}, features {step.features.shape}; expected (7,), (7,), (d,)"
        )
    return {
        "t": step.t,
        "event": _event_row(step.event),
        "features": step.features,
        "mask": step.mask,
        "base_action": int(step.base_action),
        "action": int(step.action),
        "propensities": step.propensities,
    }


def _event_row(event: Event) -> dict[str, Any]:
    tool, check, artifact = event.tool, event.check, event.artifact
    return {
        "status": event.status.value,
        "error": event.error.value,
        "evidence": _encode_all(event.evidence),
        "tool": tool
        and {
            "name": encode_text(tool.name),
            "valid": tool.valid,
            "ok": tool.ok,
            "version": tool.version,
            "passed": tool.passed,
            "total": tool.total,
            "problems": _encode_all(tool.problems),
        },
        "check": check
        and {
            "score": check.score,
            "version": check.version,
            "passed": check.passed,
            "total": check.total,
            "problems": _encode_all(check.problems),
        },
        "artifact": artifact and {"version": artifact.version, "sha256": artifact.sha256, "chars": artifact.chars},
        "claims": None
        if event.claims is None
        else [{"text": encode_text(claim.text), "supported": claim.supported} for claim in event.claims],
        "note": encode_text(event.note),
        "calls": event.calls,
        "prompt_tokens": event.prompt_tokens,
        "completion_tokens": event.completion_tokens,
        "cost_usd": event.cost_usd,
        "seconds": event.seconds,
    }


def to_episode(row: Row) -> Episode:
    """The episode of one row."""
    return Episode(
        episode_id=row["episode_id"],
        run=row["run"],
        phase=row["phase"],
        setting=row["setting"],
        setting_version=row["setting_version"],
        feature_schema_id=row["feature_schema_id"],
        task_id=decode_text(row["task_id"]),
        task_hash=row["task_hash"],
        template=decode_text(row["template"]),
        split=row["split"],
        difficulty=row["difficulty"],
        executor=decode_text(row["executor"]),
        policy=decode_text(row["policy"]),
        policy_fingerprint=row["policy_fingerprint"],
        seed=row["seed"],
        rollout=row["rollout"],
        horizon=row["horizon"],
        budgets=Budgets(tokens=row["token_budget"], usd=row["usd_budget"]),
        eval_status=EvalStatus(row["eval_status"]),
        termination=Termination(row["termination"]),
        return_=row["return"],
        rubric=tuple((decode_text(c["id"]), c["score"], c["weight"]) for c in row["rubric"]),
        maturity={m["preset"]: m["score"] for m in row["maturity"]},
        maturity_events=tuple((m["preset"], m["event"], m["applicable"], m["fired"]) for m in row["maturity_events"]),
        artifacts={a["sha256"]: decode_text(a["text"]) for a in row["artifacts"]},
        final_artifact=row["final_artifact"],
        tokens=row["tokens"],
        cost_usd=row["cost_usd"],
        seconds=row["seconds"],
        propensity_source=row["propensity_source"],
        steps=tuple(_to_step(step) for step in row["steps"]),
    )


def _to_step(row: Row) -> Step:
    action = Action(row["action"])
    return Step(
        t=row["t"],
        event=_to_event(action, row["event"]),
        features=np.array(row["features"], dtype=np.float32),
        mask=np.array(row["mask"], dtype=np.bool_),
        base_action=Action(row["base_action"]),
        action=action,
        propensities=np.array(row["propensities"], dtype=np.float64),
    )


def _to_event(action: Action, row: Row) -> Event:
    tool, check, artifact, claims = row["tool"], row["check"], row["artifact"], row["claims"]
    return Event(
        action=action,
        status=Status(row["status"]),
        error=EventError(row["error"]),
        evidence=_decode_all(row["evidence"]),
        tool=tool
        and ToolResult(
            name=decode_text(tool["name"]),
            valid=tool["valid"],
            ok=tool["ok"],
            version=tool["version"],
            passed=tool["passed"],
            total=tool["total"],
            problems=_decode_all(tool["problems"]),
        ),
        check=check
        and CheckResult(
            score=check["score"],
            version=check["version"],
            passed=check["passed"],
            total=check["total"],
            problems=_decode_all(check["problems"]),
        ),
        artifact=artifact and Artifact(artifact["version"], artifact["sha256"], artifact["chars"]),
        claims=None
        if claims is None
        else tuple(Claim(decode_text(claim["text"]), claim["supported"]) for claim in claims),
        note=decode_text(row["note"]),
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_usd"],
        seconds=row["seconds"],
    )
