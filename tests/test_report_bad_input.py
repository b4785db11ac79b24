"""What cannot be reported is refused with exit code 2, by name, and no page is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from buffers import Attempt, ReplayBuffer
from experiments.report import report
from experiments.report_config import ReportConfig
from harness_mdp.errors import ConfigError, HarnessError, SchemaMismatch
from tests.commands import command
from tests.episodes import Behaviour, MadeUpSetting, episode, episodes
from tests.report_buffers import made_up


def attempt(index: int) -> Attempt:
    return Attempt(
        f"{index:032x}", "eval-1", "made_up", f"task-{index:03d}", 0, "base", "APIConnectionError", "down", ""
    )


def refused(path: Path, out: Path | None = None, **changes) -> str:
    page = out or path.parent / "page.html"
    with pytest.raises(HarnessError) as error:
        report(ReportConfig(buffer=str(path), out=str(page), **changes))
    assert error.value.exit_code == 2
    assert not page.is_file()
    return str(error.value)


def test_an_empty_buffer(tmp_path: Path) -> None:
    ReplayBuffer(tmp_path / "buffer").prepare()
    assert "holds no episodes; collect and evaluate first" in refused(tmp_path / "buffer")


def test_a_folder_without_a_buffer(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "folder" in refused(tmp_path / "folder")
    assert "nowhere" in refused(tmp_path / "nowhere")


def test_all_episodes_infra_missing(tmp_path: Path) -> None:
    buffer = ReplayBuffer(tmp_path / "buffer")
    buffer.prepare()
    buffer.harness.add_attempts([attempt(index) for index in range(7)])
    told = refused(tmp_path / "buffer")
    assert "all 7 episodes that were tried are infra_missing" in told
    assert "APIConnectionError: down" in told
    assert "run the same command again" in told


def test_an_evaluation_of_one_task(tmp_path: Path) -> None:
    made_up(tmp_path / "buffer", tasks=1)
    told = refused(tmp_path / "buffer")
    assert "1 task" in told
    assert "run eval-1" in told


def test_a_collection_of_one_task(tmp_path: Path) -> None:
    ReplayBuffer(tmp_path / "buffer").append(episodes(3, tasks=1))
    assert "one task only" in refused(tmp_path / "buffer")


def test_arms_that_are_not_matched(tmp_path: Path) -> None:
    buffer = made_up(tmp_path / "buffer", arms=("base",))
    policy = Behaviour(name="check_revise")
    kept = [episode(i, tasks=4, policy=policy, phase="eval", split="eval", run="eval-1") for i in range(5)]
    buffer.append(kept)
    told = refused(tmp_path / "buffer")
    assert "the arms are not matched" in told
    assert "check_revise lacks 3" in told
    assert str(tmp_path / "buffer") in told


def test_versions_of_a_setting_that_are_mixed(tmp_path: Path) -> None:
    buffer = made_up(tmp_path / "buffer")
    buffer.append(episodes(2, setting=MadeUpSetting(version=2)))
    with pytest.raises(SchemaMismatch):
        report(ReportConfig(buffer=str(tmp_path / "buffer"), out=str(tmp_path / "page.html")))
    assert "version 1 and 2" in refused(tmp_path / "buffer")


def test_buffers_of_another_schema_version_beneath_one_folder(tmp_path: Path) -> None:
    made_up(tmp_path / "all" / "one")
    shutil.copytree(tmp_path / "all" / "one", tmp_path / "all" / "two")
    log = tmp_path / "all" / "two" / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace("schema version 1", "schema version 7"))
    assert "schema version 7" in refused(tmp_path / "all")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"preset": "lenient"}, "paper or strict"),
        ({"details_mb": -1.0}, "details_mb"),
        ({"runs": ["eval-nothing"]}, "eval-nothing"),
    ],
)
def test_a_key_that_cannot_be(tmp_path: Path, changes: dict, named: str) -> None:
    made_up(tmp_path / "buffer")
    assert named in refused(tmp_path / "buffer", **changes)


def test_a_page_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    assert "ends in .html" in refused(tmp_path / "buffer", out=tmp_path / "page.pdf")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        report(ReportConfig(buffer=str(tmp_path / "buffer"), out=str(tmp_path / "folder.html")))


def test_the_command_says_it_in_one_line_with_exit_code_2(tmp_path: Path) -> None:
    ReplayBuffer(tmp_path / "buffer").prepare()
    _, err = command("harness_mdp.report", f"buffer={tmp_path}/buffer", f"out={tmp_path}/page.html", expect=2)
    assert err.startswith("harness-mdp report: ")
    assert len(err.splitlines()) == 1
