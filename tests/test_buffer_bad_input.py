"""A path that is no usable buffer is refused by name, with what to do."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from buffers import ReplayBuffer
from harness_mdp.errors import ConfigError, InputError, SchemaMismatch, UnusableBuffer
from tests.episodes import MADE_UP, MadeUpSetting, episodes


def test_missing_folder(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: there is no buffer here.*collect"):
        ReplayBuffer(tmp_path / "nowhere").tensors("made_up")
    assert not (tmp_path / "nowhere").exists()


def test_empty_folder_and_one_with_only_harness(tmp_path):
    with pytest.raises(UnusableBuffer, match="the buffer is empty"):
        ReplayBuffer(tmp_path).episodes_df()
    ReplayBuffer(tmp_path).harness.write_run("r", passed=[], resolved={})
    with pytest.raises(UnusableBuffer, match="the buffer is empty"):
        ReplayBuffer(tmp_path).episodes_df()
    assert ReplayBuffer(tmp_path).append(episodes(2)) == 2


def test_a_file_is_no_buffer(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match="this is a file"):
        ReplayBuffer(tmp_path / "file").episodes_df()


def test_a_folder_with_other_files_is_neither_read_nor_written(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UnusableBuffer, match=r"no buffer \(it holds thesis.txt\)"):
        ReplayBuffer(tmp_path).episodes_df()
    with pytest.raises(InputError, match=r"other files \(thesis.txt\)"):
        ReplayBuffer(tmp_path).append(episodes(1))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_foreign_delta_table(tmp_path):
    write_deltalake(tmp_path, pa.table({"a": [1, 2]}))
    for use in (lambda b: b.episodes_df(), lambda b: b.append(episodes(1))):
        with pytest.raises(UnusableBuffer, match=r"a Delta table, but no buffer \(columns a"):
            use(ReplayBuffer(tmp_path))


def test_another_schema_version(tmp_path):
    ReplayBuffer(tmp_path).append(episodes(1))
    log = tmp_path / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace("schema version 1", "schema version 7"))
    for use in (lambda b: b.episodes_df(), lambda b: b.append(episodes(1))):
        with pytest.raises(UnusableBuffer, match=r"made with buffer schema version 7; .* reads version 1"):
            use(ReplayBuffer(tmp_path))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_half_written_log(tmp_path, share):
    ReplayBuffer(tmp_path).append(episodes(3))
    log = tmp_path / "_delta_log" / "00000000000000000001.json"
    log.write_bytes(log.read_bytes()[: int(share * log.stat().st_size)])
    with pytest.raises(UnusableBuffer, match=r"log cannot be read|damaged"):
        ReplayBuffer(tmp_path).episodes_df()


def test_a_missing_and_a_damaged_data_file(tmp_path):
    ReplayBuffer(tmp_path).append(episodes(3))
    (file,) = tmp_path.glob("*.parquet")
    file.write_bytes(file.read_bytes()[:200])
    for use in (
        lambda b: b.tensors("made_up"),
        lambda b: list(b.episodes()),
        lambda b: b.episode_ids(),
        lambda b: b.read(["tokens", "steps.action"]),
    ):
        with pytest.raises(UnusableBuffer, match=rf"{file.name}.*cannot be read"):
            use(ReplayBuffer(tmp_path))
    file.unlink()
    for use in (lambda b: b.steps_df(), lambda b: b.read(["tokens"]), lambda b: b.scan()):
        with pytest.raises(UnusableBuffer, match=rf"{file.name}.*is missing"):
            use(ReplayBuffer(tmp_path))


def test_a_selection_without_episodes_says_what_there_is(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(4))
    with pytest.raises(UnusableBuffer, match=r"setting=coding.*holds 4 x setting=made_up phase=collect split=train"):
        buffer.tensors("coding")
    with pytest.raises(UnusableBuffer, match="split=eval"):
        buffer.tensors("made_up", split="eval")


def test_a_mixture_of_executors_has_to_be_asked_for(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append([*episodes(3), *episodes(3, executor="other")])
    with pytest.raises(UnusableBuffer, match=r"2 executors \(other; simulated:medium\).*Choose one") as refusal:
        buffer.tensors("made_up")
    assert "=..." not in str(refusal.value)  # which key chooses is for the command to say
    assert "mixed_executors" not in str(refusal.value)
    assert buffer.tensors("made_up", executor="other").n_episodes == 3
    assert buffer.tensors("made_up", mixed_executors=True).n_episodes == 6


def test_a_mixture_of_feature_schemas_is_refused(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    other = [replace(e, feature_schema_id="other", episode_id=f"other-{e.episode_id}") for e in episodes(3)]
    buffer.append([*episodes(3), *other])
    with pytest.raises(SchemaMismatch, match="2 feature schemas"):
        buffer.tensors("made_up")


def test_a_mixture_of_setting_versions_is_refused_until_one_is_chosen(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    newer = MadeUpSetting(version=2)
    # Same features, other grading: nothing but the version tells the episodes apart.
    same = [replace(e, feature_schema_id=MADE_UP.schema.id) for e in episodes(2, setting=newer)]
    buffer.append([*episodes(3), *same])
    with pytest.raises(
        UnusableBuffer, match=r"2 versions of the setting \(3 of version 1, 2 of version 2\)"
    ) as refusal:
        buffer.tensors("made_up")
    assert "setting_version" not in str(refusal.value)  # which key chooses is for the command to say
    assert [buffer.tensors("made_up", setting_version=v).n_episodes for v in (1, 2)] == [3, 2]
    assert buffer.tensors("made_up", setting_version=2).setting_version == 2
    with pytest.raises(UnusableBuffer, match="no episodes with setting_version=3"):
        buffer.tensors("made_up", setting_version=3)
    with pytest.raises(InputError, match="setting_version"):
        buffer.tensors("made_up", setting_version=2**40)


def test_names_of_features_of_an_unknown_setting_say_how_it_becomes_known(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(2))
    with pytest.raises(ConfigError, match=r"'made_up'.*open_setting\(\"MODULE:CLASS\"\).*first"):
        buffer.steps_df(named_features=True)


def test_an_unknown_version(tmp_path):
    ReplayBuffer(tmp_path).append(episodes(1))
    with pytest.raises(InputError, match="no version 9"):
        ReplayBuffer(tmp_path, version=9).episodes_df()
    with pytest.raises(UnusableBuffer, match="reading only"):
        ReplayBuffer(tmp_path, version=1).append(episodes(2))


def test_steps_of_the_wrong_width_are_named(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    good, bad = episodes(2)
    step = replace(bad.steps[-1], features=bad.steps[-1].features[:-1])
    buffer.append([good, replace(bad, steps=(*bad.steps[:-1], step))])
    with pytest.raises(UnusableBuffer, match=rf"episode {bad.episode_id}: features has 30 entries"):
        buffer.tensors("made_up")


def test_a_number_beyond_its_column_is_named_and_nothing_is_written(tmp_path):
    made = episodes(2)
    buffer = ReplayBuffer(tmp_path / "b")
    with pytest.raises(InputError, match=rf"{made[1].episode_id}, field 'seed': {2**63} does not fit; expected int64"):
        buffer.append([made[0], replace(made[1], seed=2**63)])
    step = replace(made[0].steps[0], event=replace(made[0].steps[0].event, calls=2**31))
    with pytest.raises(InputError, match=rf"{made[0].episode_id}, field 'steps': a value does not fit"):
        buffer.append([replace(made[0], steps=(step, *made[0].steps[1:]))])
    assert not buffer.exists


def test_unknown_columns_and_impossible_filters_are_named(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(1))
    with pytest.raises(InputError, match=r"'stepz': a buffer has no such column; expected one of episode_id, run"):
        buffer.read(["stepz"])
    with pytest.raises(InputError, match=r"'steps.event.tol': .* expected one of status, error, evidence, tool"):
        buffer.read(["steps.event.tol"])
    with pytest.raises(InputError, match=r"'return.x': .* expected no further field"):
        buffer.read(["return.x"])
    with pytest.raises(InputError, match="field 'seed'"):
        buffer.read(["return"], seed=2**64)
    with pytest.raises(InputError, match="field 'stage'"):
        buffer.read(["return"], stage="collect")  # pyright: ignore[reportCallIssue]
