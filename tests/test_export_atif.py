"""Export as ATIF: valid documents of the published schema, from which every row can be made again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from buffers import ReplayBuffer
from buffers.export import export
from buffers.export.atif_files import ATIF_VERSION
from buffers.rows import to_episode
from buffers.schema import FLAT_COLUMNS
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import ACTIONS, Action
from tests.episodes import episode, episodes
from tests.test_export_parquet import ODD, to_json

MODELS = ("atif", "harbor.models.trajectories")
"""Pydantic models of the format: a small package (1.8.0), and the Harbor framework's own (0.26.0, Python 3.12)."""


@pytest.fixture
def made(tmp_path):
    made = episodes(30, odd_text=ODD)
    ReplayBuffer(tmp_path / "b").append(made)
    return made


def documents(folder) -> dict[str, dict]:
    return {path.stem: json.loads(path.read_bytes()) for path in (folder / "trajectories").iterdir()}


@pytest.mark.parametrize("models", MODELS)
def test_every_document_is_valid_by_the_published_schema(tmp_path, made, models):
    schema = pytest.importorskip(models, reason=f"{models} is not installed").Trajectory
    export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    for path in (tmp_path / "out" / "trajectories").iterdir():
        read = schema.model_validate_json(path.read_bytes())
        assert read.schema_version == ATIF_VERSION
        assert len(read.steps) == read.final_metrics.total_steps


def test_the_validation_refuses_what_is_wrong(tmp_path, made):
    schema = pytest.importorskip("atif", reason="atif is not installed").Trajectory
    export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    document = documents(tmp_path / "out")[made[0].episode_id]
    document["steps"][1]["step_id"] = 7
    with pytest.raises(ValueError, match="not sequential"):
        schema.model_validate(document)


def test_every_step_has_action_legal_actions_and_propensity(tmp_path, made):
    export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    read = documents(tmp_path / "out")
    for original in made:
        first, *steps = read[original.episode_id]["steps"]
        assert first["source"] == "user"
        assert len(steps) == len(original.steps)
        for there, step in zip(steps, original.steps, strict=True):
            extra = there["extra"]
            assert extra["action"] == there["tool_calls"][0]["function_name"] == step.action.label
            assert extra["legal_actions"] == [a.label for a in ACTIONS if step.mask[a]]
            assert extra["propensity"] == step.propensities[step.action]
            assert there["llm_call_count"] == step.event.calls
            assert ("metrics" in there) == (step.event.calls > 0)


def test_nothing_is_lost(tmp_path, made):
    done = export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    read = documents(tmp_path / "out")
    assert done.episodes == len(read) == len(made)
    for original in made:
        assert to_json(to_episode(rebuilt(read[original.episode_id]))) == to_json(original)


def rebuilt(document: dict) -> dict:
    """The row of the schema, made from the document alone."""
    extra, texts = document["extra"], dict(document["extra"]["other_artifacts"])
    steps = []
    for step in document["steps"][1:]:
        event = step["extra"]["event"]
        if event["artifact"]:
            texts.setdefault(event["artifact"]["sha256"], step["message"])
        propensities = step["extra"]["propensities"]
        steps.append(
            {
                "t": step["extra"]["t"],
                "event": event,
                "features": step["extra"]["features"],
                "mask": [a.label in step["extra"]["legal_actions"] for a in ACTIONS],
                "base_action": Action[step["extra"]["base_action"].upper()],
                "action": Action[step["extra"]["action"].upper()],
                "propensities": [propensities[a.label] for a in ACTIONS],
            }
        )
    return {
        **{name: extra[name] for name in (*FLAT_COLUMNS, "rubric", "maturity", "maturity_events")},
        "artifacts": [{"sha256": key, "text": text} for key, text in texts.items()],
        "steps": steps,
    }


def test_a_simulated_executor_is_said(tmp_path, made):
    export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    document = documents(tmp_path / "out")[made[0].episode_id]
    assert document["agent"]["model_name"] == "simulated:medium"
    assert document["agent"]["extra"]["simulated"] is True
    assert "simulated" in document["notes"]


def test_an_unknown_price_is_absent_and_not_zero(tmp_path):
    original = episode(0)
    steps = tuple(replace(step, event=replace(step.event, cost_usd=None)) for step in original.steps)
    ReplayBuffer(tmp_path / "b").append([replace(original, cost_usd=None, steps=steps)])
    export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    document = documents(tmp_path / "out")[original.episode_id]
    assert "total_cost_usd" not in document["final_metrics"]
    assert all("cost_usd" not in step.get("metrics", {}) for step in document["steps"])


def test_an_id_that_leads_elsewhere_names_no_file_there(tmp_path):
    ReplayBuffer(tmp_path / "b").append([replace(episode(0), episode_id="../../../escaped")])
    export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    assert not list(tmp_path.rglob("escaped*"))
    assert not list(tmp_path.parent.glob("escaped*"))
    (document,) = documents(tmp_path / "out").values()
    assert document["trajectory_id"] == "../../../escaped"


def test_a_number_that_json_has_no_word_for_is_refused_and_leaves_nothing(tmp_path):
    ReplayBuffer(tmp_path / "b").append([replace(episode(0), return_=float("nan"))])
    with pytest.raises(UnusableBuffer, match=episode(0).episode_id):
        export(ReplayBuffer(tmp_path / "b"), "atif", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
