"""The setting `tabular`: report two figures of an order. Small enough that its transitions are known exactly.

`observe` brings a brief, then an example; `call_tool` looks the order up in the record. Both say how difficult the task
is. A draft marks a figure that it lacks as TODO. `check` is the executor's own review. The rubric is the share of
figures that are right. There is no token budget, which would hide spending among what a state's future depends on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import Json
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.prompts import Unparsable, compose, fenced
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.tabular.tasks import MISSING, draft_text, generate
from harness_mdp.settings.tabular.world import BRIEF, EXAMPLE, FIGURES, NOTES, RECORD, evidence_id, level_of
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["LOOKUP", "Tabular", "missing_figures"]

LOOKUP = "lookup"
"""Name of the tool."""

REPORTER = "You report two figures of an order."

INSTRUCTIONS: Mapping[Purpose, str] = {
    Purpose.DRAFT: f'Reply with JSON only: {{"a": 1234, "b": 5678}}. Write "{MISSING}" for a figure you do not know.',
    Purpose.REVISE: 'Fill in what is missing. Reply with JSON only: {"a": 1234, "b": 5678}',
    Purpose.CHECK: "If no figure is missing, reply OK. Otherwise name one problem per line, each line starting with "
    '"- ".',
}

_COMPLETE = len(draft_text(dict.fromkeys(FIGURES, 1000)))
_LONGER = len(draft_text({**dict.fromkeys(FIGURES, 1000), FIGURES[0]: None})) - _COMPLETE


def missing_figures(state: State) -> int:
    """Figures that the current draft marks as missing, 0 to 2; 0 without a draft. Read off its length."""
    return 0 if state.artifact is None else (state.artifact.chars - _COMPLETE) // _LONGER


class Tabular:
    """Generated tasks of three difficulties; see `world` for every probability."""

    name: str = "tabular"
    version: int = 1
    horizon: int = 6
    budgets: Budgets = Budgets()
    rules: LegalRules = LegalRules(offers_retrieve=False, tool_needs=Needs.NOTHING)
    schema: FeatureSchema = FeatureSchema(name, version, ("known_easy", "known_hard", "one_missing", "two_missing"))
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(observes=2, retrieves=0)}
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` tasks generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is not a number of tasks.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """The difficulty, where evidence told it; how many figures the draft lacks."""
        level, missing = level_of(state.evidence), missing_figures(state)
        return level == "easy", level == "hard", missing == 1, missing == len(FIGURES)

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First the brief, then the example, then nothing."""
        task = workspace.task
        first, second = task.public["meanings"]
        items = (
            Evidence(
                evidence_id(BRIEF, task.difficulty),
                f"Order {task.public['order']}, {task.difficulty}: a is the {first}, b the {second}.",
            ),
            Evidence(evidence_id(EXAMPLE, task.difficulty), "The report of another order: " + '{"a":1234,"b":5678}'),
        )
        return [item for item in items if item.id not in workspace.evidence][:1]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """Not offered: there is nothing to search."""
        raise ValueError(f"retrieve is not offered in tabular (task {workspace.task.id})")

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing to choose)
        """Look the order up: the record and the notes to it. It says nothing about a draft."""
        task = workspace.task
        record = ", ".join(f"{name} = {task.public['record'][name]}" for name in FIGURES)
        evidence = (
            Evidence(evidence_id(RECORD, task.difficulty), record),
            Evidence(evidence_id(NOTES, task.difficulty), "Both figures are of this year."),
        )
        return ToolCall(ToolResult(LOOKUP, valid=True, ok=True), record, evidence)

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The order's number and what was gathered; for check and revise the draft as well."""
        with_draft = purpose is not Purpose.DRAFT
        return compose(
            REPORTER,
            task=f"Report the figures a and b of order {workspace.task.public['order']}.",
            instructions=INSTRUCTIONS[purpose],
            evidence=workspace.evidence,
            draft=workspace.artifact if with_draft else None,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The two figures in the reply, as canonical JSON.

        Raises:
            Unparsable: it is no JSON object, or a figure in it is neither TODO nor a number of four digits.
        """
        text = fenced(reply)
        try:
            value: Json = json.loads(text[text.index("{") : text.rindex("}") + 1])
            return draft_text({name: _figure(value[name]) for name in FIGURES})
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise Unparsable(f'the reply holds no {{"a": ..., "b": ...}} of four digits or "{MISSING}"') from problem

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:  # noqa: ARG002
        """None: the check is the self-review alone, so that its chances are the executor's."""
        return ()

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:  # noqa: ARG002
        """None: evidence that supports a figure would be one more thing for a state to hold."""
        return ()

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:  # noqa: ARG002
        """One criterion a figure: it is right."""
        draft: Json = json.loads(artifact)
        return [Criterion(name, float(draft[name] == sealed.values[name])) for name in FIGURES]


def _figure(value: Json) -> int | None:
    if value == MISSING:
        return None
    if type(value) is not int or not 1000 <= value <= 9999:
        raise ValueError(value)
    return value
