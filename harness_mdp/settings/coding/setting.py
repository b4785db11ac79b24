"""The setting `coding`: write one Python function from a problem statement, and be scored by hidden tests.

`observe` brings problem statement, examples and edge-case notes, one at a time. `call_tool` runs the visible
tests on the draft, in the sandbox. `check` compiles and lints it (and asks the executor for a review). The
rubric is the share of hidden tests passed. Code makes no claims.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import Json
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.sandbox import Outcome, run_calls, same
from harness_mdp.settings.coding.lint import check_source
from harness_mdp.settings.coding.sketch import EDGE_CASES, EXAMPLES, STATEMENT
from harness_mdp.settings.coding.tasks import generate
from harness_mdp.settings.prompts import Unparsable, compose, fenced
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["Coding"]

WRITER = "You write one Python function. Reply with Python code in a ```python fence and nothing else."
REVIEWER = "You review one Python function. Be short."

INSTRUCTIONS: Mapping[Purpose, str] = {
    Purpose.DRAFT: "Write the whole function.",
    Purpose.REVISE: "Correct the draft: solve the problems named, keep the rest. Write the whole function.",
    Purpose.CHECK: "Compare the draft with the task. If it is right, reply OK. Otherwise name one problem per line, "
    'each line starting with "- ".',
}

MAX_LINE = 160
"""Characters of a line that reports a failed test."""

_DEFINITION = re.compile(r"\bdef\s+\w+\s*\(")


class Coding:
    """100 generated problems of 14 families; see `tasks`."""

    name: str = "coding"
    version: int = 2
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=False, tool_needs=Needs.ARTIFACT)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("tests_run", "tests_failing", "tested_current", "check_named_problems")
    )
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(observes=3, retrieves=0)}
    tests_code: bool = True

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` problems generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is not a number of tasks that can be made.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """Tests were run; the current version failed some; it was tested; its check named problems."""
        tool, check = state.last_tool, state.last_check
        return (
            tool is not None,
            state.version_tested and tool is not None and tool.failed,
            state.version_tested,
            state.version_checked and check is not None and check.failed,
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First the problem statement, then the examples, then the edge-case notes, then nothing."""
        public = workspace.task.public
        items = (
            Evidence(STATEMENT, public["statement"]),
            Evidence(EXAMPLES, "\n".join(_example(public["function"], case) for case in public["visible_tests"])),
            Evidence(EDGE_CASES, public["edge_cases"]),
        )
        seen = workspace.notes.get("observed", 0)
        workspace.notes["observed"] = seen + 1
        return items[seen : seen + 1]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """Not offered: there is nothing to search."""
        raise ValueError(f"retrieve is not offered in coding (task {workspace.task.id})")

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing to choose)
        """Run the visible tests on the draft, in the sandbox."""
        public = workspace.task.public
        cases: list[Json] = public["visible_tests"]
        outcomes = await _run(workspace.artifact or "", public["function"], cases)
        problems = tuple(
            _failure(public["function"], case, outcome)
            for case, outcome in zip(cases, outcomes, strict=True)
            if not _passed(case, outcome)
        )
        passed, total = len(cases) - len(problems), len(cases)
        result = ToolResult("visible_tests", True, True, workspace.version, passed, total, problems)
        summary = f"version {workspace.version}: {passed} of {total} visible tests passed"
        return ToolCall(result, "\n".join((summary, *problems)))

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """Title and signature, what was observed, the last test run; for check and revise the draft as well."""
        public = workspace.task.public
        with_draft = purpose is not Purpose.DRAFT
        return compose(
            REVIEWER if purpose is Purpose.CHECK else WRITER,
            task=f"{public['title']}\n{public['signature']}",
            instructions=INSTRUCTIONS[purpose],
            evidence=workspace.evidence,
            tool_results=workspace.tool_results[-1:],
            draft=workspace.artifact if with_draft else None,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The code in the reply.

        Raises:
            Unparsable: it is empty, or defines no function.
        """
        source = fenced(reply)
        if not _DEFINITION.search(source):
            raise Unparsable("the reply defines no function")
        return source

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """Compiles, defines the function, and the lints of `lint`; nothing is run."""
        public = workspace.task.public
        arity = len(public["visible_tests"][0]["args"])
        return check_source(workspace.artifact or "", public["function"], arity)

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:  # noqa: ARG002
        """None: code claims nothing that evidence could support."""
        return ()

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """`hidden_tests`: the share of hidden tests passed."""
        cases: list[Json] = sealed.values["hidden_tests"]
        outcomes = await _run(artifact, task.public["function"], cases)
        passed = sum(map(_passed, cases, outcomes))
        return (Criterion("hidden_tests", passed / len(cases)),)


async def _run(source: str, function: str, cases: Sequence[Json]) -> tuple[Outcome, ...]:
    """One outcome per case; only the inputs go into the sandbox."""
    return (await run_calls(source, function, [case["args"] for case in cases])).outcomes


def _passed(case: Json, outcome: Outcome) -> bool:
    return outcome.ok and same(case["expected"], outcome.value)


def _call(function: str, case: Json) -> str:
    return f"{function}({', '.join(map(repr, case['args']))})"


def _example(function: str, case: Json) -> str:
    return f"{_call(function, case)} -> {case['expected']!r}"


def _failure(function: str, case: Json, outcome: Outcome) -> str:
    got = f"returned {outcome.value!r}" if outcome.ok else f"failed with {outcome.error}"
    return f"{_call(function, case)} {got[:MAX_LINE]}, expected {case['expected']!r}"
