"""The table-query language of knowledge_work: what it computes, what it refuses, what it finds in a model's reply."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.settings.knowledge_work.query import QueryError, evaluate, find_query, parse_query, tables_in
from harness_mdp.settings.knowledge_work.sources import Table

TABLES = {
    "T1": Table(
        "T1",
        "Ledger",
        ("project", "state", "amount"),
        (("Alder", "open", 100), ("Alder", "paid", 300), ("Birch", "open", 50), ("Old Mill", "on_time", -2)),
    ),
    "T2": Table("T2", "Budgets", ("project", "budget"), (("Alder", 320), ("Birch", 0))),
}


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("sum(T1.amount)", 448),
        ("sum(T1.amount where project = Alder)", 400),
        ("SUM( t1.Amount WHERE Project = 'alder' AND state != paid )", 100),
        ('sum(T1.amount where project = "Old Mill")', -2),
        ("sum(T1.amount where project = Old Mill)", -2),
        ("sum(T1.amount where project = Nobody)", 0),
        ("mean(T1.amount where project = Alder)", 200),
        ("average(T1.amount where amount >= 100)", 200),
        ("min(T1.amount where amount > -2)", 50),
        ("max(T1.amount where amount < 300)", 100),
        ("count(T1)", 4),
        ("count(T1 where amount <= 100 and state = open)", 2),
        ("ratio(1, 4)", 0.25),
        ("product(2, 3.5)", 7),
        ("percent(diff(sum(T1.amount where project = Alder), sum(T2.budget where project = Alder)), 320)", 25),
    ],
)
def test_figures(query, value):
    parsed = parse_query(query, TABLES)
    assert evaluate(parsed, TABLES) == pytest.approx(value)
    assert parse_query(str(parsed), TABLES) == parsed


def test_rows_shows_what_matches():
    assert evaluate(parse_query("rows(T1 where state = open)", TABLES), TABLES) == (
        "2 rows\nAlder | open | 100\nBirch | open | 50"
    )
    assert evaluate(parse_query("rows(T1 where state = x)", TABLES), TABLES) == "0 rows"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("sum(T9.amount)", "there is no table 'T9'; there are T1, T2"),
        ("sum(T1.cost)", "T1 has no column 'cost'; it has project, state, amount"),
        ("sum(T1.project)", "column project of T1 holds text, not numbers"),
        ("mean(T1.amount where state = x)", "mean(T1.amount where state = x) finds no row"),
        ("ratio(1, sum(T2.budget where project = Birch))", "is 0, and nothing can be divided by it"),
        ("sum(T1.amount where state ~ x)", "cannot be read"),
        ("sum(T1.amount where state open x)", "'open' is no comparison"),
        ("sum(T1.amount where state =)", "the condition on state has no value"),
        ("sum(T1.amount", "the query ends too early"),
        ("sum(T1.amount) + 1", "cannot be read"),
        ("sum(T1.amount) 1", "'1' follows the end of the query"),
        ("__import__('os')", "'__import__' is no function"),
        ("diff(rows(T1), 1)", "rows(...) is no figure to calculate with"),
        ("diff(1, " * 20 + "1" + ")" * 20, "nested more than 6 deep"),
        ("sum(T1.amount where state = " + "x" * 500 + ")", "at most 400 are read"),
        (f"product({'9' * 29}, {'9' * 29})", None),
    ],
)
def test_what_cannot_be_computed_is_said(query, problem):
    if problem is None:
        assert evaluate(parse_query(query, TABLES), TABLES) > 1e57
        return
    with pytest.raises(QueryError) as error:
        evaluate(parse_query(query, TABLES), TABLES)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    "reply",
    [
        "sum(T1.amount where project = Alder)",
        "```\nsum(T1.amount where project = Alder)\n```",
        "The next query is `sum(T1.amount where project = Alder)`, then count(T1).",
        'I want the sum of it: Sum(T1.amount where project = "Alder") (in EUR)',
    ],
)
def test_a_query_is_found_whatever_stands_around_it(reply):
    assert str(find_query(reply, TABLES)) == "sum(T1.amount where project = Alder)"


def test_no_part_of_a_bad_query_is_run():
    with pytest.raises(QueryError, match="T9"):
        find_query("diff(sum(T1.amount), sum(T9.amount))", TABLES)
    with pytest.raises(QueryError, match="no query"):
        find_query("I would need more information to do that.", TABLES)


def test_a_query_names_its_tables():
    assert tables_in(parse_query("diff(sum(T1.amount), sum(T2.budget))", TABLES)) == {"T1", "T2"}


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="T12 .,()=<>!'\"\\aAnd-_5", max_size=40))
def test_any_text_is_a_query_or_an_error(noise):
    for text in (noise, f"sum({noise})", f"sum(T1.amount where state = {noise})", f"count(T1 where amount > {noise})"):
        try:
            query = find_query(text, TABLES)
            assert parse_query(str(query), TABLES) == query
            evaluate(query, TABLES)
        except QueryError:
            continue
