"""What a chat completions endpoint answered, read strictly: a completion, or a reason why it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness_mdp.executors.protocol import Completion, Message
from harness_mdp.hashing import Json

__all__ = ["CHARS_PER_TOKEN", "Price", "estimated_tokens", "read_reply"]

CHARS_PER_TOKEN = 4
"""Where a server does not say how many tokens it used: characters over this, rounded up, at least 1.

About right for English and code with the tokenizers in use; and never 0, which would read as free.
"""

_MAX_TOKENS = 2**53
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """USD for one call."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def estimated_tokens(chars: int) -> int:
    """Tokens of a text of `chars` characters, when nobody counted them."""
    return max(1, -(-chars // CHARS_PER_TOKEN))


def read_reply(
    body: bytes, messages: Sequence[Message], *, model: str, price: Price | None, seconds: float
) -> Completion:
    """The completion in the body of a 200 answer.

    Content that is null, missing or a refusal gives a completion with an empty text: the setting cannot parse
    it, which is the agent's own failure. `finish_reason` is kept as the server gave it.

    Args:
        body: the answer, JSON.
        messages: what was asked; counted where the server gives no usage.
        model: name to record where the server gives none.
        price: None leaves the cost unknown.
        seconds: latency to record.

    Raises:
        ValueError: the body is no chat completion; the message says where it stops being one.
    """
    reply = json.loads(body)
    if not isinstance(reply, dict):
        raise ValueError(f"the body is JSON of type {type(reply).__name__}; expected an object")
    if reply.get("error"):
        raise ValueError(f"status 200 with an error in the body: {_error_text(reply['error'])}")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ValueError("field 'choices' holds no choice")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise ValueError("field 'choices[0].message' is no object")
    text = _clean(_text(message.get("content")))
    finish_reason = choices[0].get("finish_reason")
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    prompt_tokens = _count(usage.get("prompt_tokens"), least=1)
    if prompt_tokens is None:
        prompt_tokens = estimated_tokens(sum(len(message.content) for message in messages))
    # A count of 0 is believed for an empty text only.
    completion_tokens = _count(usage.get("completion_tokens"), least=1 if text else 0)
    if completion_tokens is None:
        completion_tokens = estimated_tokens(len(text))
    named = reply.get("model")
    return Completion(
        text=text,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost_usd=None if price is None else price.cost(prompt_tokens, completion_tokens),
        seconds=seconds,
        finish_reason=_clean(finish_reason) if isinstance(finish_reason, str) else "",
        model=_clean(named) if isinstance(named, str) and named else model,
    )


def _text(content: Json) -> str:
    """Text of a message's content: a string, nothing, or a list of parts of which some carry text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    raise ValueError(f"field 'choices[0].message.content' is of type {type(content).__name__}; expected text")


def _clean(text: str) -> str:
    """Unpaired surrogates, which JSON can carry, become U+FFFD: no file, hash or next prompt could hold them."""
    return _SURROGATE.sub("\ufffd", text)


def _count(value: Json, *, least: int) -> int | None:
    counted = isinstance(value, int) and not isinstance(value, bool) and least <= value < _MAX_TOKENS
    return value if counted else None


def _error_text(error: Json) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)
