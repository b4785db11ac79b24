"""Episodes as ATIF trajectories, one JSON document each (Agent Trajectory Interchange Format, version 1.7).

Source of the format: RFC 0001 of the Harbor framework and its Pydantic models (`harbor.models.trajectories`, harbor
0.26.0, Apache-2.0). That release is at ATIF 1.8, which adds audio; 1.7 is the first with all that is used here.

| ATIF | here |
|---|---|
| step 1, `source` user | the task, by id and hash: a buffer does not hold its text |
| step t+1, `source` agent | step t |
| `tool_calls[0]` | the structural action |
| `observation` | what came of it, as a line to read |
| `message` | the artifact's text where the step made a version, else empty |
| `llm_call_count`, `metrics` | calls, tokens, cost of the executor; no metrics where it was not asked |
| `extra` of a step | action, legal actions, propensity, the full distribution, base action, features, the typed event |
| `extra` of the document | return, rubric, maturity, how it ended, and every other column of the row |

Nothing of a row is left out. Text is as stored: an unpaired surrogate, which strict JSON readers refuse, is U+001A and
four hex digits. Every text of a model is a JSON string and nothing else.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from buffers.export.packages import ATIF
from buffers.rows import Row
from buffers.schema import FLAT_COLUMNS
from buffers.side import installed_versions
from harness_mdp.errors import UnusableBuffer
from harness_mdp.hashing import Json, text_hash
from harness_mdp.mdp import ACTIONS
from harness_mdp.settings.protocol import Setting

__all__ = ["ATIF_VERSION", "trajectory", "write_atif"]

ATIF_VERSION = "ATIF-v1.7"

_BATCH = 256
_WHAT = {
    "observe": "Look at more of the task's material.",
    "retrieve": "Search for evidence.",
    "call_tool": "Use the setting's tool.",
    "draft": "Have the executor write a new artifact.",
    "check": "Check the artifact with what is available when deployed.",
    "revise": "Have the executor revise the artifact.",
    "submit": "Submit the artifact and end the episode.",
}
_NO_ARGUMENTS = {"type": "object", "properties": {}}
_TOOLS = [
    {"type": "function", "function": {"name": name, "description": what, "parameters": _NO_ARGUMENTS}}
    for name, what in _WHAT.items()
]
_FILE_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,199}")


def write_atif(
    rows: pa.Table, folder: Path, *, card: Mapping[str, Json], open_setting: Callable[[str], Setting]
) -> tuple[str, ...]:
    """Writes `trajectories/<episode id>.json`, each validated if the package `atif` is installed.

    Raises:
        UnusableBuffer: an episode with a number that JSON cannot hold, or that the schema refuses.
    """
    del open_setting
    models = {model["fingerprint"]: model for model in card["models"]}
    made_by = {run["run"]: run["versions"].get("harness-mdp") for run in card["runs"]}
    validate, validated = _validator()
    there = folder / "trajectories"
    there.mkdir()
    for batch in rows.to_batches(max_chunksize=_BATCH):
        for row in batch.to_pylist():
            document = trajectory(row, model=models[row["executor"]], harness_version=made_by[row["run"]])
            try:
                validate(document)
                text = json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1)
            except ValueError as error:  # pydantic's ValidationError is one
                raise UnusableBuffer(f"episode {row['episode_id']} is no {ATIF_VERSION} trajectory: {error}") from error
            (there / f"{_file_name(row['episode_id'])}.json").write_text(text + "\n", encoding="ascii")
    return (f"documents: trajectories/<episode id>.json, {ATIF_VERSION}", validated)


def _file_name(episode_id: str) -> str:
    """The id, or its hash where the id of an imported episode could lead elsewhere."""
    return episode_id if _FILE_NAME.fullmatch(episode_id) else text_hash(episode_id)[:32]


def _validator() -> tuple[Callable[[Json], object], str]:
    """The check of a document, and what to say of it."""
    try:
        from atif import Trajectory
    except ImportError:
        return (lambda _: None), f'not validated: python -m pip install "{ATIF}" lets each be checked as it is written'
    return partial(Trajectory.model_validate, strict=True), "each validated against the models of the package atif"


def trajectory(row: Row, *, model: Mapping[str, Json], harness_version: str | None = None) -> dict[str, Json]:
    """The ATIF document of one row of `SCHEMA`.

    Args:
        row: plain Python values, as Arrow gives them.
        model: what is known of the executor (`models` of the dataset card).
        harness_version: version of harness-mdp that made it; None is the installed one.
    """
    texts = {artifact["sha256"]: artifact["text"] for artifact in row["artifacts"]}
    steps = [_task(row), *(_step(step, texts) for step in row["steps"])]
    shown = {step["event"]["artifact"]["sha256"] for step in row["steps"] if step["event"]["artifact"]}
    executor = {name: value for name, value in model.items() if name != "episodes"}
    simulated = bool(model["simulated"])
    return {
        "schema_version": ATIF_VERSION,
        "session_id": row["episode_id"],
        "trajectory_id": row["episode_id"],
        "agent": {
            "name": "harness-mdp",
            "version": harness_version or installed_versions().get("harness-mdp", "unknown"),
            "model_name": str(model.get("model") or row["executor"]),
            "tool_definitions": _TOOLS,
            "extra": {"executor": executor, "policy": row["policy"], "simulated": simulated},
        },
        "steps": steps,
        "notes": "Structural decisions of an agent harness. Each was drawn from extra.propensities of its step; the "
        "return is in extra.return." + (" The executor is simulated, and no model." if simulated else ""),
        "final_metrics": _without_null(
            {
                "total_prompt_tokens": sum(step["event"]["prompt_tokens"] for step in row["steps"]),
                "total_completion_tokens": sum(step["event"]["completion_tokens"] for step in row["steps"]),
                "total_cost_usd": row["cost_usd"],
                "total_steps": len(steps),
                "extra": {"return": row["return"], "seconds": row["seconds"]},
            }
        ),
        "extra": {
            **{name: row[name] for name in FLAT_COLUMNS},
            "rubric": row["rubric"],
            "maturity": row["maturity"],
            "maturity_events": row["maturity_events"],
            "other_artifacts": {key: text for key, text in texts.items() if key not in shown},
        },
    }


def _task(row: Row) -> dict[str, Json]:
    return {
        "step_id": 1,
        "source": "user",
        "message": f"Task {row['task_id']} of setting {row['setting']}, {row['difficulty']}.",
        "extra": {"task_id": row["task_id"], "task_hash": row["task_hash"], "template": row["template"]},
    }


def _step(step: Row, texts: Mapping[str, str]) -> dict[str, Json]:
    event, action, call = step["event"], ACTIONS[step["action"]], f"step-{step['t']}"
    artifact = event["artifact"]
    used: dict[str, Json] = {
        "prompt_tokens": event["prompt_tokens"],
        "completion_tokens": event["completion_tokens"],
        "cost_usd": event["cost_usd"],
    }
    return {
        "step_id": step["t"] + 1,
        "source": "agent",
        "message": texts.get(artifact["sha256"], "") if artifact else "",
        "tool_calls": [{"tool_call_id": call, "function_name": action.label, "arguments": {}}],
        "observation": {"results": [{"source_call_id": call, "content": "; ".join(_outcome(event))}]},
        "llm_call_count": event["calls"],
        **({"metrics": _without_null(used)} if event["calls"] else {}),
        "extra": {
            "t": step["t"],
            "action": action.label,
            "legal_actions": [a.label for a in ACTIONS if step["mask"][a]],
            "propensity": step["propensities"][action],
            "propensities": {a.label: step["propensities"][a] for a in ACTIONS},
            "base_action": ACTIONS[step["base_action"]].label,
            "features": step["features"],
            "event": event,
        },
    }


def _outcome(event: Row) -> Sequence[str]:
    """What came of a step, for a reader; `extra.event` has it typed."""
    tool, check, artifact = event["tool"], event["check"], event["artifact"]
    found = [f"{event['status']} {event['error']}".strip()]
    if event["evidence"]:
        found.append(f"evidence: {', '.join(event['evidence'])}")
    if tool:
        went = "ok" if tool["valid"] and tool["ok"] else "error"
        found.append(f"tool {tool['name']}: {went}, {tool['passed']} of {tool['total']} passed{_named(tool)}")
    if check:
        found.append(f"check: {check['passed']} of {check['total']} passed{_named(check)}")
    if artifact:
        found.append(f"version {artifact['version']}, {artifact['chars']} characters")
    return [*found, *([event["note"]] if event["note"] else [])]


def _named(verdict: Row) -> str:
    return f" ({', '.join(verdict['problems'])})" if verdict["problems"] else ""


def _without_null(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
