"""Export as Parquet: flat tables from which every row can be made again."""

from __future__ import annotations

import polars as pl
import pytest

from buffers import ReplayBuffer
from buffers.export import export
from buffers.rows import to_episode, to_row
from harness_mdp.mdp import ACTIONS
from tests.episodes import Behaviour, episodes

ODD = ' \ud800 \x00 \x1a "; DROP TABLE steps; --\n</script>,=1+1'


@pytest.fixture
def made(tmp_path):
    made = [*episodes(25, odd_text=ODD), *episodes(10, phase="eval", split="eval", policy=Behaviour(0.2))]
    ReplayBuffer(tmp_path / "b").append(made)
    return made


def tables(folder) -> dict[str, pl.DataFrame]:
    return {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}


def rebuilt(read: dict[str, pl.DataFrame]) -> list:
    """The rows of the schema, made from the tables alone."""
    labels = {action.label: int(action) for action in ACTIONS}
    children = {
        name: read[name].partition_by("episode_id", as_dict=True)
        for name in ("steps", "artifacts", "rubric", "maturity", "maturity_events")
    }

    def of(name: str, episode: str) -> list[dict]:
        found = children[name].get((episode,))
        return [] if found is None else found.drop("episode_id").rows(named=True)

    def group(step: dict, prefix: str, there: str) -> dict | None:
        if step[f"{prefix}_{there}"] is None:
            return None
        return {key.removeprefix(f"{prefix}_"): value for key, value in step.items() if key.startswith(f"{prefix}_")}

    def step_row(step: dict) -> dict:
        claims = step.pop("claims"), step.pop("claims_supported")
        event = {
            "tool": group(step, "tool", "name"),
            "check": group(step, "check", "score"),
            "artifact": group(step, "artifact", "sha256"),
            "claims": None
            if claims[0] is None
            else [{"text": t, "supported": s} for t, s in zip(*claims, strict=True)],
            **{name: step[name] for name in ("status", "error", "evidence", "note", "calls", "seconds", "cost_usd")},
            **{name: step[name] for name in ("prompt_tokens", "completion_tokens")},
        }
        return {
            "t": step["t"],
            "event": event,
            **{name: step[name] for name in ("features", "mask", "propensities")},
            "base_action": labels[step["base_action"]],
            "action": labels[step["action"]],
        }

    return [
        {
            **row,
            "steps": [step_row(step) for step in of("steps", row["episode_id"])],
            "artifacts": of("artifacts", row["episode_id"]),
            "rubric": [{"id": r.pop("criterion"), **r} for r in of("rubric", row["episode_id"])],
            "maturity": [{"score": r.pop("hms"), **r} for r in of("maturity", row["episode_id"])],
            "maturity_events": of("maturity_events", row["episode_id"]),
        }
        for row in read["episodes"].rows(named=True)
    ]


def test_nothing_is_lost(tmp_path, made):
    done = export(ReplayBuffer(tmp_path / "b"), "parquet", tmp_path / "out")
    back = {row["episode_id"]: to_episode(row) for row in rebuilt(tables(tmp_path / "out"))}
    assert done.episodes == len(back) == len(made) == 35
    assert done.steps == sum(len(e.steps) for e in made)
    for episode in made:
        there = back[episode.episode_id]
        assert to_json(there) == to_json(episode)


def to_json(episode) -> dict:
    row = to_row(episode)
    for step in row["steps"]:
        step |= {name: step[name].tolist() for name in ("features", "mask", "propensities")}
    return row


def test_the_tables_are_flat(tmp_path, made):
    export(ReplayBuffer(tmp_path / "b"), "parquet", tmp_path / "out")
    for table in tables(tmp_path / "out").values():
        for kind in table.schema.dtypes():
            inner = kind.inner if isinstance(kind, pl.List) else kind
            assert not isinstance(inner, pl.Struct | pl.List)


def test_only_what_was_asked_for(tmp_path, made):
    done = export(ReplayBuffer(tmp_path / "b"), "parquet", tmp_path / "out", phase="eval")
    read = tables(tmp_path / "out")
    assert set(read["episodes"]["phase"]) == {"eval"}
    assert done.episodes == read["episodes"].height == 10
    assert set(read["steps"]["episode_id"]) == set(read["episodes"]["episode_id"])
    assert "10 episodes" in (tmp_path / "out" / "README.md").read_text()


def test_the_propensity_is_that_of_the_action_taken(tmp_path, made):
    export(ReplayBuffer(tmp_path / "b"), "parquet", tmp_path / "out")
    steps = tables(tmp_path / "out")["steps"]
    labels = [action.label for action in ACTIONS]
    for row in steps.iter_rows(named=True):
        assert row["propensity"] == row["propensities"][labels.index(row["action"])] > 0
        assert row["mask"][labels.index(row["action"])]


def test_the_same_bytes_whatever_the_order_of_commits(tmp_path, made):
    other = ReplayBuffer(tmp_path / "other")
    for start in range(28, -1, -7):
        other.append(made[start : start + 7])
    for buffer, out in ((ReplayBuffer(tmp_path / "b"), "x"), (other, "y")):
        export(buffer, "parquet", tmp_path / out)
    for path in (tmp_path / "x").iterdir():
        assert path.read_bytes() == (tmp_path / "y" / path.name).read_bytes(), path.name
