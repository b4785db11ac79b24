"""What chat models send in place of a clean draft: read, or refused with a reason; never another exception."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.prompts import Unparsable
from harness_mdp.settings.tau_retail.setting import TauRetail

parse = TauRetail().parse
CALL = {"name": "get_user_details", "arguments": {"user_id": "a_b_1"}}
DRAFT = {"calls": [CALL], "respond": "Done."}
CANONICAL = '{"calls":[{"arguments":{"user_id":"a_b_1"},"name":"get_user_details"}],"respond":"Done."}'
TEXT = json.dumps(DRAFT, indent=2)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}",
        f"Sure! Here is the plan {{as asked}} [1]:\n{TEXT}\nAnything else?",
        f"I wrote:\n```json\n{TEXT}\n```\nand nothing else.",
        f"```text\nno plan here, just a long line of thoughts that says nothing\n```\n{json.dumps(DRAFT)}",
        json.dumps({"respond": " Done. ", "calls": [{"kwargs": CALL["arguments"], "name": " get_user_details "}]}),
        json.dumps({"calls": [{**CALL, "arguments": json.dumps(CALL["arguments"])}], "respond": "Done."}),
        json.dumps({"answer": DRAFT}),
    ],
)
def test_any_wrapping_gives_the_same_draft(reply):
    assert parse(reply) == CANONICAL
    assert parse(parse(reply)) == CANONICAL


def test_what_is_left_out_is_empty():
    assert parse('{"respond": "Hello"}') == '{"calls":[],"respond":"Hello"}'
    assert parse('{"calls": null, "respond": "Hello"}') == '{"calls":[],"respond":"Hello"}'
    assert parse(json.dumps([CALL])) == CANONICAL.replace("Done.", "")
    assert parse('{"calls": [{"name": "list_all_product_types"}], "respond": null}') == (
        '{"calls":[{"arguments":{},"name":"list_all_product_types"}],"respond":""}'
    )


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n",
        "I am sorry, I cannot help with that.",
        TEXT[:-20],
        f"```json\n{TEXT[:60]}",
        "null",
        "[]",
        "{}",
        '{"calls": "none", "respond": "x"}',
        '{"calls": [], "respond": ["x"]}',
        '{"calls": ["think"], "respond": "x"}',
        '{"calls": [{"arguments": {}}], "respond": "x"}',
        '{"calls": [{"name": 3, "arguments": {}}], "respond": "x"}',
        '{"calls": [{"name": "think", "arguments": [1]}], "respond": "x"}',
        '{"calls": [{"name": "think", "arguments": "so"}], "respond": "x"}',
        '{"calls": [{"name": "think", "arguments": {"thought": NaN}}], "respond": "x"}',
        '{"calls": ' + "[" * 100_000,
        '{"respond": ' + "9" * 10_000 + "}",
    ],
)
def test_no_draft_is_unparsable(reply):
    with pytest.raises(Unparsable):
        parse(reply)


def test_values_of_the_wrong_type_are_kept_for_the_dry_run_to_name():
    kept = parse('{"calls": [{"name": "get_order_details", "arguments": {"order_id": 7}}], "respond": "x"}')
    assert '"order_id":7' in kept


def test_unpaired_surrogates_can_be_stored():
    parse('{"calls": [], "respond": "\\ud800"}').encode()


@given(
    st.text()
    | st.recursive(
        st.none() | st.text() | st.floats() | st.booleans(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["calls", "respond", "name", "arguments"]), inner)
        ),
    ).map(json.dumps)
)
def test_anything_is_a_draft_or_unparsable(reply):
    try:
        text = parse(reply)
    except Unparsable:
        return
    assert parse(text) == text
