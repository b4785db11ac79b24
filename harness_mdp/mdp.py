"""The Harness MDP: actions, legal masks, events, state, policies, episodes (DESIGN sections 2 and 3).

`State = fold(events)`: the state is never stored, it is rebuilt from the typed events by `advance`, which
is the same code online, in import and in verification. Nothing here knows a setting's content, an executor
or a file; nothing sealed can reach a state, because no event has a field for it.

Longer than other modules on purpose: it is the one place where all records live, and half of it is their fields'
docstrings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = [
    "ACTIONS",
    "N_ACTIONS",
    "Action",
    "Artifact",
    "Budgets",
    "CheckResult",
    "Claim",
    "DecisionBatch",
    "DecisionPoint",
    "Episode",
    "EvalStatus",
    "Event",
    "EventError",
    "LegalRules",
    "Mask",
    "Needs",
    "Policy",
    "Probs",
    "State",
    "Status",
    "Step",
    "Termination",
    "ToolResult",
    "advance",
    "ended",
    "fold",
    "legal_mask",
    "start",
]

Probs = npt.NDArray[np.float64]
"""Probabilities over the seven structural actions: (7,) or (n, 7), float64, rows sum to 1."""

Mask = npt.NDArray[np.bool_]
"""Legal actions: (7,) or (n, 7), bool, at least one True a row."""


class Action(IntEnum):
    """A structural action; one action is one step, parse failures included."""

    OBSERVE = 0
    RETRIEVE = 1
    CALL_TOOL = 2
    DRAFT = 3
    CHECK = 4
    REVISE = 5
    SUBMIT = 6

    @property
    def label(self) -> str:
        """The name used in files, tables and messages, e.g. `call_tool`."""
        return self.name.lower()


ACTIONS: tuple[Action, ...] = tuple(Action)
N_ACTIONS: int = len(ACTIONS)


class Status(StrEnum):
    """How a step went. A parse failure is a step with status `error` that leaves the artifact as it was."""

    OK = "ok"
    ERROR = "error"


class EventError(StrEnum):
    """Why a step has status `error`; all of these are the agent's own faults."""

    NONE = ""
    PARSE = "parse"
    CONTEXT = "context_overflow"
    TIMEOUT = "agent_timeout"
    REFUSED = "content_filter"


class Termination(StrEnum):
    """What ended an episode; after `horizon` and `budget` the harness submits what it has."""

    SUBMIT = "submit"
    HORIZON = "horizon"
    BUDGET = "budget"


class EvalStatus(StrEnum):
    """`scored`, or `invalid`: nothing, or nothing parsable, was submitted (return 0)."""

    SCORED = "scored"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the artifact that evidence can support."""

    text: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Artifact:
    """A version of the draft; the text is stored once per episode under its hash."""

    version: int
    """1 for the first draft, +1 with every change."""
    sha256: str
    chars: int


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call returned."""

    name: str
    valid: bool
    """The call could be parsed and its arguments fit the tool."""
    ok: bool
    """The tool ran without an error of its own."""
    version: int = 0
    """Artifact version it ran on; 0 if it ran on none."""
    passed: int = 0
    total: int = 0
    """Items (visible tests, rules) passed and run; 0 of 0 for a tool that tests nothing."""
    problems: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """An error, or a test that did not pass."""
        return not self.valid or not self.ok or self.passed < self.total


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found; `score` is the share of check items passed, in [0, 1]."""

    score: float
    version: int
    passed: int
    total: int
    problems: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """A failing check is one that names problems."""
        return bool(self.problems)


@dataclass(frozen=True, slots=True)
class Event:
    """What one step did, as raw outcomes. Everything a state, a mask or HMS needs, and nothing sealed."""

    action: Action
    status: Status = Status.OK
    error: EventError = EventError.NONE
    evidence: tuple[str, ...] = ()
    """Ids of evidence items that this step gathered and that were not at hand before."""
    tool: ToolResult | None = None
    check: CheckResult | None = None
    artifact: Artifact | None = None
    """The new version, when this step made one."""
    claims: tuple[Claim, ...] | None = None
    """Claims of the current artifact after this step; None when neither they nor their support changed."""
    note: str = ""
    """One line for a person: why a reply could not be read, what was submitted."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    """USD; None when a price is unknown, never 0 for unknown."""
    seconds: float = 0.0
    """Wall time; the only field that may differ between two runs of the same work."""

    @property
    def tokens(self) -> int:
        """Prompt plus completion tokens."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Budgets:
    """Spending limits of an episode; None is no limit."""

    tokens: int | None = None
    usd: float | None = None


class Needs(StrEnum):
    """What `call_tool` needs before it is legal."""

    NOTHING = "nothing"
    ARTIFACT = "artifact"
    RETRIEVED = "retrieved"


@dataclass(frozen=True, slots=True)
class LegalRules:
    """The part of the legal mask that differs between settings."""

    offers_retrieve: bool
    tool_needs: Needs


@dataclass(frozen=True, slots=True)
class State:
    """A typed summary of the episode so far. Build it with `start` and `advance` only."""

    horizon: int
    budgets: Budgets
    steps: int = 0
    counts: tuple[int, ...] = (0,) * N_ACTIONS
    """Steps per structural action, failed ones included."""
    last_action: Action | None = None
    tokens: int = 0
    cost_usd: float | None = 0.0
    artifact: Artifact | None = None
    evidence: tuple[str, ...] = ()
    """Ids at hand, in the order gathered."""
    retrieved: int = 0
    """Evidence items that a `retrieve` brought."""
    evidence_new: int = 0
    """Evidence items gathered since the last draft or revision that succeeded."""
    claims: tuple[Claim, ...] = ()
    tool_errors: int = 0
    last_tool: ToolResult | None = None
    unread_tool: bool = False
    """A tool result arrived after the current version was written."""
    last_check: CheckResult | None = None
    check_step: int = 0
    """Step of the last check; 0 for none."""
    open_problems: int = 0
    """Problems the last check or tool named in the current version."""
    revisions: int = 0
    """Revisions that made a new version."""
    executor_errors: int = 0
    stalled: int = 0
    """Steps since the last one that brought evidence, a version, or a first verdict on a version."""

    @property
    def version(self) -> int:
        """Current artifact version; 0 without an artifact."""
        return self.artifact.version if self.artifact else 0

    @property
    def version_checked(self) -> bool:
        """The current version has been checked."""
        return self.last_check is not None and self.last_check.version == self.version > 0

    @property
    def version_tested(self) -> bool:
        """A tool ran on the current version."""
        return self.last_tool is not None and self.last_tool.version == self.version > 0

    def count(self, action: Action) -> int:
        """Steps that took `action`, failed ones included."""
        return self.counts[action]


def start(horizon: int, budgets: Budgets | None = None) -> State:
    """The state before the first step.

    Args:
        horizon: H, at least 1.
        budgets: token and USD limits.

    Raises:
        ValueError: `horizon` is below 1.
    """
    if horizon < 1:
        raise ValueError(f"horizon is {horizon}; expected at least 1")
    return State(horizon=horizon, budgets=budgets or Budgets())


def advance(state: State, event: Event) -> State:
    """The state after `event`; the only place where states change."""
    counts = list(state.counts)
    counts[event.action] += 1
    changes: dict[str, object] = {
        "steps": state.steps + 1,
        "counts": tuple(counts),
        "last_action": event.action,
        "tokens": state.tokens + event.tokens,
        "cost_usd": None if state.cost_usd is None or event.cost_usd is None else state.cost_usd + event.cost_usd,
        "executor_errors": state.executor_errors + (event.status is Status.ERROR),
    }
    progress = bool(event.evidence)
    evidence_new = state.evidence_new
    if event.evidence:
        evidence_new += len(event.evidence)
        changes["evidence"] = state.evidence + event.evidence
        if event.action is Action.RETRIEVE:
            changes["retrieved"] = state.retrieved + len(event.evidence)
    if event.artifact is not None:
        progress = True
        evidence_new = 0
        changes["artifact"] = event.artifact
        changes["open_problems"] = 0
        changes["unread_tool"] = False
        if event.action is Action.REVISE:
            changes["revisions"] = state.revisions + 1
    changes["evidence_new"] = evidence_new
    if event.claims is not None:
        changes["claims"] = event.claims
    if event.tool is not None:
        progress = progress or (event.tool.version > 0 and not state.version_tested)
        changes["last_tool"] = event.tool
        changes["unread_tool"] = True
        changes["tool_errors"] = state.tool_errors + (not event.tool.valid or not event.tool.ok)
        if event.tool.version:  # a tool that ran on no version says nothing about the draft
            changes["open_problems"] = len(event.tool.problems)
    if event.check is not None:
        progress = progress or not state.version_checked
        changes["last_check"] = event.check
        changes["check_step"] = state.steps + 1
        changes["open_problems"] = len(event.check.problems)
    changes["stalled"] = 0 if progress else state.stalled + 1
    return replace(state, **changes)  # pyright: ignore[reportArgumentType]  (checked by the fields' tests)


def fold(events: Iterable[Event], initial: State) -> list[State]:
    """States s_1 .. s_{T+1}: `initial`, then the state after each event."""
    states = [initial]
    for event in events:
        states.append(advance(states[-1], event))
    return states


def ended(state: State) -> Termination | None:
    """What ended the episode in `state`, or None while it goes on.

    After H steps, or once the token or money budget is spent, the harness submits what it has; that forced
    submission is no step and has no propensity.
    """
    if state.last_action is Action.SUBMIT:
        return Termination.SUBMIT
    budgets = state.budgets
    if budgets.tokens is not None and state.tokens >= budgets.tokens:
        return Termination.BUDGET
    if budgets.usd is not None and state.cost_usd is not None and state.cost_usd >= budgets.usd:
        return Termination.BUDGET
    return Termination.HORIZON if state.steps >= state.horizon else None


def legal_mask(rules: LegalRules, state: State) -> Mask:
    """m(s) as (7,) bool (the table of DESIGN section 3).

    `draft` and `observe` are always legal; `check`, `revise`, `submit` need an artifact.
    """
    has_artifact = state.artifact is not None
    tool = {
        Needs.NOTHING: True,
        Needs.ARTIFACT: has_artifact,
        Needs.RETRIEVED: state.retrieved > 0,
    }[rules.tool_needs]
    mask = np.zeros(N_ACTIONS, dtype=np.bool_)
    mask[Action.OBSERVE] = True
    mask[Action.RETRIEVE] = rules.offers_retrieve
    mask[Action.CALL_TOOL] = tool
    mask[Action.DRAFT] = True
    mask[[Action.CHECK, Action.REVISE, Action.SUBMIT]] = has_artifact
    return mask


@dataclass(frozen=True, slots=True, eq=False)
class DecisionPoint:
    """What a policy may see at one step. Scripts read `state`; learned policies only the other three."""

    state: State
    features: npt.NDArray[np.float32]
    """(d,) in the order of the setting's feature schema."""
    mask: Mask
    """(7,)"""
    base_action: Action
    """What the setting's `base` script would do here."""


@dataclass(frozen=True, slots=True, eq=False)
class DecisionBatch:
    """n stored decision points."""

    features: npt.NDArray[np.float32]
    """(n, d)"""
    mask: Mask
    """(n, 7)"""
    base_action: npt.NDArray[np.int64]
    """(n,)"""
    states: Sequence[State] = ()
    """n states, refolded from events; empty where only learned policies are asked."""

    def __len__(self) -> int:
        return len(self.features)


class Policy(Protocol):
    """A pure function from a decision point to probabilities over the legal actions."""

    @property
    def name(self) -> str:
        """Short name for tables, e.g. `check_revise`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the decisions could: script name and version, weights hash, mixture, ε, R, rule."""
        ...

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,) float64, sums to 1, exactly 0 on illegal actions."""
        ...

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7) float64, the same rows as n calls of `probs`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One decision and what came of it, with everything needed to learn from it and to evaluate others on it."""

    t: int
    """1..H"""
    event: Event
    features: npt.NDArray[np.float32]
    mask: Mask
    base_action: Action
    action: Action
    propensities: Probs
    """(7,) the behaviour policy's full distribution; μ(action) is the propensity."""


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """One task, one policy, one rollout, one seed: a row of the buffer (DESIGN section 7)."""

    episode_id: str
    run: str
    phase: str
    """`collect`, `eval` or `import`."""
    setting: str
    setting_version: int
    feature_schema_id: str
    task_id: str
    task_hash: str
    template: str
    split: str
    difficulty: str
    executor: str
    """Executor fingerprint."""
    policy: str
    policy_fingerprint: str
    seed: int
    rollout: int
    horizon: int
    budgets: Budgets
    eval_status: EvalStatus
    termination: Termination
    return_: float
    """Q in [0, 1]; column `return`."""
    rubric: tuple[tuple[str, float, float], ...]
    """(criterion id, score in [0, 1], weight)"""
    maturity: Mapping[str, float] = field(default_factory=dict[str, float])
    """Preset -> HMS; `{}` before scoring."""
    maturity_events: tuple[tuple[str, str, bool, bool], ...] = ()
    """(preset, event, applicable, fired)"""
    artifacts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text by SHA-256."""
    final_artifact: str = ""
    """SHA-256 of what was submitted; empty if nothing."""
    tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    propensity_source: str = "logged"
    """`logged` or `estimated`."""
    steps: tuple[Step, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of all steps, in order."""
        return tuple(step.event for step in self.steps)
