"""DB-Bench's own files: what is read, and what is said of damaged ones."""

from __future__ import annotations

import json

import pytest

from harness_mdp.errors import InputError
from harness_mdp.settings.dbbench.setting import DBBench
from tests.dbbench_files import SHARED, few_records, needs_shared_data, record, write


def read(path):
    return DBBench().tasks(seed=0, n=100, path=path)


def test_tasks_are_named_by_file_and_line_and_hold_nothing_sealed(tmp_path):
    store = read(write(tmp_path / "mine.jsonl", few_records()))
    assert [task.id for task in store.tasks] == [f"mine-{line}" for line in range(1, 6)]
    assert [task.public["kind"] for task in store.tasks] == ["select", "select", "insert", "update", "delete"]
    assert [task.template for task in store.tasks] == ["other", "other", "insert", "update", "delete"]
    for task in store.tasks:
        assert set(task.public) == {"question", "description", "kind", "table", "columns", "rows"}


def test_a_folder_gives_the_tasks_of_all_its_files(tmp_path):
    write(tmp_path / "b.jsonl", [record()])
    write(tmp_path / "a.jsonl", [record(), record(question="And who?")])
    assert [task.id for task in read(tmp_path).tasks] == ["a-1", "a-2", "b-1"]


def test_cells_become_text_and_null_stays(tmp_path):
    line = record()
    line["table"]["table_info"]["rows"] = [["a", 7, 2.5], [None, "", "x"]]
    assert read(write(tmp_path / "x.jsonl", [line])).tasks[0].public["rows"] == [["a", "7", "2.5"], [None, "", "x"]]


def test_empty_lines_are_passed_over_and_counted(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n" + json.dumps(record()) + "\n\n")
    assert [task.id for task in read(path).tasks] == ["x-2"]


def without(*keys):
    line = record()
    holder = line
    for key in keys[:-1]:
        holder = holder[key]
    del holder[keys[-1]]
    return line


def with_rows(rows):
    line = record()
    line["table"]["table_info"]["rows"] = rows
    return line


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (without("description"), "description"),
        (without("label"), "label"),
        (without("type"), "type"),
        (without("table"), "table"),
        (without("table", "table_name"), "table.table_name"),
        (without("table", "table_info", "columns"), "table.table_info.columns"),
        (without("table", "table_info", "rows"), "table.table_info.rows"),
        (record("UPDATE", label=["UPDATE x SET y = 1"]), "answer_md5"),
        (record("UPDATE", label=["UPDATE x SET y = 1"], answer_md5="abc"), "answer_md5"),
        (record(label=[]), "label"),
        (record(type=[]), "type"),
        (record(type="other"), "type"),
        (record(type=["teleport"]), "type"),
        (record(type=["INSERT", "teleport"]), "type"),
        (record(type=[5]), "type"),
        (record(label="Oslo"), "label"),
        (record(description=7), "description"),
        (record(table=[1]), "table"),
        (with_rows([["too", "short"]]), "table.table_info.rows"),
        (with_rows([["a", "b", ["c"]]]), "table.table_info.rows"),
        (with_rows(["abc"]), "table.table_info.rows"),
    ],
)
def test_a_damaged_field_is_named_with_file_and_line(tmp_path, line, field):
    path = write(tmp_path / "bad.jsonl", [record(), line])
    with pytest.raises(InputError) as raised:
        read(path)
    message = str(raised.value)
    assert str(path) in message
    assert "line 2" in message
    assert f"field '{field}'" in message
    assert "expected" in message
    assert raised.value.exit_code == 2


def test_what_a_type_can_be_is_said(tmp_path):
    with pytest.raises(InputError, match=r"'teleport' is no type; expected a list with one of other, .*DELETE"):
        read(write(tmp_path / "bad.jsonl", [record("teleport")]))


def test_a_text_that_does_not_end_is_said_in_good_english(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"a": "b')
    with pytest.raises(InputError, match="Unterminated string starting at column 7"):
        read(tmp_path / "bad.jsonl")


@pytest.mark.parametrize("text", ['{"description": "x"', "not json", "[1, 2]", "3"])
def test_a_malformed_line_is_named(tmp_path, text):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(record()) + "\n" + text + "\n")
    with pytest.raises(InputError, match=r"bad\.jsonl, line 2: "):
        read(path)


def test_missing_and_empty_files_are_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.jsonl: no such file.*setting\.path"):
        read(tmp_path / "nowhere.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(InputError, match=r"empty\.jsonl: the file holds no record"):
        read(tmp_path / "empty.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder: the folder holds no \*\.jsonl"):
        read(tmp_path / "folder")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.jsonl: cannot be read"):
        read(tmp_path / "binary.jsonl")


@needs_shared_data
@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "tasks", "changes"), [("standard", 300, 200), ("dev", 60, 40)])
def test_the_real_files_are_read_whole(name, tasks, changes):
    store = read(SHARED / f"{name}.jsonl")
    assert len(store.tasks) == tasks
    assert sum(task.public["kind"] != "select" for task in store.tasks) == changes
    assert len({task.hash for task in store.tasks}) == tasks
    assert {task.difficulty for task in store.tasks} == {"easy", "standard", "hard"}
