"""How replies become drafts of DB-Bench."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.dbbench.draft import Draft, parse_draft, read_draft
from harness_mdp.settings.dbbench.sql_worker import SqlResult
from harness_mdp.settings.prompts import Unparsable

SELECT = Draft("SELECT a FROM t")


@pytest.mark.parametrize(
    ("reply", "draft"),
    [
        ('{"sql": "SELECT a FROM t"}', SELECT),
        ('{"sql":"SELECT a FROM t","answer":null}', SELECT),
        ('```json\n{"sql": "SELECT a FROM t"}\n```', SELECT),
        ('```json\n{"sql": "SELECT a FROM t"}', SELECT),
        ('Here you are:\n{"SQL": " SELECT a FROM t "}\nI hope {it} helps.', SELECT),
        ('{"note": {"x": 1}} then {"sql": "SELECT a FROM t"}', SELECT),
        ("```sql\nSELECT a FROM t\n```", SELECT),
        ("SELECT a FROM t", SELECT),
        ("The query is:\nselect a\nfrom t\nwhere b = 1;\nIt counts.", Draft("select a\nfrom t\nwhere b = 1;")),
        ("SELECT a FROM t\n\nThis reads a.", SELECT),
        ("SQL: DELETE FROM t WHERE a = 1", Draft("DELETE FROM t WHERE a = 1")),
        ("INSERT INTO t VALUES ('x')", Draft("INSERT INTO t VALUES ('x')")),
        ('{"sql": "SELECT a\nFROM t"}', Draft("SELECT a\nFROM t")),
        ('{"sql": "SELECT a FROM t', SELECT),
        ('{"sql": "SELECT a FROM t"', SELECT),
        ('{"sql": "SELECT "a" FROM t"}', Draft('SELECT "a" FROM t')),
        ("{'sql': 'SELECT a FROM t'}", SELECT),
        ('Sure! {"sql": "SELECT "a" FROM t", "answer": ["x"]}', Draft('SELECT "a" FROM t')),
        ('{"answer": ["x", 2]}', Draft(answer=("x", 2))),
        ('{"answer": "x"}', Draft(answer=("x",))),
        ('{"answer": [["x", 1.5], [null]]}', Draft(answer=("x", 1.5, None))),
        ('{"answer": [NaN, true]}', Draft(answer=("NaN", "True"))),
        ('{"answer": []}', Draft(answer=())),
        ('{"sql": "SELECT 1", "answer": [1]}', Draft("SELECT 1", (1,))),
    ],
)
def test_a_reply_is_read_however_it_is_wrapped(reply, draft):
    assert parse_draft(reply) == draft


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n",
        "I am sorry, I would need more information to do that.",
        "Update the table please.",
        '{"sql": ""}',
        '{"query": "x"}',
        "[1, 2]",
        '{"sql": 3}',
        "{" * 5000,
        "[" * 5000,
        '{"a":' * 5000,
    ],
)
def test_a_reply_without_sql_or_answer_is_unparsable(reply):
    with pytest.raises(Unparsable):
        parse_draft(reply)


CELLS = st.none() | st.text(max_size=8) | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.text(max_size=40).map(str.strip), st.none() | st.lists(CELLS, max_size=3).map(tuple))
def test_a_canonical_draft_reads_back_and_stays_as_it_is(sql, answer):
    draft = Draft(sql, answer)
    if not sql and answer is None:
        return
    assert read_draft(draft.text) == draft
    assert parse_draft(draft.text).text == draft.text
    assert parse_draft(f"```json\n{draft.text}\n```").text == draft.text


def test_the_answer_defaults_to_the_rows():
    result = SqlResult(None, ("a", "b"), ((1, "x"), (2, None)))
    assert SELECT.values(result) == (1, "x", 2, None)
    assert Draft("SELECT a FROM t", ("y",)).values(result) == ("y",)
    assert SELECT.values(SqlResult(None)) == (None,)
    assert SELECT.values(SqlResult("no such table: t")) == ()


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: 12", ("12",)),
        ("Sure.\n\n**Answer:** Ted Davis.", ("Ted Davis",)),
        ("The answer is: 3; 4; 5", ("3", "4", "5")),
        ('answer = "blue"', ("blue",)),
    ],
)
def test_an_answer_on_a_line_of_its_own_is_a_draft(reply: str, answer: tuple[str, ...]) -> None:
    assert parse_draft(reply) == Draft(answer=answer)


def test_sql_and_json_go_before_an_answer_line() -> None:
    assert parse_draft("Answer: 3\nSELECT a FROM t").sql == "SELECT a FROM t"
    assert parse_draft('Answer: {"answer": ["x"]}').answer == ("x",)


def test_an_answer_line_without_a_value_is_no_draft() -> None:
    with pytest.raises(Unparsable):
        parse_draft("Answer:  ''")
