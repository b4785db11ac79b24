"""The one table that says what a failure means: try again or not, grade or not, valid return or not.

A failure that is the agent's own doing costs it a step and the episode is graded as ever. A failure outside the
agent gives no return, never 0. A failure that would meet every further call stops the run.

| failure | tried again | graded | valid return | raised as |
|---|---|---|---|---|
| rate limit, server error, lost connection, endpoint time-out | by the SDK | no | no | InfraFault |
| malformed reply, crash of a scorer or tool | no | no | no | InfraFault |
| context overflow, refused content, the agent's step time-out | no | yes | yes | AgentFault |
| key refused, no quota, unknown model or address | no | no | no | ExecutorStopped |
| any other 4xx before a call was answered: the configuration is wrong | no | no | no | ExecutorStopped |
| any other 4xx later: this one request is wrong | no | no | no | InfraFault |

A status error is read by status, then by the error code, then by the words that servers are known to use, since
OpenAI, Azure, vLLM, llama.cpp and the gateways in front of them agree on little else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness_mdp.executors.protocol import AgentFault, ExecutorStopped, InfraFault
from harness_mdp.mdp import EventError

__all__ = ["TABLE", "Failure", "Raises", "Rule", "classify", "make_fault"]


class Failure(StrEnum):
    """What went wrong."""

    RATE_LIMIT = "rate limit"
    SERVER = "server error"
    CONNECTION = "connection"
    TIMEOUT = "endpoint time-out"
    MALFORMED = "malformed reply"
    CRASH = "crash outside the agent"
    CONTEXT = "context overflow"
    REFUSED = "refused content"
    STEP_TIMEOUT = "agent's step time-out"
    AUTHENTICATION = "authentication refused"
    QUOTA = "account without quota"
    UNKNOWN_MODEL = "unknown model or address"
    CONFIGURATION = "request refused before any was answered"
    BAD_REQUEST = "request refused"


class Raises(StrEnum):
    """Which of the three exceptions of the executor protocol a failure becomes."""

    AGENT = "AgentFault"
    INFRA = "InfraFault"
    STOP = "ExecutorStopped"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    retry: bool
    """The SDK tries again before the failure is reported at all."""
    grade: bool
    """The episode goes on and is scored in the end."""
    valid_return: bool
    """What is scored counts as a return; without it the episode has none, never 0."""
    raises: Raises
    error: EventError = EventError.NONE
    """What the step records, for an agent's own fault."""


_OUTSIDE = Rule(retry=False, grade=False, valid_return=False, raises=Raises.INFRA)
_OUTSIDE_RETRIED = Rule(retry=True, grade=False, valid_return=False, raises=Raises.INFRA)
_STOP = Rule(retry=False, grade=False, valid_return=False, raises=Raises.STOP)


def _own(error: EventError) -> Rule:
    return Rule(retry=False, grade=True, valid_return=True, raises=Raises.AGENT, error=error)


TABLE: Mapping[Failure, Rule] = {
    Failure.RATE_LIMIT: _OUTSIDE_RETRIED,
    Failure.SERVER: _OUTSIDE_RETRIED,
    Failure.CONNECTION: _OUTSIDE_RETRIED,
    Failure.TIMEOUT: _OUTSIDE_RETRIED,
    Failure.MALFORMED: _OUTSIDE,
    Failure.CRASH: _OUTSIDE,
    Failure.BAD_REQUEST: _OUTSIDE,
    Failure.CONTEXT: _own(EventError.CONTEXT),
    Failure.REFUSED: _own(EventError.REFUSED),
    Failure.STEP_TIMEOUT: _own(EventError.TIMEOUT),
    Failure.AUTHENTICATION: _STOP,
    Failure.QUOTA: _STOP,
    Failure.UNKNOWN_MODEL: _STOP,
    Failure.CONFIGURATION: _STOP,
}

_CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_CONTEXT_WORDS = re.compile(
    r"maximum context length|context length (is |was )?exceed|exceeds? .{0,40}context (window|length|size)"
    r"|prompt is too long|input is too long|too many (input )?tokens in",
    re.IGNORECASE,
)
_REFUSED_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt", "moderation_blocked"})
_REFUSED_WORDS = re.compile(
    r"content (management )?policy|content[ _]filter|ResponsibleAIPolicyViolation|flagged|requires moderation",
    re.IGNORECASE,
)
_MODEL_CODES = frozenset({"model_not_found", "DeploymentNotFound"})
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


def classify(error: Exception, *, answered: bool) -> Failure:
    """Which failure an exception is.

    Args:
        error: what the OpenAI SDK raised, one of the protocol's own faults, or anything that a scorer or tool
            raised.
        answered: some earlier call of this executor was answered, so its configuration works.
    """
    own = {rule.error: failure for failure, rule in TABLE.items() if rule.raises is Raises.AGENT}
    if isinstance(error, AgentFault):
        return own.get(error.error, Failure.REFUSED)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        return _by_status(status, error, answered)
    # An SDK exception implies that the SDK is loaded; a simulated run never pays for its import.
    import openai

    if isinstance(error, openai.APITimeoutError):
        return Failure.TIMEOUT
    if isinstance(error, openai.APIConnectionError):
        return Failure.CONNECTION
    # What is left of the SDK's own errors, and a ValueError, come from reading a reply.
    if isinstance(error, openai.OpenAIError | ValueError | RecursionError):
        return Failure.MALFORMED
    return Failure.CRASH


def _by_status(status: int, error: Exception, answered: bool) -> Failure:
    codes = {str(getattr(error, name, None)) for name in ("code", "type")}
    text = f"{error} {getattr(error, 'body', None)}"
    overflow = bool(codes & _CONTEXT_CODES) or _CONTEXT_WORDS.search(text) is not None
    if status == 413 or (status in (400, 422, 500) and overflow):
        return Failure.CONTEXT
    refused = bool(codes & _REFUSED_CODES) or _REFUSED_WORDS.search(text) is not None
    if status in (400, 403, 422) and refused:
        return Failure.REFUSED
    if status in (401, 403):
        return Failure.AUTHENTICATION
    if status == 402 or codes & _QUOTA_CODES:
        return Failure.QUOTA
    if status == 404 or codes & _MODEL_CODES:
        return Failure.UNKNOWN_MODEL
    if status == 429:
        return Failure.RATE_LIMIT
    if status == 408:
        return Failure.TIMEOUT
    if status == 409 or status >= 500:
        return Failure.SERVER
    return Failure.BAD_REQUEST if answered else Failure.CONFIGURATION


def make_fault(failure: Failure, message: str) -> AgentFault | InfraFault | ExecutorStopped:
    """The protocol's exception for `failure`; `message` must be free of secrets."""
    rule = TABLE[failure]
    match rule.raises:
        case Raises.AGENT:
            return AgentFault(rule.error, message)
        case Raises.INFRA:
            return InfraFault(message)
        case Raises.STOP:
            return ExecutorStopped(message)
