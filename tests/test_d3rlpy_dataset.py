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
from buffers.d3rlpy_dataset import load_d3rlpy, mdp_dataset, to_d3rlpy
from harness_mdp.errors import InputError, UnusableBuffer
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


def test_the_action_count_and_every_step_survive_save_and_load(tmp_path):
    buffer = ReplayBuffer(tmp_path / "b")
    made = next(e for e in (episode(i) for i in range(500)) if e.steps[-1].action is not Action.SUBMIT)
    buffer.append([made])
    dataset, _ = buffer.to_d3rlpy("made_up")
    file = tmp_path / "dataset.h5"
    with file.open("w+b") as opened:
        dataset.dump(opened)
    again = load_d3rlpy(file)
    assert again.dataset_info.action_size == 7
    assert again.transition_count == dataset.transition_count == len(made.steps)
    for before, after in zip(dataset.episodes, again.episodes, strict=True):
        assert after.terminated
        for name in ("observations", "actions", "rewards"):
            assert np.array_equal(getattr(before, name), getattr(after, name))


def test_the_action_count_of_a_learner_survives_save_and_load(tmp_path):
    buffer = ReplayBuffer(tmp_path / "b")
    made = next(e for e in (episode(i) for i in range(500)) if e.steps[-1].action is not Action.SUBMIT)
    buffer.append([made])
    dataset, _ = buffer.to_d3rlpy("made_up")
    from d3rlpy import load_learnable
    from d3rlpy.algos import DoubleDQNConfig

    learner = DoubleDQNConfig().create(device="cpu")
    learner.build_with_dataset(dataset)
    learner.save(str(tmp_path / "learner.d3"))
    again = load_learnable(str(tmp_path / "learner.d3"))
    states = buffer.tensors("made_up").features
    assert learner.impl.action_size == again.impl.action_size == 7
    for action in range(7):
        chosen = np.full(len(states), action)
        assert np.array_equal(again.predict_value(states, chosen), learner.predict_value(states, chosen))


@pytest.mark.parametrize("content", [None, b"not HDF5"])
def test_a_file_that_is_no_dataset_is_named(tmp_path, content):
    file = tmp_path / "other.h5"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=r"other\.h5.*expected an HDF5 file"):
        load_d3rlpy(file)


def test_batches_as_arrays_are_the_batches_of_d3rlpy(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(20))
    arrays = buffer.tensors("made_up")
    plain, quick = (
        mdp_dataset(arrays.features, arrays.action, arrays.lengths, arrays.returns, batched=batched)
        for batched in (False, True)
    )
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        expected = plain.sample_transition_batch(200)
        np.random.seed(5)  # noqa: NPY002
        found = quick.sample_transition_batch(200)
    finally:
        np.random.set_state(before)  # noqa: NPY002
    assert expected.terminals.any()
    for name in ("observations", "actions", "rewards", "next_observations", "next_actions", "terminals", "intervals"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs), name
