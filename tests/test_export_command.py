"""`python -m harness_mdp.export`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import sys

import polars as pl
import pytest

from buffers import Attempt, ReplayBuffer
from buffers.export import export
from experiments.config import SettingConfig
from experiments.export import export as export_configured
from experiments.export_config import ExportConfig
from harness_mdp.errors import ConfigError, InputError, UnusableBuffer
from tests.commands import command
from tests.episodes import episodes


@pytest.fixture
def buffer(tmp_path):
    buffer = ReplayBuffer(tmp_path / "b")
    made = episodes(9)
    buffer.append(made[:8])
    last = made[8]
    buffer.harness.add_attempts(
        [Attempt(last.episode_id, "r", "made_up", last.task_id, 0, "p", "APITimeoutError", "slow", "")]
    )
    buffer.write_card(licences={"made_up": "MIT (made up)"}, simulated=True)
    return buffer


def test_the_command_says_what_it_wrote_and_writes_the_same_again(tmp_path, buffer):
    for number in ("1", "2"):
        out, _ = command(
            "harness_mdp.export",
            f"buffer={buffer.path}",
            "format=parquet",
            f"out={tmp_path / number}",
            env={"PYTHONHASHSEED": number},
        )
        assert "8 episodes" in out
        assert "1 infra_missing have no return" in out
        assert "simulated" in out
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def test_what_was_never_finished_is_no_return(tmp_path, buffer):
    export(buffer, "parquet", tmp_path / "out")
    ids = set(pl.read_parquet(tmp_path / "out" / "episodes.parquet")["episode_id"])
    assert ids == buffer.episode_ids()
    assert not ids & buffer.infra_missing()
    assert buffer.infra_missing()


def test_the_card_goes_along(tmp_path, buffer):
    export(buffer, "atif", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert "made_up: MIT (made up)" in text
    assert "**Simulated.**" in text


@pytest.mark.parametrize("what", ["file", "folder", "link"])
def test_nothing_is_overwritten(tmp_path, buffer, what):
    out = tmp_path / "out"
    if what == "folder":
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    elif what == "file":
        out.write_text("mine")
    else:
        out.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists already"):
        export(buffer, "parquet", out)
    kept = out / "mine.txt" if what == "folder" else out
    assert what == "link" or kept.read_text() == "mine"


def test_an_empty_folder_is_filled(tmp_path, buffer):
    (tmp_path / "out").mkdir()
    export(buffer, "parquet", tmp_path / "out")
    assert (tmp_path / "out" / "steps.parquet").exists()


@pytest.mark.parametrize("out", ["b/out", "b/_harness/out", "b"])
def test_the_buffers_own_folder_is_no_place(tmp_path, buffer, out):
    with pytest.raises(InputError, match=r"buffer's own folder|exists already"):
        export(buffer, "parquet", tmp_path / out)
    assert buffer.stats.episodes == 8


def test_no_place_at_all(tmp_path, buffer):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"out is '\.'; expected the name of a new folder"):
        export(buffer, "parquet", "")
    with pytest.raises(InputError, match="cannot be written"):
        export(buffer, "parquet", tmp_path / "file" / "out")


def test_nothing_to_export(tmp_path, buffer):
    with pytest.raises(InputError, match="there is no buffer here"):
        export(ReplayBuffer(tmp_path / "none"), "parquet", tmp_path / "out")
    with pytest.raises(UnusableBuffer, match=r"no episode with phase=eval; the buffer holds 8 x setting=made_up"):
        export(buffer, "parquet", tmp_path / "out", phase="eval")
    empty = ReplayBuffer(tmp_path / "empty")
    empty.prepare()
    with pytest.raises(UnusableBuffer, match=r"holds no episode; collect first"):
        export(empty, "atif", tmp_path / "out")
    empty.harness.add_attempts([Attempt("e", "r", "made_up", "t", 0, "p", "APITimeoutError", "slow", "")])
    with pytest.raises(UnusableBuffer, match=r"1 were attempted and are infra_missing"):
        export(empty, "minari", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_package_that_is_missing_is_named_with_its_command(tmp_path, buffer, monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ConfigError, match=r'python -m pip install "minari>=0\.5\.4,<0\.6"'):
        export(buffer, "minari", tmp_path / "out")
    monkeypatch.setitem(sys.modules, "atif", None)
    assert any('python -m pip install "atif' in note for note in export(buffer, "atif", tmp_path / "out").notes)


@pytest.mark.parametrize(
    ("key", "value"), [("format", "csv"), ("phase", "training"), ("split", "all"), ("settings", ["nowhere:Nothing"])]
)
def test_a_word_that_means_nothing_is_named(tmp_path, buffer, key, value):
    config = ExportConfig(buffer=buffer.path, format="parquet", out=str(tmp_path / "out"))
    setattr(config, key, value)
    with pytest.raises(ConfigError, match=r"expected"):
        export_configured(config)


def test_a_setting_is_chosen_as_in_every_command(tmp_path, buffer):
    other = ExportConfig(buffer.path, "parquet", str(tmp_path / "out"), setting=SettingConfig("planning"))
    with pytest.raises(UnusableBuffer, match="no episode with setting=planning; the buffer holds 8 x setting=made_up"):
        export_configured(other)
    words = (f"buffer={buffer.path}", "format=parquet", f"out={tmp_path / 'out'}", "phase=collect")
    out, _ = command("harness_mdp.export", *words, "setting=custom", "setting.name=made_up")
    assert "8 episodes" in out
