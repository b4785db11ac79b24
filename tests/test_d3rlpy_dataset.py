"""`to_d3rlpy`: no step is lost, rewards are terminal, masks lie beside, and nothing is printed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from buffers import ReplayBuffer
from buffers.d3rlpy_dataset import to_d3rlpy
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import Action
from tests.episodes import episode, episodes

ROOT = Path(__file__).resolve().parents[1]


def test_every_step_and_return_is_there(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = episodes(40)
    buffer.append(made)
    arrays = buffer.tensors("made_up")
    dataset, masks = buffer.to_d3rlpy("made_up")
    assert dataset.transition_count == arrays.n_steps == sum(len(e.steps) for e in made)
    assert dataset.dataset_info.action_size == 7
    assert all(e.terminated for e in dataset.episodes)
    assert np.array_equal(np.concatenate([e.observations for e in dataset.episodes]), arrays.features)
    assert np.concatenate([e.actions for e in dataset.episodes])[:, 0].tolist() == arrays.action.tolist()
    assert [float(e.rewards.sum()) for e in dataset.episodes] == pytest.approx(arrays.returns.tolist())
    assert all(not e.rewards[:-1].any() for e in dataset.episodes)
    assert masks.shape == (arrays.n_steps, 7)
    assert masks[np.arange(arrays.n_steps), arrays.action].all()


def test_the_action_size_does_not_depend_on_the_actions_seen(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = next(e for e in (episode(i) for i in range(500)) if e.steps[-1].action is not Action.SUBMIT)
    buffer.append([made])
    dataset, _ = buffer.to_d3rlpy("made_up")
    assert dataset.dataset_info.action_size == 7
    assert dataset.transition_count == len(made.steps)


def test_other_returns(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(3))
    dataset, _ = to_d3rlpy(buffer.tensors("made_up"), returns=np.array([0.1, 0.2, 0.3]))
    assert [float(e.rewards[-1, 0]) for e in dataset.episodes] == pytest.approx([0.1, 0.2, 0.3])


def test_an_episode_without_steps_is_named(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    empty = replace(episode(0), steps=())
    buffer.append([empty, episode(1)])
    with pytest.raises(UnusableBuffer, match=empty.episode_id):
        buffer.to_d3rlpy("made_up")


def test_nothing_is_printed_and_no_folder_made(tmp_path):
    ReplayBuffer(tmp_path / "b").append(episodes(3))
    code = "from buffers import ReplayBuffer; ReplayBuffer('b').to_d3rlpy('made_up')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


def test_importing_buffers_loads_no_learning_library():
    code = (
        "import sys, harness_mdp, buffers;"
        "print([m for m in ('torch', 'd3rlpy', 'matplotlib', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
