"""Drafts of multi_tool as chat models send them: fenced or bare, amid text, cut off, refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.multi_tool import MultiTool
from harness_mdp.settings.prompts import Unparsable

SETTING = MultiTool()
CANONICAL = '{"steps":{"km":675.92,"end":"2026-03-02"},"answer":43.94}'


@pytest.mark.parametrize(
    "reply",
    [
        CANONICAL,
        f"```json\n{CANONICAL}\n```",
        f"```\n{CANONICAL}\n```",
        f"Here is the result:\n{CANONICAL}\nI hope it helps.",
        f"```json\n{CANONICAL}",
        '{"answer": 43.94, "steps": {"end": "2026-03-02", "km": 675.920}}',
        '{"answer": "43.94 EUR", "steps": {"KM": "675.92", "End": "2 March 2026"}}',
        '{"Final Answer": "€43.94", "Steps": {"km": {"value": 675.92, "unit": "km"}, "end": "March 2nd, 2026"}}',
        '{"km": 675.92, "end": "2026-03-02", "answer": 43.94}',
        '{"steps": [{"name": "km", "value": 675.92}, {"end": "2026-03-02"}], "answer": 43.94}',
        f'{{"answer": 1}} was my first guess, but {CANONICAL}',
        f'<think>{{"tool": "calculator"}} gives 43.94</think>{CANONICAL}',
        '```json\n{"steps": {"km": 675.92, "end": "2026-03-02"},\n "answer": 43.94,\n "why": "because the pro',
    ],
)
def test_one_draft_is_read_however_it_is_sent(reply):
    assert json.loads(SETTING.parse(reply)) == json.loads(CANONICAL)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: 43.94", "43.94"),
        ("**Answer:** 1,234.50 EUR.", "1234.5"),
        ("So 3 times 4.\nThe final answer is 12", "12"),
        ("43.94", "43.94"),
        ("2026-03-02 14:30", '"2026-03-02 14:30"'),
        ("Answer: 2026-03-02T14:30:00", '"2026-03-02 14:30"'),
        ("Answer: Monday, 2 March 2026", '"2026-03-02"'),
        ("Answer: Tuesday", '"Tuesday"'),
        ('{"answer": -0.0}', "0"),
        ('{"answer": 1e3}', "1000"),
        ('{"answer": "12 km/h"}', "12"),
        ('{"answer": "about half"}', '"about half"'),
    ],
)
def test_an_answer_without_steps_is_a_draft(reply, answer):
    assert SETTING.parse(reply) == f'{{"steps":{{}},"answer":{answer}}}'


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "```json\n```",
        "I am sorry, I would need more information to do that.",
        "I cannot compute this.",
        "Answer: I cannot say",
        '{"answer": "unknown"}',
        '{"answer": null, "steps": {"km": 3}}',
        '{"answer": [1, 2]}',
        '{"answer": true}',
        '{"answer": 1e999}',
        '{"answer": 123456789012345678901234567890}',
        '{"steps": {"km": 675.92}}',
        '```json\n{"steps": {"km": 675.92, "end": "2026',
        '{"answer": 43.',
        "calculator: 12 * 7",
        "The trip takes a while and costs something, as trips do.",
        "[1, 2, 3]",
        "{" * 5000,
        '{"answer": ' + '{"value": ' * 900 + "1" + "}" * 900 + "}",
        "x" * 200_000,
    ],
)
def test_what_holds_no_answer_is_unparsable(reply):
    with pytest.raises(Unparsable):
        SETTING.parse(reply)


def test_a_draft_keeps_at_most_thirty_quantities():
    reply = json.dumps({"answer": 1, "steps": {f"x{i}": i for i in range(500)}})
    assert len(json.loads(SETTING.parse(reply))["steps"]) == 30


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(st.fixed_dictionaries({"answer": JSON, "steps": JSON}, optional={"more": JSON, "result": JSON}))
def test_any_json_is_a_draft_in_stable_form_or_unparsable(value):
    try:
        text = SETTING.parse(json.dumps(value))
    except Unparsable:
        return
    assert SETTING.parse(text) == text


@given(st.text(max_size=200))
def test_any_text_is_a_draft_in_stable_form_or_unparsable(reply):
    try:
        text = SETTING.parse(reply)
    except Unparsable:
        return
    assert SETTING.parse(text) == text
