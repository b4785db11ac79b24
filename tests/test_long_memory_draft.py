"""long_memory: answers are read from what chat models send, and graded by what they say, not how."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.settings.answers import says_only
from harness_mdp.settings.long_memory import LongMemory
from harness_mdp.settings.long_memory.draft import Finding, parse_draft
from harness_mdp.settings.long_memory.reading import without_sources
from harness_mdp.settings.long_memory.scoring import grade
from harness_mdp.settings.prompts import Unparsable

PARSE = LongMemory().parse
WHOLE = Finding("Orbit Flex", "S12", "2023-05-04")
LINE = '{"answer": "Orbit Flex", "session": "S12", "date": "2023-05-04"}'


@pytest.mark.parametrize(
    "reply",
    [
        LINE,
        f"```json\n{LINE}\n```",
        f"Sure! Here it is:\n```\n{LINE}\n```\nLet me know.",
        f"The answer is {LINE} as you can see.",
        '{"date": "2023-5-4",\n "Session": "session 12",\n "ANSWER": " Orbit Flex. "}',
        '{"answer": "Orbit Flex", "session": 12, "date": "2023-05-04"}',
        '{"answer": "Orbit Flex", "session": "12", "date": "2023-05-04"}',
        '{"answers": [{"answer": "Orbit Flex", "sessions": ["S12", "S3"], "date": "2023-05-04"}]}',
        "Orbit Flex [S12, 2023-05-04]",
        "- **Orbit Flex** [hit-S12, 2023-05-04]",
        "Answer: Orbit Flex (S12, 2023-05-04)",
        "Answer: Orbit Flex\nSession: S12\nDate: 2023-05-04",
        "Let me see.\nOrbit Flex [S12] [2023-05-04]\n",
        '"Orbit Flex", said in session 12 on 2023-05-04.',
        "[Orbit Flex] [S12, 2023-05-04]",
        "Q: What is my phone plan now?\nA: Orbit Flex [S12, 2023-05-04]",
        "The answer is Orbit Flex [S12, 2023-05-04].",
        "Phone plan: Orbit Flex [S12, 2023-05-04]",
        "Orbit Flex\n[S12, 2023-05-04]",
        "Orbit Flex\n\nSession S12, 2023-05-04",
        "| Orbit Flex | S12 | 2023-05-04 |",
        "S12 2023-05-04: Orbit Flex",
        '```json\n{"answer": "Orbit Flex", "session": "S12", "date": "2023-05-04", "note": "it is',
    ],
)
def test_an_answer_with_its_source_is_read(reply):
    assert parse_draft(reply) == (WHOLE,)
    assert PARSE(reply) == LINE


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("Orbit Flex", Finding("Orbit Flex")),
        ("Orbit Flex [S12]", Finding("Orbit Flex", "S12")),
        ("1,240", Finding("1,240")),
        ('{"answer": 3, "session": null}', Finding("3")),
        ("Nora's 4 cars", Finding("Nora's 4 cars")),
        ("Tuesday at 9:40 [S3]", Finding("Tuesday at 9:40", "S3")),
    ],
)
def test_a_bare_answer_is_read_with_what_it_names(reply, found):
    assert parse_draft(reply) == (found,)


def test_several_answers_are_read_in_order():
    reply = "1) Orbit Flex [S12, 2023-05-04]\n2) 1240 [S3, 2023-02-01]"
    assert parse_draft(reply) == (WHOLE, Finding("1240", "S3", "2023-02-01"))
    assert parse_draft(PARSE(reply)) == parse_draft(reply)
    cut = LINE + '\n{"answer": "1240", "session": "S3", "da'
    assert parse_draft(cut)[0] == WHOLE


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n ",
        "```json\n```",
        "I am sorry, I would need more information to do that.",
        "As an AI I have no access to earlier chats.",
        '{"answer": "", "session": "S1"}',
        '{"answer": null}',
        '{"answer": {"value": 3}}',
        '{"answer": "Orb',
        "There are many sessions.\nThey differ in their dates.\nIt is hard to say.",
        "word " * 100,
        "[S12]",
        "{" * 5000,
        "[" * 5000,
    ],
)
def test_a_reply_without_a_short_answer_is_unparsable(reply):
    with pytest.raises(Unparsable):
        PARSE(reply)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet='{}[]":,answersion S12-0\n.')))
def test_any_text_is_an_artifact_or_unparsable_and_reading_it_again_changes_nothing(reply):
    try:
        artifact = PARSE(reply)
    except Unparsable:
        return
    assert PARSE(artifact) == artifact


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda x: st.lists(x, max_size=3))
)
def test_any_json_in_any_field_is_an_artifact_or_unparsable(value):
    for fields in ({"answer": value}, {"answer": "x", "session": value, "date": value}, {"answers": value}):
        try:
            assert PARSE(artifact := PARSE(json.dumps(fields))) == artifact
        except Unparsable:
            continue


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        ("orbit  FLEX", "Orbit Flex", True),
        ("My phone plan is Orbit Flex.", "Orbit Flex", True),
        ("It is Orbit Flex since S12 of 2023-05-04", "Orbit Flex", True),
        ("Orbit", "Orbit Flex", False),
        ("Orbit Flexible", "Orbit Flex", False),
        ("Orbit Flex or Vela Lite", "Orbit Flex", False),
        ("It was Vela Lite, now it is Orbit Flex", "Orbit Flex", False),
        ("not Orbit Flex", "Orbit Flex", False),
        ("Orbit Flex " + "and so on " * 10, "Orbit Flex", False),
        ("", "Orbit Flex", False),
        ("1,240.00 euros", "1240", True),
        ("1240.0", "1240", True),
        ("1240.5", "1240", False),
        ("12,40", "1240", False),
        ("three times", "3", True),
        ("3 of 5", "3", False),
        ("Tuesday, 9:40", "Tuesday at 9:40", True),
        ("Tuesday at 8:15", "Tuesday at 9:40", False),
    ],
)
def test_answers_are_compared_by_what_they_say(text, answer, right):
    assert (
        says_only(without_sources(text), answer, question="What is my phone plan now?", rivals=["Vela Lite"]) is right
    )


def test_each_criterion_reads_its_own_part():
    key = {"answer": "Orbit Flex", "sessions": ["S9", "S12"], "dates": ["2023-04-01", "2023-05-04"], "rivals": []}
    graded = grade([WHOLE, WHOLE, WHOLE], [key, {**key, "answer": "Vela Lite"}], ["", ""])
    assert [(c.id, c.score, c.weight) for c in graded] == [
        ("answer_1", 1.0, 3.0),
        ("session_1", 1.0, 1.5),
        ("date_1", 1.0, 0.5),
        ("answer_2", 0.0, 3.0),
        ("session_2", 1.0, 1.5),
        ("date_2", 1.0, 0.5),
    ]
    assert [c.score for c in grade([Finding("Orbit Flex", "S9")], [key], [""])] == [1.0, 1.0, 0.0]
    assert not any(c.score for c in grade([], [key, key], ["", ""]))
