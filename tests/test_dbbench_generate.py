"""Generated DB-Bench tasks: right by a reading of the question alone, and the same everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import canonical_json
from harness_mdp.settings.dbbench.draft import Draft
from harness_mdp.settings.dbbench.generate import generate
from harness_mdp.settings.dbbench.scoring import answers_match, digest_after, table_md5
from harness_mdp.settings.dbbench.setting import DBBench
from harness_mdp.settings.dbbench.sql_worker import sql_pool
from harness_mdp.settings.dbbench.tasks import generated_records

SEEDS = (0, 7)


def condition(text: str, columns: list[str]):
    """A predicate over rows from words such as `City is Oslo and Age is less than 9`."""
    parts = []
    for part in re.split(r" and (?=(?:" + "|".join(map(re.escape, columns)) + r") is )", text):
        column = max((name for name in columns if part.startswith(f"{name} is ")), key=len)
        rest = part.removeprefix(f"{column} is ")
        if match := re.fullmatch(r"(greater|less) than (\d+)", rest):
            sign = 1 if match[1] == "greater" else -1
            parts.append(lambda row, c=column, s=sign, v=int(match[2]): s * int(row[c]) > s * v)
        else:
            parts.append(lambda row, c=column, v=rest: row[c] == v)
    return lambda row: all(part(row) for part in parts)


def solve(question: str, columns: list[str], rows: list[dict[str, str]]):
    """The answer, or the rows afterwards, worked out from the words of the question in plain Python."""
    q = question.rstrip(".?")
    if m := re.fullmatch(r"What is the (total|average|lowest|highest) (.+?) of the \w+s whose (.+)", q):
        values = [int(row[m[2]]) for row in filter(condition(m[3], columns), rows)]
        how = {"total": sum, "average": lambda v: sum(v) / len(v), "lowest": min, "highest": max}
        return [how[m[1]](values)]
    if m := re.fullmatch(r"What is the (.+?) of the \w+ whose (.+)", q):
        return [row[m[1]] for row in filter(condition(m[2], columns), rows)]
    if m := re.fullmatch(r"List the (.+?) of every \w+ whose (.+)", q):
        return [row[m[1]] for row in filter(condition(m[2], columns), rows)]
    if m := re.fullmatch(r"How many \w+s are there whose (.+)", q):
        return [sum(map(condition(m[1], columns), rows))]
    if m := re.fullmatch(r"How many \w+s have a (.+) above the average \1 of all \w+s", q):
        values = [int(row[m[1]]) for row in rows]
        return [sum(value > sum(values) / len(values) for value in values)]
    if m := re.fullmatch(r"Which \w+s have a (.+) that is (.+)[?] List the (.+)", q):
        return [row[m[3]] for row in filter(condition(f"{m[1]} is {m[2]}", columns), rows)]
    if m := re.fullmatch(r"Which (.+?) has the (highest|lowest) (.+) among \w+s whose (.+)", q):
        best = max if m[2] == "highest" else min
        return [best(filter(condition(m[4], columns), rows), key=lambda row: int(row[m[3]]))[m[1]]]
    if m := re.fullmatch(r"Which (.+?) has the highest total (.+) over all its \w+s", q):
        totals = Counter()
        for row in rows:
            totals[row[m[1]]] += int(row[m[2]])
        return [totals.most_common(1)[0][0]]
    return changed(q, columns, rows)


def changed(q: str, columns: list[str], rows: list[dict[str, str]]):
    if m := re.fullmatch(r"Insert a new \w+ into the table .+?: (.+)", q):
        values = re.findall(r"'([^']*)'", m[1])
        return [*(tuple(row.values()) for row in rows), tuple(values)]
    if m := re.fullmatch(r"Delete every \w+ whose (.+)", q):
        gone = condition(m[1], columns)
        return [tuple(row.values()) for row in rows if not gone(row)]
    m = re.fullmatch(r"Set (.+) for every \w+ whose (.+)", q)
    assert m, q
    new = dict(re.findall(r"the (.+?) to '([^']*)'", m[1]))
    touched = condition(m[2], columns)
    return [tuple(({**row, **new} if touched(row) else row).values()) for row in rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_label_and_digest_are_what_the_question_says(seed):
    for record in generate(seed, 100):
        info = record["table"]["table_info"]
        columns = [column["name"] for column in info["columns"]]
        rows = [dict(zip(columns, row, strict=True)) for row in info["rows"]]
        solution = solve(record["description"], columns, rows)
        if "answer_md5" in record:
            assert record["answer_md5"] == f"[('{table_md5(solution)}',)]", record["description"]
            assert table_md5(solution) != table_md5(tuple(row.values()) for row in rows), record["description"]
        else:
            assert answers_match(solution, record["label"]), record["description"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_sql_gives_label_and_digest(seed):
    for record in generated_records(seed, 100):
        result = sql_pool().run(record.table, [record.sql])[0]
        assert result.error is None
        if record.kind == "select":
            assert answers_match(Draft(record.sql).values(result), record.label), record.sql
        else:
            assert digest_after(record.table, result) == record.digest, record.sql


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hundred_tasks_are_20_easy_60_standard_20_hard_and_all_different(seed):
    tasks = DBBench().tasks(seed=seed, n=100, path=None).tasks
    assert Counter(task.difficulty for task in tasks) == {"easy": 20, "standard": 60, "hard": 20}
    assert {task.public["kind"] for task in tasks} == {"select", "insert", "update", "delete"}
    assert len({task.template for task in tasks}) >= 10
    assert len({canonical_json([task.public["rows"], task.public["question"]]) for task in tasks}) == 100


def test_the_same_seed_gives_the_same_bytes_in_every_process():
    script = (
        "from harness_mdp.settings.dbbench.setting import DBBench\n"
        "from harness_mdp.hashing import digest\n"
        "s = DBBench().tasks(seed=3, n=20, path=None)\n"
        "print(digest([[t.hash, s.answers[t.id].text.reply([1] * len(s.answers[t.id].text.slots))] for t in s.tasks]))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(printed) == 1


def test_another_seed_gives_other_tasks():
    assert generate(0, 10) != generate(1, 10)


def test_no_tasks_are_an_error():
    with pytest.raises(ConfigError, match="0 tasks were asked"):
        DBBench().tasks(seed=0, n=0, path=None)
