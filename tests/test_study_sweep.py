"""One command from nothing to tables: cells share buffers, are done once, fail alone, and are gone on with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from buffers import ReplayBuffer
from experiments import study
from experiments.cell_status import CellState, read_status
from experiments.study_sweep import sweep_words

SMALL = ("experiment=smoke", "setting.tasks=10", "collect.rollouts=2", "evaluate.rollouts=1", "method.epochs=2")


@pytest.fixture
def sweep(tmp_path, monkeypatch, capsys):
    """Runs the command in this process; (exit code, stdout, stderr)."""

    def run(*words: str, root: Path = tmp_path / "study", small: bool = True) -> tuple[int, str, str]:
        command = ["study", "-m", *(SMALL if small else ()), *words, f"paths.root={root}"]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            study.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def states(root: Path) -> dict[str, CellState]:
    found = {folder.name: read_status(folder) for folder in (root / "cells").iterdir()}
    return {name: status.state for name, status in found.items() if status is not None}


def test_cells_of_a_setting_share_one_buffer_and_a_second_run_does_no_work(sweep, tmp_path):
    root = tmp_path / "study"
    words = ("setting=planning,tau_retail", "method=bc,aw", "train.seed=1")
    code, first, _ = sweep(*words)
    assert code == 0
    assert "4 cells: 4 done; 0 of them before" in first
    buffers = [folder for folder in (root / "buffers").iterdir() if folder.is_dir()]
    assert len(buffers) == 2
    for path in buffers:
        rows = ReplayBuffer(path).episodes_df()
        assert (rows["phase"].cast(pl.String) == "collect").sum() == 8 * 2
        scripts = rows.filter(pl.col("phase").cast(pl.String) == "eval", pl.col("policy").cast(pl.String) == "base")
        assert scripts["rollout"].to_list() == [1, 1]  # two tasks; seed s has rollout s, whatever the method
    before = {path: ReplayBuffer(path).version for path in buffers}
    stamps = {file: file.stat().st_mtime_ns for file in (root / "cells").rglob("*") if file.is_file()}
    code, second, told = sweep(*words)
    assert code == 0
    assert told == ""
    assert "4 cells: 4 done; 4 of them before" in second
    assert second[second.index("### What was collected") :] == first[first.index("### What was collected") :]
    assert {path: ReplayBuffer(path).version for path in buffers} == before
    assert {file: file.stat().st_mtime_ns for file in (root / "cells").rglob("*") if file.is_file()} == stamps


def test_seeds_of_a_learner_are_one_arm_on_all_rollouts(sweep, tmp_path):
    _, out, _ = sweep("setting=planning", "method=bc", "train.seed=0,1,2")
    main = out[out.index("### Quality") : out.index("### What each part")]
    row = next(line for line in main.splitlines() if "| bc |" in line)
    assert row.split("|")[-3:-1] == [" 2 ", " 6 "]  # tasks, episodes
    assert sum("| bc" in line for line in main.splitlines()) == 1


def test_a_failing_cell_is_told_with_its_reason_and_the_others_complete(sweep, tmp_path):
    words = ("setting=planning,custom", "setting.name=planning,tests.study_settings:Broken", "method=bc")
    code, out, _ = sweep(*words, "setting=custom")
    assert code == 1
    assert "2 cells: 1 done, 1 failed" in out
    row = next(line for line in out.splitlines() if "Broken" in line)
    assert "failed" in row
    assert "tasks over nothing" in row
    found = {name: read_status(tmp_path / "study" / "cells" / name) for name in states(tmp_path / "study")}
    failed = next(status for status in found.values() if status.state is CellState.FAILED)
    assert "in tasks" in failed.traceback
    assert "1 of 2 cells" in out
    assert "left out of every table" in out


def test_a_cell_without_a_needed_key_fails_alone(sweep):
    code, out, _ = sweep("setting=planning", "method=bc", "executor=simulated,openai")
    assert code == 1
    row = next(line for line in out.splitlines() if line.startswith("openai"))
    assert "executor.model" in row
    assert "2 cells: 1 done, 1 failed" in out


def test_a_misspelt_option_is_refused_before_anything_runs(sweep, tmp_path):
    code, out, told = sweep("setting=planning", "method=bc,nope")
    assert (code, out) == (2, "")
    assert "unknown method 'nope'" in told
    assert not (tmp_path / "study" / "cells").exists()


def test_an_unknown_table_is_refused_before_anything_runs(sweep, tmp_path):
    code, out, told = sweep("setting=planning", "method=bc", "tables=[main,nope]")
    assert (code, out) == (2, "")
    assert "tables holds nope; expected some of main, ablation" in told
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        (None, "out", "FILE: cannot be read"),
        (
            "no marks",
            "out",
            "FILE: holds no place for the tables; expected a page with the lines <!--",
        ),
        ("<!-- study: end --><!-- study: begin -->", "out", "holds no place for the tables"),
        (None, "reference", "FILE: cannot be read"),
        ("[1]", "reference", "field 'settings': holds no such figures; expected JSON with the paper's figures"),
        ('{"settings": {"planning": 0.4}}', "reference", "holds no such figures"),
    ],
)
def test_what_stands_beside_and_where_the_tables_go_is_looked_at_before_anything_runs(
    sweep, tmp_path, text: str | None, word: str, said: str
):
    file = tmp_path / "file"
    if text is not None:
        file.write_text(text)
    code, out, told = sweep("setting=planning", f"{word}={file}")
    assert (code, out) == (2, "")
    assert said.replace("FILE", str(file)) in told
    assert not (tmp_path / "study").exists()


def test_a_glob_that_means_nothing_is_refused(sweep, tmp_path):
    code, out, told = sweep("setting=glob(x*)")
    assert (code, out) == (2, "")
    assert "setting=glob(x*) means nothing; expected a pattern of some of coding, dbbench" in told


def test_a_cell_without_a_script_to_compare_with_fails_with_the_reason(sweep, tmp_path):
    code, out, _ = sweep("setting=planning", "evaluate.scripts=[]")
    assert code == 1
    assert "evaluate.scripts is empty" in out
    assert "1 cell: 1 failed" in out
    assert not (tmp_path / "study" / "buffers").exists()


def test_an_interrupted_cell_is_redone_by_the_same_command(sweep, tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_GOES_ON", str(tmp_path / "go"))
    names = "setting.name=planning,tests.study_settings:Stopped,tau_retail"
    words = ("setting=custom", names, "experiment=ablation_credit", "method=bc", "train.seed=0")
    code, out, _ = sweep(*words)
    assert code == 130
    assert "2 cells: 1 done, 1 interrupted" in out
    assert "stopped, 1 more not begun; the same command goes on" in out
    assert sorted(states(tmp_path / "study").values()) == [CellState.DONE, CellState.INTERRUPTED]
    (tmp_path / "go").touch()
    code, out, _ = sweep(*words)
    assert code == 0
    assert "3 cells: 3 done; 1 of them before" in out


def test_tables_stand_beside_the_papers_figures_in_the_page_that_is_named(sweep, tmp_path):
    reference = tmp_path / "paper.json"
    figures = {"base_return": 0.385, "aw_lift_pp": 2.6, "bc_lift_pp": 0.1, "forced_check_lift_pp": -2.3, "slack": 0.552}
    reference.write_text(json.dumps({"settings": {"planning": figures}}))
    page = tmp_path / "results.md"
    page.write_text("above\n<!-- study: begin -->\nold\n<!-- study: end -->\nbelow\n")
    words = ("setting=planning", "policy=paper,portfolio", "method=bc", f"reference={reference}", f"out={page}")
    code, _, _ = sweep(*words)
    text = page.read_text()
    assert code == 0
    assert text.startswith("above\n")
    assert text.endswith("below\n")
    assert "old" not in text
    assert "(simulated" in text
    assert "0.001" in next(line for line in text.splitlines() if "| bc (policy=paper) |" in line)
    assert "0.001" not in next(line for line in text.splitlines() if "| bc (policy=portfolio) |" in line)
    assert "0.552" in text


def test_a_glob_leaves_out_what_names_no_setting():
    words = dict(word.split("=", 1) for word in sweep_words(["-m", "setting=glob(*)", "train.seed=0,1"])[1:])
    settings = words["setting"].split(",")
    assert "coding" in settings
    assert not {"tabular", "custom", "schema"} & set(settings)
    assert len(settings) == 8
    assert sweep_words(["setting=glob([p*,r*])"])[1] == "setting=planning,research"
    assert sweep_words(["setting=tabular"])[1] == "setting=tabular"


def test_joblib_runs_the_same_cells_to_the_same_tables(sweep, tmp_path):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    # The second executor has no model, so that each process has a failure to tell.
    words = ("setting=planning", "method=bc", "executor=simulated,openai", "train.seed=0,1")
    parallel = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    outs: list[str] = []
    for name, launcher in (("one", ()), ("two", parallel)):
        code, out, _ = sweep(*words, *launcher, root=tmp_path / name)
        assert code == 1
        assert "4 cells: 2 done, 2 failed" in out
        outs.append(out[out.index("### What was collected") : out.index("written")])
    assert outs[0] == outs[1]


def test_where_and_how_fast_do_not_name_a_sweep():
    def name(*words: str) -> str:
        return sweep_words(list(words))[-1]

    assert name("method=bc", "train.seed=0,1") == name("-m", "train.seed=0,1", "method=bc", "paths.root=elsewhere")
    assert name("method=bc") == name("method=bc", "hydra/launcher=joblib", "out=page.md")
    assert name("method=bc") != name("method=aw")
