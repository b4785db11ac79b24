"""Export as a Minari dataset: loaded from the folder, never from a network, with decisions and returns as stored."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from buffers import ReplayBuffer
from buffers.export import export
from buffers.export.minari_dataset import dataset_id
from harness_mdp.errors import ConfigError, SchemaMismatch, UnusableBuffer
from harness_mdp.mdp import N_ACTIONS, Termination, fold, start
from harness_mdp.settings.scripts import decision_point
from tests.episodes import MADE_UP, Behaviour, MadeUpSetting, episode, episodes

minari = pytest.importorskip("minari", reason="minari is not installed")

OTHER = MadeUpSetting(name="other_one", version=3)


def settings(name: str) -> MadeUpSetting:
    return {"made_up": MADE_UP, "other_one": OTHER}[name]


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    made = [*episodes(25), *episodes(6, phase="eval", split="eval", policy=Behaviour(0.2, name="nul \x00"))]
    made += [*episodes(8, setting=MadeUpSetting(horizon=3), executor="other"), *episodes(4, setting=OTHER)]
    ReplayBuffer(tmp_path / "b").append(made)
    before = dict(os.environ)
    export(ReplayBuffer(tmp_path / "b"), "minari", tmp_path / "out", open_setting=settings)
    assert dict(os.environ) == before  # Minari reads its place from there
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "out"))
    return made, minari.load_dataset("harness-mdp/made_up-v1", download=False)


def test_decisions_and_returns_come_back(loaded):
    made, dataset = loaded
    made = {e.episode_id: e for e in made if e.setting == "made_up"}
    facts = list(dataset.storage.get_episode_metadata(range(len(dataset))))
    assert {str(fact["episode_id"]) for fact in facts} == set(made)
    assert dataset.total_episodes == len(made)
    assert dataset.total_steps == sum(len(e.steps) for e in made.values())
    for fact, there in zip(facts, dataset, strict=True):
        e = made[str(fact["episode_id"])]
        assert there.observations.dtype == np.float32
        np.testing.assert_array_equal(there.observations[:-1], np.stack([s.features for s in e.steps]))
        np.testing.assert_array_equal(there.actions, [int(s.action) for s in e.steps])
        np.testing.assert_array_equal(there.infos["propensities"][:-1], np.stack([s.propensities for s in e.steps]))
        np.testing.assert_array_equal(there.infos["mask"][:-1], np.stack([s.mask for s in e.steps]))
        np.testing.assert_array_equal(there.infos["base_action"][:-1], [int(s.base_action) for s in e.steps])
        assert there.rewards.sum() == there.rewards[-1] == e.return_ == fact["return"]
        assert there.terminations.tolist() == [False] * (len(e.steps) - 1) + [True]
        assert not there.truncations.any()
        assert (fact["termination"], fact["rollout"], fact["seed"]) == (e.termination.value, e.rollout, e.seed)


def test_the_last_observation_is_the_state_after_the_last_step(loaded):
    made, dataset = loaded
    made = {e.episode_id: e for e in made}
    forced = 0
    for fact, there in zip(dataset.storage.get_episode_metadata(range(len(dataset))), dataset, strict=True):
        e = made[str(fact["episode_id"])]
        point = decision_point(MADE_UP, fold(e.events, start(e.horizon, e.budgets))[-1])
        np.testing.assert_array_equal(there.observations[-1], point.features)
        np.testing.assert_array_equal(there.infos["mask"][-1], point.mask)
        assert not there.infos["propensities"][-1].any()
        forced += e.termination is not Termination.SUBMIT
    assert forced > 0  # forced submissions are among them, and end with a termination too


def test_spaces_and_words(loaded):
    _, dataset = loaded
    assert dataset.action_space.n == N_ACTIONS
    assert dataset.observation_space.shape == (len(MADE_UP.schema),)
    facts = dataset.storage.metadata["harness_mdp"]
    assert facts["actions"] == ["observe", "retrieve", "call_tool", "draft", "check", "revise", "submit"]
    assert facts["feature_names"] == list(MADE_UP.schema.names)
    assert facts["simulated"] is True
    assert "simulated" in dataset.storage.metadata["description"]


def test_every_setting_is_a_dataset_of_its_own(loaded):
    assert set(minari.list_local_datasets()) == {"harness-mdp/made_up-v1", "harness-mdp/other_one-v3"}
    assert len(minari.load_dataset("harness-mdp/other_one-v3")) == 4


def test_an_id_holds_only_letters_that_minari_allows():
    assert dataset_id("my setting/../x", 2) == "harness-mdp/my_setting____x-v2"


def test_a_setting_that_is_not_known_here_is_named(tmp_path):
    ReplayBuffer(tmp_path / "b").append(episodes(2))
    with pytest.raises(ConfigError, match=r"'made_up' is not known here.*settings=\[MODULE:CLASS\]"):
        export(ReplayBuffer(tmp_path / "b"), "minari", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_episodes_of_another_version_are_refused(tmp_path):
    ReplayBuffer(tmp_path / "b").append(episodes(2))
    with pytest.raises(SchemaMismatch, match="feature schema"):
        export(
            ReplayBuffer(tmp_path / "b"), "minari", tmp_path / "out", open_setting=lambda _: MadeUpSetting(version=2)
        )


def test_an_episode_without_a_step_is_named(tmp_path):
    ReplayBuffer(tmp_path / "b").append([replace(episode(0), steps=(), episode_id="empty"), episode(1)])
    with pytest.raises(UnusableBuffer, match="empty has no step"):
        export(ReplayBuffer(tmp_path / "b"), "minari", tmp_path / "out", open_setting=settings)
    assert not (tmp_path / "out").exists()
