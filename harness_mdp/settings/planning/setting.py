"""The setting `planning`: write a schedule, and be scored by the constraints it keeps and by its makespan.

`observe` brings durations, order, machines and time limits, one piece at a time. `call_tool` tries the drafted
schedule step by step and reports one step. `check` validates the draft against every stated constraint (and asks the
executor for a review); it does not know the optimum. A claim is `A starts at 3`: see `Planning.claims`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.planning.constraints import DURATIONS, PIECES, verdicts
from harness_mdp.settings.planning.draft import parse_schedule, schedule_text
from harness_mdp.settings.planning.instance import Entry, Instance
from harness_mdp.settings.planning.scoring import grade, nothing
from harness_mdp.settings.planning.statement import PLANNER, REVIEWER, instructions, pieces, task_text
from harness_mdp.settings.planning.tasks import generate
from harness_mdp.settings.planning.whatif import what_if
from harness_mdp.settings.prompts import Unparsable, compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["Planning"]

MAX_CLAIMS = 12
MAX_PROBLEM = 120
"""Characters of a problem in the feedback of check and tool."""


class Planning:
    """100 generated scheduling problems of 7 families; see `templates` and `tasks`."""

    name: str = "planning"
    version: int = 2
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=False, tool_needs=Needs.ARTIFACT)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("all_rules_seen", "tried_current", "step_failed", "check_named_problems")
    )
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(len(PIECES), retrieves=0)}
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` problems generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is not a number of tasks that can be made.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """Every piece was observed; the current version was tried; a step of it failed; its check named problems."""
        tool, check = state.last_tool, state.last_check
        return (
            len(state.evidence) >= len(PIECES),
            state.version_tested,
            state.version_tested and tool is not None and tool.failed,
            state.version_checked and check is not None and check.failed,
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """The next of the four pieces, then nothing."""
        seen = workspace.notes.get("observed", 0)
        workspace.notes["observed"] = seen + 1
        return pieces(_instance(workspace.task))[seen : seen + 1]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """Not offered: there is nothing to search."""
        raise ValueError(f"retrieve is not offered in planning (task {workspace.task.id})")

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing to choose)
        """Try the draft step by step; one step is reported."""
        found = what_if(_instance(workspace.task), _entries(workspace))
        problems = tuple(problem[:MAX_PROBLEM] for problem in found.problems)
        result = ToolResult("what_if", True, True, workspace.version, int(not problems), 1, problems)
        return ToolCall(result, found.text)

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The task, what was observed, the last try; for check and revise the draft as well."""
        instance = _instance(workspace.task)
        return compose(
            REVIEWER if purpose is Purpose.CHECK else PLANNER,
            task=task_text(workspace.task.public["title"], instance),
            instructions=instructions(purpose, instance),
            evidence=workspace.evidence,
            tool_results=workspace.tool_results[-1:],
            draft=None if purpose is Purpose.DRAFT else workspace.artifact,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The schedule in the reply, in the canonical form of `draft`.

        Raises:
            Unparsable: there is none.
        """
        return schedule_text(parse_schedule(reply))

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """One item for each stated constraint."""
        found = verdicts(_instance(workspace.task), _entries(workspace))
        return [CheckItem(verdict.id, verdict.kept, verdict.problem[:MAX_PROBLEM]) for verdict in found]

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """One claim a task: `A starts at 3`, read as "nothing that was stated speaks against that".

        Evidence can support this much and no more. It is supported when the durations and every piece that binds the
        task are at hand, and no rule in them is broken by the task. That the schedule is as short as can be is no
        claim: no evidence of this setting could show it.
        """
        instance, entries = _instance(workspace.task), _entries(workspace)
        found = verdicts(instance, entries)
        claims: list[Claim] = []
        for entry in entries[:MAX_CLAIMS]:
            binding = [verdict for verdict in found if entry.task in verdict.tasks]
            at_hand = {DURATIONS, *(verdict.piece for verdict in binding if verdict.piece)} <= workspace.evidence.keys()
            kept = bool(binding) and not any(entry.task in verdict.broken_by for verdict in binding)
            on = f" on {entry.machine[:20]}" if entry.machine else ""
            claims.append(Claim(f"{entry.task[:20]} starts at {entry.start}{on}", at_hand and kept))
        return tuple(claims)

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """`constraints` and `makespan`; see `scoring`."""
        try:
            entries = parse_schedule(artifact)
        except Unparsable:
            return nothing()
        return grade(_instance(task), entries, sealed.values["optimum"])


def _instance(task: Task) -> Instance:
    return Instance.read(task.public)


def _entries(workspace: Workspace) -> tuple[Entry, ...]:
    """The current schedule; the artifact is what `parse` wrote."""
    return parse_schedule(workspace.artifact or "")
