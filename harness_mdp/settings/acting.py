"""How a structural action becomes an event: the one dispatch that every setting shares.

The workspace is changed here and only here. A reply that cannot be read, or a call that failed by the agent's
own fault, gives an event with status `error` and leaves artifact and evidence as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness_mdp.executors.protocol import AgentFault, Purpose
from harness_mdp.hashing import text_hash
from harness_mdp.mdp import (
    Action,
    Artifact,
    CheckResult,
    Claim,
    Event,
    EventError,
    Status,
)
from harness_mdp.settings.prompts import Unparsable, review_problems
from harness_mdp.settings.protocol import Ask, CheckItem, Evidence, Setting, Workspace

__all__ = ["act"]

SELF_REVIEW = "self_review"
MAX_ARTIFACT_CHARS = 100_000

_KEEPS_CLAIMS = frozenset({Action.CHECK, Action.SUBMIT})
"""Actions that change neither artifact nor evidence, so that the claims and their support stay what they were."""


async def act(setting: Setting, action: Action, workspace: Workspace, ask: Ask) -> Event:
    """Carry out `action` in `workspace` and report it.

    Usage fields (`calls`, tokens, cost, seconds) are left at their defaults; the runner books them, since it
    owns `ask`.

    Raises:
        InfraFault, ExecutorStopped: passed through from `ask`.
    """
    before = () if action in _KEEPS_CLAIMS or workspace.artifact is None else setting.claims(workspace)
    try:
        event = await _act(setting, action, workspace, ask)
    except AgentFault as fault:
        return Event(action, Status.ERROR, fault.error, note=_one_line(str(fault)))
    except Unparsable as problem:
        return Event(action, Status.ERROR, EventError.PARSE, note=_one_line(str(problem)))
    if action in _KEEPS_CLAIMS or workspace.artifact is None:
        return event
    after: tuple[Claim, ...] = setting.claims(workspace)
    return event if after == before else replace(event, claims=after)


async def _act(setting: Setting, action: Action, workspace: Workspace, ask: Ask) -> Event:
    match action:
        case Action.OBSERVE:
            return Event(action, evidence=_gather(workspace, setting.observe(workspace)))
        case Action.RETRIEVE:
            return Event(action, evidence=_gather(workspace, setting.retrieve(workspace)))
        case Action.CALL_TOOL:
            return await _call_tool(setting, workspace, ask)
        case Action.DRAFT:
            return await _write(setting, Purpose.DRAFT, action, workspace, ask)
        case Action.REVISE:
            return await _write(setting, Purpose.REVISE, action, workspace, ask)
        case Action.CHECK:
            return await _check(setting, workspace, ask)
        case Action.SUBMIT:
            return Event(action, note=f"submitted version {workspace.version}")


def _gather(workspace: Workspace, items: Sequence[Evidence]) -> tuple[str, ...]:
    """Adds items to the workspace; ids of those that were not at hand before."""
    new = tuple(item.id for item in items if item.id not in workspace.evidence)
    workspace.evidence.update((item.id, item.text) for item in items)
    return new


async def _call_tool(setting: Setting, workspace: Workspace, ask: Ask) -> Event:
    call = await setting.call_tool(workspace, ask)
    result = replace(call.result, problems=tuple(map(_storable, call.result.problems)))
    workspace.tool_results.append((f"tool{len(workspace.tool_results) + 1}", _storable(call.text)))
    evidence = [Evidence(_storable(item.id), _storable(item.text)) for item in call.evidence]
    gathered = _gather(workspace, evidence)
    if result.version:
        workspace.problems = result.problems
    return Event(Action.CALL_TOOL, evidence=gathered, tool=result)


async def _write(setting: Setting, purpose: Purpose, action: Action, workspace: Workspace, ask: Ask) -> Event:
    completion = await ask(purpose, setting.messages(purpose, workspace))
    parsed = setting.parse(completion.text)
    if not isinstance(parsed, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (a user's setting may be untyped)
        raise TypeError(f"{setting.name}: parse() gave {parsed!r}; expected the artifact's text, or Unparsable raised")
    text = _storable(parsed)
    if len(text) > MAX_ARTIFACT_CHARS:
        raise Unparsable(f"the reply holds {len(text)} characters; at most {MAX_ARTIFACT_CHARS} are kept")
    workspace.artifact = text
    workspace.version += 1
    workspace.problems = ()
    return Event(action, artifact=Artifact(workspace.version, text_hash(text), len(text)))


async def _check(setting: Setting, workspace: Workspace, ask: Ask) -> Event:
    items = list(await setting.check_items(workspace))
    completion = await ask(Purpose.CHECK, setting.messages(Purpose.CHECK, workspace))
    reviewed = review_problems(_storable(completion.text))
    note = ""
    if reviewed is None:
        note = "the self-review could not be read and does not count"
    elif reviewed:
        items.append(CheckItem(SELF_REVIEW, False, reviewed[0]))
    else:
        items.append(CheckItem(SELF_REVIEW, True))
    named = [item.problem for item in items if not item.passed]
    problems = tuple(dict.fromkeys([*named, *(reviewed or ())]))
    passed = sum(item.passed for item in items)
    workspace.problems = problems
    check = CheckResult(passed / len(items) if items else 1.0, workspace.version, passed, len(items), problems)
    return Event(Action.CHECK, check=check, note=note)


def _one_line(text: str, limit: int = 200) -> str:
    return " ".join(_storable(text).split())[:limit]


def _storable(text: str) -> str:
    """Without unpaired surrogates, which a reply can bring as JSON escapes: no file, hash or next prompt holds them."""
    return text.encode("utf-8", "replace").decode()
