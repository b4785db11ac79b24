"""`_harness/`: attempts, manifests, card."""

from __future__ import annotations

import pytest

from buffers import Attempt, HarnessFolder, ReplayBuffer
from harness_mdp.errors import ConfigError, InputError
from tests.episodes import Behaviour, episodes


def attempt(episode_id: str, message: str = "the endpoint is down") -> Attempt:
    return Attempt(
        episode_id, "run", "made_up", "task-000", 0, "base", "APIConnectionError", message, "2026-01-01T00:00:00"
    )


def test_attempts_are_kept_in_order(tmp_path):
    folder = HarnessFolder(tmp_path / "_harness")
    assert folder.attempts() == []
    folder.add_attempts([attempt("a"), attempt("b")])
    folder.add_attempts([attempt("a", "again, quoting \ud800")])
    assert [a.episode_id for a in folder.attempts()] == ["a", "b", "a"]
    assert folder.attempts()[0] == attempt("a")


def test_an_attempted_episode_is_missing_until_it_finishes(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = episodes(2)
    buffer.harness.add_attempts([attempt(e.episode_id) for e in made])
    assert buffer.infra_missing() == {e.episode_id for e in made}
    buffer.append(made[:1])
    assert buffer.infra_missing() == {made[1].episode_id}


def test_a_manifest_holds_configuration_and_versions(tmp_path):
    folder = HarnessFolder(tmp_path)
    folder.write_run("run-1", passed=["seed=0"], resolved={"seed": 0, "buffer": "b"})
    manifest = folder.runs()["run-1"]
    assert manifest["passed"] == ["seed=0"]
    assert manifest["resolved"] == {"seed": 0, "buffer": "b"}
    assert {"python", "numpy", "deltalake"} <= set(manifest["versions"])


def test_a_damaged_manifest_and_record_are_named(tmp_path):
    folder = HarnessFolder(tmp_path)
    folder.write_run("run-1", passed=[], resolved={}).write_text("{")
    with pytest.raises(InputError, match=r"run-1.json: cannot be read"):
        folder.runs()
    (tmp_path / "attempts.sqlite").write_bytes(b"no database, but long enough to look like one" * 100)
    with pytest.raises(InputError, match=r"attempts.sqlite: the record of failed attempts"):
        folder.attempts()


def test_the_card_counts_what_the_buffer_holds(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append([*episodes(5), *episodes(2, phase="eval", split="eval", policy=Behaviour(0.3))])
    buffer.write_card(licences={"made_up": "MIT"}, simulated=True)
    card = buffer.harness.card()
    assert card is not None
    assert card["executors"] == ["simulated:medium"]
    assert sum(row["episodes"] for row in card["counts"]) == 7
    text = (tmp_path / "_harness" / "README.md").read_text()
    assert "simulated" in text
    assert "made_up: MIT" in text


def test_a_buffer_on_an_object_store_asks_for_a_local_folder():
    with pytest.raises(ConfigError, match=r"Use a local folder for the buffer"):
        _ = ReplayBuffer("s3://bucket/buffer").harness
