"""The command that counts reproduced table digests."""

from __future__ import annotations

import pytest

from harness_mdp.dbbench_digests import run
from tests.dbbench_files import SHARED, change, few_records, needs_shared_data, record, write


def test_escapes_case_and_accents_are_those_of_mysql(tmp_path, capsys):
    path = write(tmp_path / "mine.jsonl", few_records())
    assert run([f"path={path}"]) == 0
    assert capsys.readouterr().out == "mine.jsonl: 3 of 3 table digests reproduced by the reference SQL\n"


def test_misses_are_listed_with_their_reason(tmp_path, capsys):
    broken = [
        change("UPDATE", "x", "UPDATE Nowhere SET a = 1", [("a",)]),
        change("UPDATE", "x", "UPDATE `Hockey Teams` SET Year = 1 WHERE Team = 'nobody'", [("a",)]),
        change("DELETE", "x", "DELETE FROM `Hockey Teams`", [("a",)]),
    ]
    path = write(tmp_path / "mine.jsonl", [*few_records(), *broken])
    assert run([f"path={path}"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("mine.jsonl: 3 of 6 table digests")
    assert "mine-6: the SQL fails in SQLite: no such table: Nowhere" in out
    assert "mine-7: the SQL changes no row in SQLite" in out
    assert "mine-8: the SQL runs (0 rows added, 3 removed) but gives" in out
    assert run([f"path={path}", "share=0.5"]) == 0


@pytest.mark.parametrize("arguments", [[], ["path="], ["pth=x"], ["path=nowhere.jsonl"], ["path=x", "share=most"]])
def test_a_wrong_call_ends_with_2_and_says_why(arguments, capsys):
    assert run(arguments) == 2
    assert capsys.readouterr().err.strip()


def test_a_file_without_changes_has_nothing_to_count(tmp_path, capsys):
    assert run([f"path={write(tmp_path / 'x.jsonl', [record()])}"]) == 2
    assert "no digest to reproduce" in capsys.readouterr().err


@needs_shared_data
@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "at_least", "of"), [("standard", 199, 200), ("dev", 40, 40)])
def test_the_real_digests_are_reproduced(name, at_least, of, capsys):
    assert run([f"path={SHARED / f'{name}.jsonl'}"]) == 0
    met, total = map(int, capsys.readouterr().out.split(": ", 1)[1].split(" table", 1)[0].split(" of "))
    assert met >= at_least
    assert total == of
