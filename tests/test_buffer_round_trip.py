"""What is appended comes back: equal, once, and as arrays and frames that say the same."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buffers import ReplayBuffer
from buffers.location import Location
from buffers.log import create_log
from buffers.rows import decode_text, encode_text, to_episode, to_table
from harness_mdp.errors import UnusableBuffer
from harness_mdp.mdp import Action, Budgets, Episode, Termination
from tests.episodes import MADE_UP, MadeUpSetting, episode, episodes


def plain(value: object) -> object:
    """Any record as nested tuples that compare exactly: arrays by dtype, shape and bytes."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Enum):
        return (type(value).__name__, value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value).__name__, *((f.name, plain(getattr(value, f.name))) for f in fields(value)))
    if isinstance(value, dict):
        return tuple(sorted((k, plain(v)) for k, v in value.items()))
    if isinstance(value, tuple | list):
        return tuple(plain(v) for v in value)
    if isinstance(value, float):
        return value.hex()
    return value


def same(left: Episode, right: Episode) -> bool:
    return plain(left) == plain(right)


def test_episodes_come_back_bit_for_bit(tmp_path):
    made = episodes(40)
    buffer = ReplayBuffer(tmp_path / "buffer")
    assert buffer.append(made) == 40
    back = {e.episode_id: e for e in buffer.episodes()}
    assert len(back) == 40
    assert all(same(e, back[e.episode_id]) for e in made)


@given(
    index=st.integers(0, 10_000),
    odd=st.text(st.characters(codec=None), max_size=20) | st.sampled_from(["\x1a", "\ud800", "\x1ad800", "\x00"]),
    tokens=st.none() | st.integers(0, 2**62),
    usd=st.none() | st.floats(0, 1e6),
    cost=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=60, deadline=None)
def test_any_text_number_and_null_survives_the_row(index, odd, tokens, usd, cost):
    made = replace(episode(index, odd_text=odd), budgets=Budgets(tokens, usd), cost_usd=cost)
    assert same(to_episode(to_table([made]).to_pylist()[0]), made)


@given(st.text(st.characters(codec=None)))
def test_text_encoding_can_be_undone_and_is_utf8(text):
    encoded = encode_text(text)
    encoded.encode("utf-8")
    assert decode_text(encoded) == text


@given(st.lists(st.integers(0, 300), unique=True, max_size=12))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_set_of_episodes_survives_the_table(tmp_path_factory, indices):
    buffer = ReplayBuffer(tmp_path_factory.mktemp("property") / "buffer")
    made = [episode(i, odd_text="é\ud83d") for i in indices]
    assert buffer.append(made) == len(made)
    if made:
        back = {e.episode_id: e for e in buffer.episodes()}
        assert all(same(e, back[e.episode_id]) for e in made)
    assert buffer.episode_ids() == {e.episode_id for e in made}


def test_an_episode_is_stored_once(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = episodes(10)
    assert buffer.append(made[:6]) == 6
    assert buffer.append(made) == 4
    assert buffer.append([made[0], made[0]]) == 0
    assert ReplayBuffer(tmp_path).append(made) == 0
    assert len(list(buffer.episodes())) == 10


def test_ids_by_phase_and_run(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    assert buffer.episode_ids() == frozenset()
    assert buffer.episode_ids(phase="eval") == frozenset()
    buffer.append(episodes(4, phase="collect", run="a"))
    buffer.append([episode(i, phase="eval", run="b", executor="other") for i in range(3)])
    assert len(buffer.episode_ids()) == 7
    assert len(buffer.episode_ids(phase="eval")) == 3
    assert len(buffer.episode_ids(phase="collect", run="b")) == 0


def test_an_event_that_contradicts_its_step_is_refused(tmp_path):
    made = episode(0)
    step = replace(made.steps[0], action=Action.REVISE)
    with pytest.raises(ValueError, match=r"step 1: the event says"):
        ReplayBuffer(tmp_path).append([replace(made, steps=(step, *made.steps[1:]))])


def test_tensors_equal_the_episodes(tmp_path):
    made = episodes(60, tasks=12)
    buffer = ReplayBuffer(tmp_path)
    for start in range(0, 60, 20):
        buffer.append(made[start : start + 20])
    arrays = buffer.tensors("made_up")
    by_id = {e.episode_id: e for e in made}
    ordered = [by_id[name] for name in arrays.episode_ids]
    steps = [step for e in ordered for step in e.steps]
    assert [(e.task_id, e.rollout) for e in ordered] == sorted((e.task_id, e.rollout) for e in made)
    assert arrays.n_steps == len(steps)
    assert arrays.features.dtype == np.float32
    assert arrays.features.tobytes() == np.stack([s.features for s in steps]).tobytes()
    assert np.array_equal(arrays.mask, np.stack([s.mask for s in steps]))
    assert np.array_equal(arrays.propensities, np.stack([s.propensities for s in steps]))
    assert arrays.action.tolist() == [s.action for s in steps]
    assert arrays.base_action.tolist() == [s.base_action for s in steps]
    assert arrays.t.tolist() == [s.t for s in steps]
    assert arrays.propensity.tolist() == [s.propensities[s.action] for s in steps]
    assert arrays.episode.tolist() == [i for i, e in enumerate(ordered) for _ in e.steps]
    assert arrays.returns.tolist() == [e.return_ for e in ordered]
    assert [arrays.task_ids[k] for k in arrays.task] == [e.task_id for e in ordered]
    assert arrays.tokens.tolist() == [e.tokens for e in ordered]
    assert arrays.version == buffer.version


def test_tensors_do_not_depend_on_the_order_of_commits(tmp_path):
    made = episodes(20)
    forward, backward = ReplayBuffer(tmp_path / "a"), ReplayBuffer(tmp_path / "b")
    for e in made:
        forward.append([e])
    backward.append(made[::-1])
    backward.compact()
    a, b = forward.tensors("made_up"), backward.tensors("made_up")
    assert a.features.tobytes() == b.features.tobytes()
    assert a.episode_ids == b.episode_ids


def test_torch_tensors_hold_the_same_numbers(tmp_path):
    torch = pytest.importorskip("torch")
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(5))
    arrays = buffer.tensors("made_up")
    tensors = arrays.torch()
    assert tensors["features"].dtype is torch.float32
    assert tensors["mask"].dtype is torch.bool
    assert np.array_equal(tensors["propensities"].numpy(), arrays.propensities)


def test_an_unknown_price_is_null_and_not_zero(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append([replace(episode(0), cost_usd=None), episode(1)])
    assert np.isnan(buffer.tensors("made_up").cost_usd).tolist() == [True, False]
    assert buffer.episodes_df()["cost_usd"].null_count() == 1


def test_an_episode_without_steps_is_kept(tmp_path):
    made = replace(episode(0), steps=(), termination=Termination.BUDGET)
    buffer = ReplayBuffer(tmp_path)
    buffer.append([made, episode(1)])
    arrays = buffer.tensors("made_up")
    assert arrays.lengths[0] == 0
    assert arrays.episode.min() == 1
    assert buffer.steps_df()["episode_id"].n_unique() == 1
    assert same(next(iter(buffer.episodes(episode_id=made.episode_id))), made)


def test_frames_in_polars_and_pandas(tmp_path):
    made = episodes(12)
    buffer = ReplayBuffer(tmp_path)
    buffer.append(made)
    frame = buffer.episodes_df()
    assert frame.height == 12
    assert sorted(frame["n_steps"]) == sorted(len(e.steps) for e in made)
    by_id = {e.episode_id: e for e in made}
    assert frame["maturity_paper"].to_list() == [by_id[i].maturity["paper"] for i in frame["episode_id"]]
    assert {"episode_id", "task_id", "setting", "eval_status", "return", "tokens"} <= set(frame.columns)
    steps = buffer.steps_df()
    assert steps.height == sum(len(e.steps) for e in made)
    taken = {(e.episode_id, s.t): s for e in made for s in e.steps}
    for row in steps.iter_rows(named=True):
        step = taken[row["episode_id"], row["t"]]
        assert row["action"] == step.action.label
        assert row["propensity"] == step.propensities[step.action]
        assert row["tokens"] == step.event.tokens
        assert row["check_score"] == (step.event.check.score if step.event.check else None)
    assert buffer.episodes_df("pandas")["return"].sum() == pytest.approx(sum(e.return_ for e in made))
    assert len(buffer.steps_df("pandas", split="train")) == steps.height
    assert buffer.steps_df(split="eval").height == 0


def test_named_features(tmp_path, monkeypatch):
    monkeypatch.setattr("buffers.frames.open_setting", lambda name: MADE_UP)
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(3))
    frame = buffer.steps_df(named_features=True)
    assert [c for c in frame.columns if c.startswith("f_")] == [f"f_{n}" for n in MADE_UP.schema.names]
    assert frame["f_steps_used"].to_list() == pytest.approx([(t - 1) / 10 for t in frame["t"]])


def test_scan_is_the_table(tmp_path):
    import polars as pl

    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(8))
    mean = buffer.scan().filter(pl.col("phase") == "collect").select(pl.col("return").mean()).collect().item()
    assert mean == pytest.approx(np.mean([e.return_ for e in episodes(8)]))


def test_filters_select_the_same_episodes_everywhere(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append([*episodes(6), *episodes(5, split="eval", run="b", executor="b"), *episodes(4, executor="c")])
    where = {"split": "train", "executor": ["simulated:medium", "c"]}
    ids = {e.episode_id for e in buffer.episodes(**where)}
    assert len(ids) == 10
    assert ids == set(buffer.episodes_df(**where)["episode_id"])
    assert ids == set(buffer.steps_df(**where)["episode_id"])
    assert ids == set(buffer.tensors("made_up", mixed_executors=True).episode_ids)


def test_an_old_version_can_be_read_again(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(5))
    version = buffer.tensors("made_up").version
    buffer.append(episodes(9))
    buffer.compact()
    old = ReplayBuffer(tmp_path, version=version)
    assert old.tensors("made_up").n_episodes == 5
    assert buffer.tensors("made_up").n_episodes == 9


def test_stats_count_by_setting_phase_split_and_status(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append([*episodes(7), *episodes(2, setting=MadeUpSetting(name="other"), phase="eval", split="eval")])
    stats = buffer.stats
    assert stats.episodes == 9
    assert sum(n for (setting, *_), n in stats.counts.items() if setting == "other") == 2
    assert stats.data_bytes > 0


def test_a_table_without_episodes_gives_empty_frames(tmp_path):
    create_log(Location(str(tmp_path)))
    buffer = ReplayBuffer(tmp_path)
    assert buffer.exists
    assert buffer.episode_ids() == frozenset()
    assert buffer.episodes_df().height == 0
    assert buffer.steps_df().height == 0
    assert list(buffer.episodes()) == []
    with pytest.raises(UnusableBuffer, match="no episodes at all"):
        buffer.tensors("made_up")


def test_single_columns_say_what_the_episodes_say(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = episodes(12)
    buffer.append(made[:5])
    buffer.append(made[5:])
    columns = ["episode_id", "return", "steps.action", "steps.mask", "steps.event.tool.ok", "rubric.score", "maturity"]
    columns += ["steps.event.claims.supported"]
    frame = buffer.read(columns)
    assert frame.columns == columns
    back = {row["episode_id"]: row for row in frame.iter_rows(named=True)}
    for e in made:
        row = back[e.episode_id]
        assert row["return"] == e.return_
        assert row["steps.action"] == [int(step.action) for step in e.steps]
        assert row["steps.mask"] == [step.mask.tolist() for step in e.steps]
        assert row["steps.event.tool.ok"] == [event.tool and event.tool.ok for event in e.events]
        claims = [None if event.claims is None else [c.supported for c in event.claims] for event in e.events]
        assert row["steps.event.claims.supported"] == claims
        assert row["rubric.score"] == [score for _, score, _ in e.rubric]
        assert row["maturity"] == [{"preset": "paper", "score": e.maturity["paper"]}]
    both = buffer.read(["steps", "steps.action"], episode_id=made[0].episode_id)
    assert [step["action"] for step in both["steps"][0]] == both["steps.action"][0].to_list()
    assert set(buffer.read(["steps.action", "steps.event"]).schema["steps.event"].inner.to_schema()) >= {"tool", "note"}


def test_single_columns_of_chosen_episodes(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = [*episodes(6), *(replace(e, seed=7, episode_id=f"again-{e.episode_id}") for e in episodes(6))]
    buffer.append(made)
    hashes = {e.task_hash for e in made[:2]}
    found = buffer.read(["episode_id"], phase="collect", seed=7, executor=made[0].executor, task_hash=hashes)
    assert set(found["episode_id"]) == {e.episode_id for e in made[6:8]}
    assert len(buffer.read(["return"], seed=[0, 7])) == 12
    none = buffer.read(["steps.action", "steps.event.tool.ok"], episode_id=[])
    assert none.is_empty()
    assert none.columns == ["steps.action", "steps.event.tool.ok"]


def test_tasks_of_different_contents_are_different_though_they_share_an_id(tmp_path):
    """Generators number their tasks anew for every seed; a baseline over both would compare strangers."""
    buffer = ReplayBuffer(tmp_path)
    first = episodes(6, tasks=3)
    second = [replace(e, task_hash=f"{e.task_hash}-other", episode_id=f"other-{e.episode_id}") for e in first]
    buffer.append([*second, *first])
    arrays = buffer.tensors("made_up")
    assert len(arrays.task_ids) == len(arrays.task_hashes) == 6
    assert len(set(arrays.task_ids)) == 3
    by_id = {e.episode_id: e for e in [*first, *second]}
    ordered = [by_id[name] for name in arrays.episode_ids]
    assert [arrays.task_hashes[k] for k in arrays.task] == [e.task_hash for e in ordered]
    assert [arrays.task_ids[k] for k in arrays.task] == [e.task_id for e in ordered]
    assert (np.diff(arrays.task) >= 0).all()
    backward = ReplayBuffer(tmp_path / "backward")
    backward.append([*first, *second])
    again = backward.tensors("made_up")
    assert (again.task_ids, again.task_hashes) == (arrays.task_ids, arrays.task_hashes)
    assert np.array_equal(again.task, arrays.task)


def test_arrays_name_the_tasks_contents_and_the_horizons(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    made = episodes(5, tasks=3)
    buffer.append(made)
    arrays = buffer.tensors("made_up")
    hashes = {e.task_id: e.task_hash for e in made}
    assert arrays.task_hashes == tuple(hashes[task] for task in arrays.task_ids)
    assert arrays.horizons == (10,)
    longer = replace(episodes(1, setting=MadeUpSetting(horizon=14))[0], episode_id="longer", task_hash="changed")
    buffer.append([longer])
    arrays = buffer.tensors("made_up")
    assert arrays.horizons == (10, 14)
    assert len(arrays.task_hashes) == 4
    assert "changed" in arrays.task_hashes
