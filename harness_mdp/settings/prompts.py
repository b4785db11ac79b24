"""The shape of every prompt: a system line and one user message of named sections.

Sections keep prompts short and readable for any chat model, and let the simulated executor, which receives
the same prompts, read what is at hand: evidence, tool results, the draft, the problems named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from harness_mdp.executors.protocol import Message

__all__ = ["Unparsable", "bracketed_ids", "compose", "fenced", "read_sections", "review_problems", "without_thinking"]

_SECTION = re.compile(r"^=== (Task|Evidence|Tool results|Draft|Problems|Instructions) ===$", re.MULTILINE)
_BRACKETED = re.compile(r"^\[([^\]\n]+)\]", re.MULTILINE)
# Three backticks or more; as many close it, unless an info string follows: then another fence opens inside.
_FENCE = re.compile(r"(?<!`)(`{3,}+)[^\n`]*+\n(.*?)(?:\n?(?<!`)\1`*+(?!\w)|\Z)", re.DOTALL)
_MAX_NESTING = 3
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", re.MULTILINE)


class Unparsable(Exception):
    """A reply that holds nothing the setting can read; the message says why, in one line."""


def compose(
    system: str,
    *,
    task: str,
    instructions: str,
    evidence: Mapping[str, str] | None = None,
    tool_results: Sequence[tuple[str, str]] = (),
    draft: str | None = None,
    problems: Iterable[str] = (),
) -> tuple[Message, ...]:
    """System and user message. Sections that are empty are left out; order is fixed.

    Args:
        system: who the model is and the one rule that matters, one or two sentences.
        task: the public task text.
        instructions: what to reply, and in which form.
        evidence: text by evidence id; each item starts with `[id]`.
        tool_results: (id, text) in the order of the calls; each starts with `[id]`.
        draft: the current artifact.
        problems: one line each.
    """
    sections = [("Task", task)]
    if evidence:
        sections.append(("Evidence", "\n".join(f"[{name}] {text}" for name, text in evidence.items())))
    if tool_results:
        sections.append(("Tool results", "\n".join(f"[{name}] {text}" for name, text in tool_results)))
    if draft is not None:
        sections.append(("Draft", draft))
    listed = "\n".join(f"- {problem}" for problem in problems)
    if listed:
        sections.append(("Problems", listed))
    sections.append(("Instructions", instructions))
    body = "\n".join(f"=== {title} ===\n{text}" for title, text in sections)
    return (Message("system", system), Message("user", body))


def read_sections(messages: Sequence[Message]) -> dict[str, str]:
    """Section title -> text of the last user message; the inverse of `compose`."""
    body = messages[-1].content
    marks = list(_SECTION.finditer(body))
    ends = [mark.start() for mark in marks[1:]] + [len(body)]
    return {mark[1]: body[mark.end() : end].strip("\n") for mark, end in zip(marks, ends, strict=True)}


def bracketed_ids(section: str) -> tuple[str, ...]:
    """Ids of the items of an Evidence or Tool results section, in order."""
    return tuple(match[1] for match in _BRACKETED.finditer(section))


def without_thinking(reply: str) -> str:
    """`reply` less the reasoning that some models put before it, `<think> ... </think>`; one left open has no reply."""
    head, opened, rest = reply.partition("<think>")
    if not opened or head.strip():
        return reply
    return rest.partition("</think>")[2]


def fenced(reply: str) -> str:
    """Text of the longest code fence (an unclosed one counts, as truncated output has it), else the whole reply.

    Of fences inside one another the innermost counts. Windows line ends become plain ones.

    Raises:
        Unparsable: the reply is empty.
    """
    text = reply.replace("\r\n", "\n").strip()
    for _ in range(_MAX_NESTING):
        blocks = [match[2] for match in _FENCE.finditer(text)]
        if not blocks:
            break
        text = max(blocks, key=len).strip("\n")
    if not text.strip():
        raise Unparsable("the reply is empty")
    return text


def review_problems(reply: str, limit: int = 5) -> tuple[str, ...] | None:
    """Problems that a self-review names, at most `limit`, each at most 200 characters.

    A reply that begins with OK names none; bullets or numbered lines are one problem each; anything else is
    not a review, and the answer is None.
    """
    text = reply.strip()
    if re.match(r"(?i)\W*(ok\b|no problems?\b|none\b)", text):
        return ()
    found = tuple(match[1].strip()[:200] for match in _BULLET.finditer(text))[:limit]
    return found or None
