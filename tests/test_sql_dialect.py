"""MySQL's way of writing SQL, read as SQLite reads it."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.dbbench.sql_dialect import identifier, lex, string_literal, to_sqlite

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def value_of(sql: str) -> object:
    (statement,) = to_sqlite(sql, ["People", "Age"])
    return sqlite3.connect(":memory:").execute(statement).fetchone()[0]


@given(TEXTS)
def test_tokens_joined_are_the_sql(sql):
    assert "".join(token.text for token in lex(sql)) == sql


@given(TEXTS)
def test_a_string_literal_reads_back(value):
    assert [token.value for token in lex(string_literal(value))] == [value]
    assert value_of(f"SELECT {string_literal(value)}") == value


@given(TEXTS.filter(bool))
def test_an_identifier_reads_back(name):
    assert [token.value for token in lex(identifier(name))] == [name]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (r"SELECT 'Don\'t'", "Don't"),
        (r"SELECT 'a\nb\\c'", "a\nb\\c"),
        ("SELECT 'it''s'", "it's"),
        ('SELECT "plain text"', "plain text"),
        ('SELECT "say ""hi"""', 'say "hi"'),
        ("SELECT 1 -- a comment; with a semicolon", 1),
        ("SELECT /* ; */ 2;", 2),
        ("SELECT 0x10", 16),
        ("SELECT 1e2", 100.0),
    ],
)
def test_literals_mean_what_mysql_says(sql, value):
    assert value_of(sql) == value


def test_double_quotes_name_a_column_only_where_there_is_one():
    assert to_sqlite('SELECT "Age", "Aged" FROM "people"', ["People", "Age"]) == ("SELECT `Age`, 'Aged' FROM `people`",)


def test_names_that_begin_with_a_digit_are_quoted():
    assert to_sqlite("SELECT 1 FROM 1952_Prix", []) == ("SELECT 1 FROM `1952_Prix`",)


def test_statements_are_split_outside_of_quotes():
    assert to_sqlite("SELECT ';' ; DELETE FROM `a;b`;;", []) == ("SELECT ';'", "DELETE FROM `a;b`")


@pytest.mark.parametrize("sql", ["SELECT 'open", 'SELECT "open', "SELECT `open", r"SELECT 'x' ESCAPE '\'"])
def test_an_unclosed_quote_is_left_for_the_database_to_judge(sql):
    assert to_sqlite(sql, []) == (sql,)
