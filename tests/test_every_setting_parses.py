"""What every parser owes: a draft in any wrapping, `Unparsable` for anything else, and nothing but these two.

Then whole episodes with a model that replies such things to every prompt: they are scored, or invalid with return 0.
"""

from __future__ import annotations

import json
import random
import string
from dataclasses import asdict

import pytest

from harness_mdp.executors.protocol import Purpose
from harness_mdp.hashing import canonical_json
from harness_mdp.mdp import Action, Episode, EvalStatus, EventError, Termination
from harness_mdp.settings.prompts import Unparsable
from harness_mdp.settings.slots import SlottedText
from tests.runs import SETTING_NAMES, opened, run
from tests.scripted import Course, ScriptedExecutor

every_setting = pytest.mark.parametrize("name", SETTING_NAMES)

LONG = 200_000
NOTHING = {
    "empty": "",
    "blank": " \n\t\r\n ",
    "no-break spaces": "\u00a0\u2003\n",
    "empty fence": "```json\n```",
    "blank fence": "```\n\n \n```",
    "refusal": "I'm sorry, I can't help with that.",
    "polite refusal": "I'm sorry, but as an AI I cannot do that. I would need more information.",
}
"""Nobody can read a draft in these."""

JUNK = {
    "null": "null",
    "none": "None",
    "empty object": "{}",
    "empty list": "[]",
    "wrong types": '{"answer": [], "calls": 3, "respond": {}, "schedule": "none", "sql": 7, "steps": null}',
    "infinite": '{"answer": 1e999, "sql": NaN, "calls": [], "schedule": [{"task": "A", "start": -Infinity}]}',
    "huge number": f'{{"answer": {"9" * 5000}, "schedule": [{{"task": "A", "start": {"9" * 5000}}}]}}',
    "escaped surrogates": '{"answer": "\\ud800", "sql": "SELECT \'\\udfff\'", "respond": "\\ud800", "calls": []}',
    "surrogates": "\ud800 answer: \udfff [doc-1] def f(): # \ud800",
    "emoji": "😀" * 500,
    "zero bytes": "Answer: \0\0",
    "half a fence": "```python\ndef",
    "code": "```python\ndef f(*values):\n    return " + "(" * 3000 + ")" * 3000 + "\n```",
    "signs": "```python\ndef f(*values):\n    return " + "-" * 20_000 + "1\n```",
    "sums": "```python\ndef f(*values):\n    return 1" + " + 1" * 5000 + "\n```",
    "sql": "SELECT " + "(" * 3000 + "1" + ")" * 3000 + " FROM t",
    "sql without end": "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT count(*) FROM a",
    "tool call": '{"tool": "calculator", "args": {"expression": "\\ud800 + 1"}}',
    "tool power": "calculator: 9 ** 9 ** 9 ** 9",
    "tool nesting": '{"tool": "table", "args": {"where": ' + '{"a":' * 400 + "1" + "}" * 400 + "}}",
}
"""Small, and made to break a reader; some parse."""

rng = random.Random(0)
GRAINS = {
    "printable": "",  # drawn below
    "letters": "a",
    "digits": "7",
    "blanks": " ",
    "lines": "\n",
    "starred lines": "*\n",
    "backticks": "`",
    "fences": "```\n",
    "opened fences": "```json\n",
    "quotes": '"',
    "backslashes": "\\",
    "braces": "{",
    "brackets": "[",
    "parentheses": "(",
    "objects": '{"answer":',
    "calls": '{"calls":[{"name":"x","arguments":',
    "pairs": '"answer": "',
    "bold": "* **Total**: ",
    "labels": "Answer: ",
    "sources": "Sources: [doc-1] ",
    "statements": "SELECT x ",
    "functions": "def f(",
    "emoji": "😀",
}
HEAPS = {name: ("a" + grain * LONG)[: LONG - 1] + "b" for name, grain in GRAINS.items() if grain}
HEAPS["printable"] = "".join(rng.choice(string.printable) for _ in range(LONG))
HEAPS["closed lists"] = "[" * (LONG // 2) + "]" * (LONG // 2)


def readable_depth() -> int:
    """How many lists in one another Python's JSON reader can read from here."""
    low, high = 1, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        try:
            json.loads("[" * middle + "]" * middle)
        except RecursionError:
            high = middle
        else:
            low = middle
    return low


def nested(depth: int) -> list[str]:
    """JSON in shapes that some setting reads, so deep that what comes after reading has to go as deep."""
    return [
        '{"answer":' * depth + '{"answer":1,"sql":"SELECT 1"}' + "}" * depth,
        "[" * depth + '{"answer":1,"task":"A","start":0}' + "]" * depth,
        '{"answer":' + "[" * depth + "1" + "]" * depth + "}",
        '{"schedule":' + "[" * depth + "1" + "]" * depth + "}",
        '{"calls":[{"name":"x","arguments":{"a":' + "[" * depth + "1" + "]" * depth + '}}],"respond":"x"}',
        '{"steps":' + '{"value":' * depth + "1" + "}" * depth + ',"answer":{"value":2}}',
    ]


def parsed(name: str, reply: str) -> str | None:
    """The artifact, or None where the setting says that there is none; anything else is a failure of the test."""
    try:
        artifact = opened(name)[0].parse(reply)
    except Unparsable:
        return None
    assert isinstance(artifact, str)
    assert artifact.strip(), "an artifact says something"
    return artifact


def answers(name: str, stride: int) -> list[SlottedText]:
    _, store = opened(name)
    return [store.answers[task.id].text for task in store.tasks[::stride]]


def right(text: SlottedText) -> str:
    return text.reply([0] * len(text.slots))


@every_setting
def test_a_reference_is_read_whatever_stands_around_it(name):
    for text in answers(name, 9):
        reply, fence = right(text), text.fence
        wrapped = {
            "untouched": reply,
            "bare": text.reference,
            "in a plain fence": f"```\n{text.reference}\n```",
            "in a fence of its own": f"```{fence.upper()}\n{text.reference}\n```\n",
            "in a longer fence": f"````\n{text.reference}\n````",
            "in two fences": f"````markdown\n```{fence}\n{text.reference}\n```\n````",
            "without the closing fence": f"```{fence}\n{text.reference}",
            "amid text": f"Here is the answer:\n\n{reply}\n\nLet me know if you need anything else.",
            "fenced amid text": f"Sure!\n```{fence}\n{text.reference}\n```\nI hope that this helps.",
            "with Windows line ends": reply.replace("\n", "\r\n"),
        }
        assert {how: parsed(name, each) for how, each in wrapped.items()} == dict.fromkeys(wrapped, text.reference)


@every_setting
def test_a_reply_that_is_cut_off_is_a_draft_or_unparsable(name):
    for text in answers(name, 9):
        for reply in (right(text), text.reference):
            for tenth in range(10):
                artifact = parsed(name, reply[: len(reply) * tenth // 10])
                assert artifact is None or tenth > 0


@every_setting
@pytest.mark.parametrize("what", NOTHING)
def test_nothing_and_a_refusal_are_unparsable(name, what):
    assert parsed(name, NOTHING[what]) is None


@every_setting
def test_junk_of_any_kind_and_length_is_a_draft_or_unparsable(name):
    for junk in (*JUNK.values(), *HEAPS.values()):
        parsed(name, junk)
    for junk in HEAPS.values():
        parsed(name, f"Here it is:\n```json\n{junk[: LONG // 4]}b\n```")


@every_setting
def test_deep_nesting_is_a_draft_or_unparsable(name):
    readable = readable_depth()  # a parser, which is called a little deeper, can read a little less
    for depth in (10, 100, *range(readable - 20, readable + 1, 2), 50_000):
        for reply in nested(depth):
            parsed(name, reply)


COURSE = Course(
    (
        Action.OBSERVE,
        Action.RETRIEVE,
        Action.CALL_TOOL,
        Action.DRAFT,
        Action.CALL_TOOL,
        Action.CHECK,
        Action.REVISE,
        Action.CHECK,
        Action.SUBMIT,
    )
)


def assert_storable(episode: Episode, executor: ScriptedExecutor) -> None:
    """No file, database or request refuses a text of it."""
    texts = [*episode.artifacts.values(), canonical_json([asdict(event) for event in episode.events])]
    texts += [message.content for request in executor.requests for message in request.messages]
    for text in texts:
        text.encode("utf-8")


def episode_of_replies(name: str, reply: str) -> Episode:
    setting, store = opened(name)
    executor = ScriptedExecutor(dict.fromkeys(Purpose, reply))
    (episode,) = run(setting, store.tasks[50:51], COURSE, executor, store.sealed)
    assert_storable(episode, executor)
    return episode


@every_setting
@pytest.mark.parametrize("what", NOTHING)
def test_an_episode_of_nothing_is_invalid_with_return_zero(name, what):
    episode = episode_of_replies(name, NOTHING[what])
    assert (episode.eval_status, episode.return_, episode.termination) == (
        EvalStatus.INVALID,
        0.0,
        Termination.HORIZON,
    )
    drafts = [event for event in episode.events if event.action is Action.DRAFT]
    assert drafts
    assert {event.error for event in drafts} == {EventError.PARSE}
    assert not episode.final_artifact
    assert not episode.artifacts


@every_setting
def test_an_episode_of_junk_is_scored_or_invalid(name):
    replies = [*JUNK.values(), *nested(40), *nested(readable_depth() - 40)]
    replies += [heap[: LONG // 20] for heap in HEAPS.values()]
    for reply in replies:
        episode = episode_of_replies(name, reply)
        if episode.eval_status is EvalStatus.INVALID:
            assert (episode.return_, episode.final_artifact) == (0.0, "")
        else:
            assert episode.final_artifact in episode.artifacts
            assert 0.0 <= episode.return_ < 0.5


@every_setting
def test_an_episode_of_replies_that_are_cut_off_is_scored_or_invalid(name):
    _, store = opened(name)
    reply = right(store.answers[store.tasks[50].id].text)
    returns = [episode_of_replies(name, reply[: len(reply) * tenth // 10]).return_ for tenth in (1, 3, 5, 7, 9, 10)]
    assert all(0.0 <= value <= 1.0 for value in returns)
    assert returns[-1] == 1.0
