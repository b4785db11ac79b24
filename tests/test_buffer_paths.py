"""Whatever the path is: it works, or is refused before anything is written, with what to do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from buffers import Attempt, HarnessFolder, ReplayBuffer
from buffers.verify import verify
from harness_mdp.errors import ConfigError, InputError, UnusableBuffer
from harness_mdp.scoring.maturity import MaturityConfig
from harness_mdp.settings import open_setting
from tests.episodes import MADE_UP, episode, episodes

NOBODY = 65534


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user whom permission bits stop; root would write anyway."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may look into and only its owner may write; `tmp_path` lies in a private one."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def lock(path: Path) -> None:
    """Read-only, all the way down."""
    for below in (path, *path.rglob("*")):
        below.chmod(0o555 if below.is_dir() else 0o444)


def unlock(path: Path) -> None:
    for below in (path, *path.rglob("*")):
        below.chmod(0o755 if below.is_dir() else 0o644)


def contents(path: Path) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


@pytest.mark.parametrize(
    "name",
    ["with space", "100% sure", "a#b", "a?b", "it's", 'so "called"', "Übung-日本-😀", "{a}<b>`c`$d*&;=", "file:x"],
)
def test_everything_works_under_an_odd_name(tmp_path, name):
    buffer = ReplayBuffer(tmp_path / name / "b")
    made = episodes(6)
    buffer.prepare()
    assert [buffer.append([e]) for e in made] == [1] * 6
    before = set(contents(tmp_path))
    buffer.compact()
    buffer.vacuum(0)
    assert len(before - set(contents(tmp_path))) == 6
    ids = {e.episode_id for e in made}
    assert set(buffer.scan().select("episode_id").collect()["episode_id"]) == ids
    assert set(buffer.read(["episode_id"])["episode_id"]) == ids
    assert set(buffer.episodes_df()["episode_id"]) == ids
    assert set(buffer.tensors("made_up").episode_ids) == ids
    assert verify(buffer, lambda _: MADE_UP).ok
    assert ReplayBuffer(tmp_path / name / "b").append(made) == 0
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_re_scores_work_under_an_odd_name(tmp_path):
    buffer = ReplayBuffer(tmp_path / "50% of it" / "#1 ?")
    buffer.append([episode(i, setting=open_setting("coding")) for i in range(3)])
    config = MaturityConfig.strict()
    assert buffer.rescore(config) == 3
    assert len(buffer.rescores_df(config_hash=config.hash)) == 3


@pytest.mark.parametrize("name", ["a[1]", "a|b", "a^b", "a\\b", "pct%20dir", "%41", "a\nb", "a\x7fb", "\ud800"])
def test_a_name_that_delta_cannot_store_is_refused_at_once(tmp_path, name):
    with pytest.raises(InputError, match=r"the Delta library cannot .*Rename that folder, or choose another one"):
        ReplayBuffer(tmp_path / name / "b")
    with pytest.raises(InputError, match="the Delta library cannot"):
        ReplayBuffer("s3://bucket/b", side=tmp_path / name)
    assert contents(tmp_path) == []


def test_the_character_and_the_folder_that_has_it_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"pct%20dir/b: the path has '%20'"):
        ReplayBuffer(tmp_path / "pct%20dir" / "b")
    (tmp_path / "a[1]").mkdir()
    (tmp_path / "plain").symlink_to(tmp_path / "a[1]")
    with pytest.raises(InputError, match=r"has '\[' \(it leads to .*a\[1\]"):
        ReplayBuffer(tmp_path / "plain")
    monkeypatch.chdir(tmp_path / "a[1]")
    with pytest.raises(InputError, match=r"^b: the path has '\['"):
        ReplayBuffer("b")


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_is_refused(path):
    with pytest.raises(InputError, match="path of the buffer is empty"):
        ReplayBuffer(path)


# -- before a run ----------------------------------------------------------------------------------------------


def test_prepare_makes_an_empty_buffer_and_accepts_a_used_one(tmp_path):
    buffer = ReplayBuffer(tmp_path / "new" / "b")
    buffer.prepare()
    assert buffer.exists
    assert buffer.episode_ids() == frozenset()
    assert buffer.read(["episode_id", "steps.mask"]).is_empty()
    assert buffer.scan().collect().is_empty()
    buffer.prepare()
    buffer.append(episodes(2))
    before = contents(tmp_path)
    buffer.prepare()
    assert contents(tmp_path) == before


def test_prepare_refuses_what_is_no_place_for_a_buffer(tmp_path):
    (tmp_path / "file").write_text("text")
    with pytest.raises(InputError, match="this is a file"):
        ReplayBuffer(tmp_path / "file").prepare()
    with pytest.raises(InputError, match=r"file/b: cannot be written .*part of the path is a file"):
        ReplayBuffer(tmp_path / "file" / "b").prepare()
    with pytest.raises(InputError, match=r"other files \(file\)"):
        ReplayBuffer(tmp_path).prepare()
    assert contents(tmp_path) == ["file"]
    with pytest.raises(ConfigError, match="need a local folder"):
        ReplayBuffer("s3://bucket/b").prepare()


def test_prepare_refuses_a_buffer_that_cannot_be_added_to(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    buffer.append(episodes(1))
    with pytest.raises(UnusableBuffer, match="reading only"):
        ReplayBuffer(tmp_path, version=1).prepare()
    log = tmp_path / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace("schema version 1", "schema version 7"))
    with pytest.raises(UnusableBuffer, match="schema version 7"):
        buffer.prepare()
    log.write_bytes(b"")
    with pytest.raises(UnusableBuffer, match="is empty"):
        buffer.prepare()


def test_a_read_only_parent(folder):
    folder.chmod(0o555)
    buffer = ReplayBuffer(folder / "new")
    with without_rights():
        for use in (buffer.prepare, lambda: buffer.append(episodes(1)), lambda: add_attempt(buffer)):
            with pytest.raises(InputError, match=r"cannot be written \(Permission denied.*choose another folder"):
                use()
    assert contents(folder) == []


def test_a_folder_that_cannot_be_looked_into(folder):
    ReplayBuffer(folder / "b").append(episodes(1))
    folder.chmod(0o000)
    with without_rights():
        for use in (lambda b: b.exists, lambda b: b.prepare(), lambda b: b.episodes_df(), lambda b: b.harness.card()):
            with pytest.raises(InputError, match="Permission denied"):
                use(ReplayBuffer(folder / "b"))
    folder.chmod(0o755)


def test_a_finished_buffer_on_a_read_only_folder_reads_and_refuses_more(folder):
    buffer = ReplayBuffer(folder / "b")
    made = episodes(3)
    buffer.append(made)
    add_attempt(buffer)
    buffer.write_card(licences={"made_up": "MIT"}, simulated=True)
    lock(folder)
    with without_rights():
        again = ReplayBuffer(folder / "b")
        with pytest.raises(InputError, match=r"b: cannot be written \(Permission denied"):
            again.prepare()
        with pytest.raises(InputError, match="cannot be written"):
            again.append(episodes(4))
        with pytest.raises(InputError, match="record of failed attempts cannot be written"):
            add_attempt(again)
        with pytest.raises(InputError, match=r"r.json: cannot be written"):
            again.harness.write_run("r", passed=[], resolved={})
        assert again.append(made) == 0
        assert again.tensors("made_up").n_episodes == len(again.scan().collect()) == 3
        assert len(again.harness.attempts()) == 1
        again.write_card(licences={"made_up": "MIT"}, simulated=True)  # says the same
    unlock(folder)


def add_attempt(buffer: ReplayBuffer) -> None:
    buffer.harness.add_attempts([Attempt("e", "run", "made_up", "t", 0, "p", "APITimeoutError", "slow", "")])


def test_a_file_in_the_place_of_the_harness_folder(tmp_path):
    buffer = ReplayBuffer(tmp_path)
    (tmp_path / "_harness").write_text("text")
    for use in (
        buffer.prepare,
        lambda: add_attempt(buffer),
        lambda: buffer.harness.write_run("r", passed=[], resolved={}),
    ):
        with pytest.raises(InputError, match=r"_harness.*cannot be written .*part of the path is a file"):
            use()


def test_an_empty_record_of_attempts_has_none(tmp_path):
    (tmp_path / "attempts.sqlite").touch()
    assert HarnessFolder(tmp_path).attempts() == []
