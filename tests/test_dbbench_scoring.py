"""DB-Bench's native scoring."""

from __future__ import annotations

import hashlib
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.dbbench.scoring import (
    answers_match,
    digest_after,
    native_score,
    normalised,
    stored_digest,
    table_md5,
)
from harness_mdp.settings.dbbench.sql_worker import SqlResult, Table


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


@pytest.mark.parametrize("value", [None, "", "  ", "None", "NULL", "nan", "inf", "-Infinity", "''"])
def test_nothing_counts_as_zero(value):
    assert normalised(value) == "0"


@pytest.mark.parametrize(
    ("value", "text"),
    [("12%", "12"), ("1,234", "1234"), ("1,234.5 %", "1234.5"), (' "House" ', "House"), (7, "7"), (2.5, "2.5")],
)
def test_values_are_brought_to_one_form(value, text):
    assert normalised(value) == text


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (["12"], ["12.0"]),
        ([12], ["12.0"]),
        (["12.005"], ["12"]),
        (["3,729.7"], ["3729.7"]),
        (["23.3%"], ["23.3"]),
        (["none"], ["0.0"]),
        ([None], ["none"]),
        (["Dallas"], ["Dallas"]),
        (['"House of Cards"'], ["House of Cards"]),
        (["b", "a"], ["a", "b"]),
        (["a", "a", "b"], ["b", "a"]),
        (["12 months", "12 months"], ["12 months"]),
        (["2", 1.0], ["1", "2.004"]),
    ],
)
def test_right_answers(answer, label):
    assert answers_match(answer, label)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (["12"], ["13"]),
        (["12.02"], ["12"]),
        (["dallas"], ["Dallas"]),
        ([], ["a"]),
        ([], ["0"]),
        (["a"], ["a", "b"]),
        (["a", "b", "c"], ["a", "b"]),
        (["1", "1", "2"], ["1", "2", "2"]),
        (["1", "2"], ["1"]),
        (["1", "1"], ["1"]),
    ],
)
def test_wrong_answers(answer, label):
    assert not answers_match(answer, label)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=5), st.randoms())
def test_the_order_of_numbers_does_not_count(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert answers_match([str(value) for value in shuffled], [f"{value}.0" for value in values])


def test_table_md5_is_the_formula():
    rows = [("a", "1"), ("b", None), (None, None)]
    hashes = sorted(md5(text)[:5] for text in ("a,1", "b", ""))
    assert table_md5(rows) == md5(",".join(hashes))
    assert {table_md5(order) for order in permutations(rows)} == {table_md5(rows)}


def test_table_md5_skips_null_as_concat_ws_does():
    assert table_md5([("a", None, "b")]) == table_md5([("a", "b")])
    assert table_md5([("a", "", "b")]) != table_md5([("a", "b")])


def test_table_md5_sees_only_what_group_concat_keeps():
    rows = [(str(i),) for i in range(400)]
    hashes = sorted(md5(str(i))[:5] for i in range(400))
    assert table_md5(rows) == md5(",".join(hashes)[:1024])
    last = next(row for row in rows if md5(row[0])[:5] == hashes[-1])
    assert table_md5([row for row in rows if row != last]) == table_md5(rows)


def test_a_table_without_rows_has_no_digest():
    assert table_md5([]) == ""


def test_digest_after_applies_the_changes():
    table = Table("t", ("a",), (("x",), ("x",), ("y",)))
    result = SqlResult(None, added=(("z",),), removed=(("x",),))
    assert digest_after(table, result) == table_md5([("x",), ("y",), ("z",)])


def test_stored_digest_is_the_text_of_a_tuple_in_a_list():
    assert stored_digest(f"[('{'0a' * 16}',)]") == "0a" * 16
    assert stored_digest("0a" * 16) is None
    assert stored_digest("[('xyz',)]") is None


def test_native_score_of_a_change_without_sql_is_that_of_the_table_as_it_was():
    table = Table("t", ("a",), (("x",),))
    assert native_score("update", table, (), None, [], table_md5([("x",)])) == 1.0
    assert native_score("update", table, (), None, [], table_md5([("y",)])) == 0.0
