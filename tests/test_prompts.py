"""Prompts are sections that can be read back; replies lose their reasoning before anybody reads them."""

from __future__ import annotations

import pytest

from harness_mdp.settings.prompts import bracketed_ids, compose, read_sections, review_problems, without_thinking


def test_a_prompt_is_read_back_section_by_section() -> None:
    messages = compose(
        "You are careful.",
        task="Add the numbers.",
        instructions="Reply with a number.",
        evidence={"table": "1 2 3", "memo": "sums only"},
        tool_results=[("tool1", "1 + 2 = 3")],
        draft="6",
        problems=["the sum may be off"],
    )
    assert [message.role for message in messages] == ["system", "user"]
    sections = read_sections(messages)
    assert sections["Draft"] == "6"
    assert sections["Problems"] == "- the sum may be off"
    assert bracketed_ids(sections["Evidence"]) == ("table", "memo")
    assert bracketed_ids(sections["Tool results"]) == ("tool1",)


def test_sections_that_are_empty_are_left_out() -> None:
    assert set(read_sections(compose("s", task="t", instructions="i"))) == {"Task", "Instructions"}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("OK", ()),
        ("ok, looks fine", ()),
        ("No problems.", ()),
        ("- one\n- two", ("one", "two")),
        ("1. one\n2) two", ("one", "two")),
        ("I like this draft.", None),
        ("", None),
    ],
)
def test_a_self_review_names_problems_or_none_or_is_no_review(reply: str, expected: tuple[str, ...] | None) -> None:
    assert review_problems(reply) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>3 + 3\nis 6</think>6", "6"),
        ("\n<think>hm</think>\n\n6", "\n\n6"),
        ("<think>hm, that is long", ""),
        ("6", "6"),
        ("the tag <think> is text here", "the tag <think> is text here"),
    ],
)
def test_reasoning_before_the_reply_is_dropped(reply: str, expected: str) -> None:
    assert without_thinking(reply) == expected
