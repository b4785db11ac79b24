"""What a setting is: a family of tasks with its tools, legal actions, scripts, check and rubric.

A setting says *what* its actions do; *how* an action becomes an event is the same for all (`acting.act`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness_mdp.executors.protocol import Completion, Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.mdp import Action, Budgets, Claim, LegalRules, State, ToolResult
from harness_mdp.settings.tasks import Sealed, Task, TaskStore

__all__ = [
    "Ask",
    "CheckItem",
    "Criterion",
    "Evidence",
    "Script",
    "Setting",
    "ToolCall",
    "Workspace",
    "rubric_value",
]

Ask = Callable[[Purpose, tuple[Message, ...]], Awaitable[Completion]]
"""Makes one executor call on behalf of the current step; usage is booked on the step."""

Script = Callable[[State, LegalRules], Action]
"""A hand-written policy: the structural action in a state."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One item that an evidence action or a tool brought; `id` is unique in the episode."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CheckItem:
    """One thing a check verifies with what is available when deployed."""

    id: str
    passed: bool
    problem: str = ""
    """One line that names the problem, when not passed."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One line of the sealed rubric."""

    id: str
    score: float
    """[0, 1]"""
    weight: float = 1.0


def rubric_value(criteria: Sequence[Criterion]) -> float:
    """Q = Σ w_c s_c / Σ w_c.

    Raises:
        ValueError: no criterion, a weight that is not positive, or a score outside [0, 1].
    """
    for criterion in criteria:
        if not 0.0 <= criterion.score <= 1.0 or criterion.weight <= 0.0:
            raise ValueError(f"criterion {criterion.id!r} has score {criterion.score}, weight {criterion.weight}")
    if not criteria:
        raise ValueError("a rubric needs at least one criterion")
    return sum(c.weight * c.score for c in criteria) / sum(c.weight for c in criteria)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool result, what the executor gets to read of it, and the evidence it brought (an opened document)."""

    result: ToolResult
    text: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(slots=True)
class Workspace:
    """The texts behind the state of one running episode: what prompts are made from. Mutable, never stored."""

    task: Task
    evidence: dict[str, str] = field(default_factory=dict[str, str])
    """Text by evidence id, in the order gathered."""
    tool_results: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(id, text), in order of the calls."""
    artifact: str | None = None
    version: int = 0
    problems: tuple[str, ...] = ()
    """Named by the last check or tool in the current version."""
    notes: dict[str, int] = field(default_factory=dict[str, int])
    """Counters that a setting keeps for itself, e.g. how far `observe` has got."""


class Setting(Protocol):
    """A family of tasks. Every implementation is one module that reads like the others."""

    name: str
    version: int
    """Bumped by hand whenever tasks, prompts, tools, masks, scripts, check or rubric change."""
    horizon: int
    budgets: Budgets
    rules: LegalRules
    schema: FeatureSchema
    scripts: Mapping[str, Script]
    """At least base, forced_check, check_revise, tool_first, more_evidence."""
    tests_code: bool
    """HMS: TestBeforeSubmit applies (and EvidenceBeforeClaim does not)."""

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """Tasks from the generator, or from benchmark files at `path`; splits are not set yet.

        Raises:
            ConfigError: `path` is given and the setting has no benchmark files.
            InputError: a missing or damaged file, by name, line and field.
        """
        ...

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """The four structural flags named in `schema.flags`."""
        ...

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """What one more `observe` brings; empty when there is nothing more to see."""
        ...

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """What one more `retrieve` brings; never called where it is not offered."""
        ...

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:
        """Run the tool, after asking the executor which and how where the setting lets it choose."""
        ...

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The prompt for `purpose` from what is in the workspace."""
        ...

    def parse(self, reply: str) -> str:
        """The artifact in a model's reply.

        Raises:
            Unparsable: there is none.
        """
        ...

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """Deterministic items of the check (self-review is added by `acting.act`); `workspace.artifact` is set."""
        ...

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """Claims of the current artifact and whether the evidence at hand supports them; empty: no claims."""
        ...

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """The sealed rubric on a submitted artifact."""
        ...
