"""DB-Bench (AgentBench): questions about one table, and changes to it, answered with SQL.

Evidence is the table itself; the tool runs the drafted SQL on a scratch copy; scoring is the benchmark's own:
the answer against the label, or the state of the table against its digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.dbbench.draft import Draft, parse_draft, read_draft
from harness_mdp.settings.dbbench.evidence import (
    SAMPLE,
    SCHEMA,
    VALUES,
    claims,
    matching_values,
    result_text,
    sample,
    schema,
)
from harness_mdp.settings.dbbench.scoring import answers_match, native_score, normalised
from harness_mdp.settings.dbbench.sql_dialect import lex
from harness_mdp.settings.dbbench.sql_worker import Cell, SqlResult, sql_pool
from harness_mdp.settings.dbbench.tasks import store, table_of
from harness_mdp.settings.prompts import compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.tasks import Sealed, Task, TaskStore

__all__ = ["DBBench"]

_SYSTEM = "You work on one SQL table. Use only its real table name, columns and values. Be brief."
_FORM = {
    "select": "one SQL statement that begins with SELECT, or, where a row above shows it, one line `Answer: value`",
    "insert": "one SQL statement that begins with INSERT INTO",
    "update": "one SQL statement that begins with UPDATE",
    "delete": "one SQL statement that begins with DELETE FROM",
}
_PROMPT_RESULTS = 2
"""Tool results that a prompt holds: the latest ones."""

_ASKS_NUMBER = re.compile(r"\bhow (many|much)\b|^what (is|was|are|were) the (total )?(number|amount)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\s*[-+−]?\W{0,2}\d")


class DBBench:
    """The `dbbench` setting."""

    name: str = "dbbench"
    version: int = 1
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=True, tool_needs=Needs.ARTIFACT)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("schema_seen", "values_seen", "ran_current", "failed_current")
    )
    # There is one schema to observe, and two things to retrieve: sample rows, then matching values.
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(observes=1, retrieves=2)}
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` generated tasks, or all tasks of an upstream file (or folder of files) at `path`.

        Raises:
            ConfigError: `n` is not a number of tasks that can be made.
            InputError: a missing or damaged file, by name, line and field.
        """
        if path is None and n < 1:
            raise ConfigError(f"{n} tasks were asked of setting dbbench; expected at least 1")
        return store(seed=seed, n=n, path=path, pool=sql_pool())

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """Schema seen; matching values seen; the current version ran without error; it ran and named a problem."""
        tool = state.last_tool if state.version_tested else None
        return (
            SCHEMA in state.evidence,
            VALUES in state.evidence,
            tool is not None and tool.ok,
            tool is not None and (tool.failed or bool(tool.problems)),
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """Table name, columns and number of rows; then nothing more."""
        return () if SCHEMA in workspace.evidence else (schema(table_of(workspace.task)),)

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """First rows; then values that match words of the question; then nothing more."""
        table = table_of(workspace.task)
        if SAMPLE not in workspace.evidence:
            return (sample(table),)
        if VALUES not in workspace.evidence:
            return (matching_values(table, workspace.task.public["question"]),)
        return ()

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing to choose)
        """Run the drafted SQL on a scratch copy; the executor is not asked, since the draft says what to run."""
        draft = read_draft(workspace.artifact or "")
        if not draft.sql:
            problem = "the draft has no SQL to run"
            result = ToolResult("run_sql", valid=False, ok=False, version=workspace.version, problems=(problem,))
            return ToolCall(result, problem)
        outcome = await self._run(workspace.task, draft)
        assert outcome is not None
        problem = _run_problem(outcome, workspace.task.public["kind"])
        result = ToolResult(
            "run_sql",
            valid=True,
            ok=outcome.error is None,
            version=workspace.version,
            problems=(problem,) if problem else (),
        )
        return ToolCall(result, f"run_sql: {result_text(outcome)}")

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The prompt for `purpose`; short, since a small model has to read it."""
        drafted = purpose is not Purpose.DRAFT
        return compose(
            _SYSTEM,
            task=workspace.task.public["question"],
            instructions=_instructions(purpose, workspace.task.public["kind"]),
            evidence=workspace.evidence,
            tool_results=workspace.tool_results[-_PROMPT_RESULTS:],
            draft=workspace.artifact if drafted else None,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The canonical draft in a reply (`draft`).

        Raises:
            Unparsable: there is none.
        """
        return parse_draft(reply).text

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """The statement is of the kind asked for, it runs, the result has the shape of the question."""
        public = workspace.task.public
        draft = read_draft(workspace.artifact or "")
        outcome = await self._run(workspace.task, draft)
        items = [_item("kind", _kind_problem(draft, public["kind"]))]
        if outcome is not None:
            items.append(_item("runs", f"SQL error: {outcome.error}" if outcome.error is not None else ""))
        items.append(_item("shape", _shape_problem(draft, outcome, public["kind"], public["question"])))
        return items

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """Columns, condition values and answers that the draft asserts (`evidence.claims`)."""
        public = workspace.task.public
        texts = {**workspace.evidence, **dict(workspace.tool_results)}
        return claims(read_draft(workspace.artifact or ""), public["kind"], public["table"], texts)

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """One criterion, `native`: 1 if the benchmark's own comparison says right, else 0.

        By that rule a SELECT task is judged by the values that are answered alone. An `answer` that the draft states
        counts whatever its `sql` is: `SELECT 1` with the right answer scores 1. So it is in the original, where the
        model commits its final answer apart from the SQL it ran; what the SQL shows is for claims and `check`.
        """
        draft = read_draft(artifact)
        outcome = None if draft.answer is not None and task.public["kind"] == "select" else await self._run(task, draft)
        values = sealed.values
        score = native_score(
            task.public["kind"], table_of(task), draft.values(outcome), outcome, values["label"], values["digest"]
        )
        return (Criterion("native", score),)

    async def _run(self, task: Task, draft: Draft) -> SqlResult | None:
        return await sql_pool().arun(table_of(task), draft.sql) if draft.sql else None


def _instructions(purpose: Purpose, kind: str) -> str:
    match purpose:
        case Purpose.CHECK:
            return 'Is the draft right? Reply OK, or list each problem on a line that begins with "- ".'
        case Purpose.REVISE:
            return f"Correct the draft. Reply with {_FORM[kind]}. Nothing else."
        case _:
            return f"Reply with {_FORM[kind]}. Nothing else."


def _item(name: str, problem: str) -> CheckItem:
    return CheckItem(name, not problem, " ".join(problem.split())[:200])


def _kind_problem(draft: Draft, kind: str) -> str:
    """The first word of the SQL has to be what the task asks for."""
    if not draft.sql:
        return "" if kind == "select" else f"the draft has no SQL; the task asks for {kind.upper()}"
    first = next((token.upper for token in lex(draft.sql) if token.kind == "word"), "")
    fits = first == kind.upper() or (kind == "select" and first == "WITH")
    return "" if fits else f"the SQL begins with {first or 'no word'}; the task asks for {kind.upper()}"


def _shape_problem(draft: Draft, outcome: SqlResult | None, kind: str, question: str) -> str:
    if kind != "select":
        return _run_problem(outcome, kind) if outcome is not None else f"nothing to {kind}"
    values = draft.values(outcome)
    if draft.answer is None and outcome is not None and outcome.error is None and not outcome.rows:
        return "the SQL returns no row"
    if not values:
        return "there is no answer"
    if outcome is not None and draft.answer is not None and outcome.rows and not answers_match(values, outcome.values):
        return "the answer differs from the rows of the SQL"
    return _number_problem(values, question)


def _number_problem(values: tuple[Cell, ...], question: str) -> str:
    if not _ASKS_NUMBER.search(question):
        return ""
    distinct = list(dict.fromkeys(map(normalised, values)))
    if len(distinct) != 1:
        return f"the question asks for one number; the answer has {len(distinct)} values"
    return "" if _NUMBER.match(distinct[0]) else "the question asks for a number; the answer is not one"


def _run_problem(outcome: SqlResult, kind: str) -> str:
    """What running shows to be wrong, in one line; empty if nothing."""
    if outcome.error is not None:
        return f"SQL error: {' '.join(outcome.error.split())}"[:200]
    added, removed = len(outcome.added), len(outcome.removed)
    match kind:
        case "select":
            return "" if outcome.rows else "the SQL returns no row"
        case "insert":
            return "" if added and not removed else f"INSERT shall add rows; added {added}, removed {removed}"
        case "delete":
            return "" if removed and not added else f"DELETE shall remove rows; added {added}, removed {removed}"
        case _:
            return "" if added and added == removed else f"UPDATE shall change rows; changed {min(added, removed)}"
