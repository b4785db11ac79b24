"""The setting `multi_tool`: an answer in figures, worked out with tools that the executor chooses.

`observe` brings the statement, then how the tools are called, then the columns of the task's tables. `call_tool` asks
the executor for one call and makes it. The draft is JSON with named quantities and the answer; `check` looks whether
it has the form asked for and whether each value stands in a tool result or the statement. The rubric knows the values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import Json
from harness_mdp.mdp import Action, Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.multi_tool.calls import FORMS, RESULT, TOOLS, call_tool, result_id, result_text
from harness_mdp.settings.multi_tool.chains import DETAILS, TABLES, TOOL_FORMS
from harness_mdp.settings.multi_tool.draft import Draft, parse_draft, piece, read_draft
from harness_mdp.settings.multi_tool.numbers import close, numbers_in
from harness_mdp.settings.multi_tool.scoring import grade
from harness_mdp.settings.multi_tool.tasks import ANSWER, generate
from harness_mdp.settings.prompts import compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, base, make_more_evidence
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["MultiTool"]

WRITER = "You work out figures with tools and report them as JSON. You are brief."
REVIEWER = "You review figures. You are brief."

INSTRUCTIONS: Mapping[Purpose, str] = {
    Purpose.DRAFT: "Reply with JSON only, numbers to 2 decimals, dates as YYYY-MM-DD:\n{form}",
    Purpose.REVISE: "Correct the draft: solve the problems named, keep the rest. Reply with JSON only:\n{form}",
    Purpose.CHECK: "Compare the draft with the evidence and the tool results. If it is right, reply OK. Otherwise name "
    'one problem per line, each line starting with "- ".',
    Purpose.TOOL: "Choose the one tool call that is needed next. Tools: {tools}. Reply with one line, for example\n"
    "calculator: (12 + 3) * 1.2",
}

MAX_CALLS = 4
"""Tool calls that `tool_first` makes before the draft."""
MAX_RESULTS = 8
"""Tool results that a prompt shows, the latest ones."""
MAX_CLAIMS = 12
MAX_CLAIM_CHARS = 80

_MOMENTS: Mapping[str, str] = {"date": r"\d{4}-\d\d-\d\d", "datetime": r"\d{4}-\d\d-\d\d \d\d:\d\d"}
_PLACEHOLDERS: Mapping[str, str] = {
    "number": "<number>",
    "date": '"<YYYY-MM-DD>"',
    "datetime": '"<YYYY-MM-DD HH:MM>"',
}


def tool_first(state: State, rules: LegalRules) -> Action:
    """base, with tool calls before the draft: until the last one brought nothing new, at most `MAX_CALLS`."""
    action = base(state, rules)
    if action is not Action.DRAFT or state.count(Action.DRAFT) > 0 or state.count(Action.CALL_TOOL) >= MAX_CALLS:
        return action
    fruitless = state.last_action is Action.CALL_TOOL and state.stalled > 0
    return action if fruitless else Action.CALL_TOOL


class MultiTool:
    """100 generated tasks of seven templates; see `templates`."""

    name: str = "multi_tool"
    version: int = 2
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=False, tool_needs=Needs.NOTHING)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("tools_seen", "result_at_hand", "last_call_fruitless", "answer_traced")
    )
    scripts: Mapping[str, Script] = {
        **SCRIPTS,
        "tool_first": tool_first,
        "more_evidence": make_more_evidence(observes=3, retrieves=0),
    }
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` tasks generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is not a number of tasks that can be made.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """Tool forms seen; a tool result is at hand; the last step was a call that brought nothing; answer traced."""
        return (
            TOOL_FORMS in state.evidence,
            any(name.startswith(RESULT) for name in state.evidence),
            state.last_action is Action.CALL_TOOL and state.stalled > 0,
            bool(state.claims) and state.claims[0].supported,
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First the statement, then how tools are called, then the tables' columns (if there are any), then nothing."""
        public = workspace.task.public
        items = [Evidence(DETAILS, public["details"]), Evidence(TOOL_FORMS, FORMS)]
        if public["tables"]:
            items.append(Evidence(TABLES, _columns(public["tables"])))
        seen = workspace.notes.get("observed", 0)
        workspace.notes["observed"] = seen + 1
        return items[seen : seen + 1]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """Not offered: there is nothing to search."""
        raise ValueError(f"retrieve is not offered in multi_tool (task {workspace.task.id})")

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:
        """Ask the executor for one call and make it; its result is evidence, under an id that names the call."""
        reply = await ask(Purpose.TOOL, self.messages(Purpose.TOOL, workspace))
        outcome = call_tool(reply.text, workspace.task.public["tables"])
        evidence = (Evidence(result_id(outcome.call), outcome.text),) if outcome.call else ()
        return ToolCall(ToolResult(outcome.tool, outcome.valid, outcome.ok), outcome.text, evidence)

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """What is asked for, what was observed and computed; for check and revise the draft as well."""
        public = workspace.task.public
        form = _form(public["fields"])
        with_draft = purpose in (Purpose.CHECK, Purpose.REVISE)
        return compose(
            REVIEWER if purpose is Purpose.CHECK else WRITER,
            task=f"{public['title']}\nFind: {', '.join(field['name'] for field in public['fields'])}",
            instructions=INSTRUCTIONS[purpose].format(form=form, tools=", ".join(TOOLS)),
            evidence=_shown(workspace),
            tool_results=workspace.tool_results[-MAX_RESULTS:],
            draft=workspace.artifact if with_draft else None,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The canonical draft in the reply (see `draft`).

        Raises:
            Unparsable: it holds no answer.
        """
        return parse_draft(reply).text

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """`schema`: everything asked for is there, in its kind; then one item per value: it stands in a result."""
        said = _values(workspace.artifact)
        wanted: Sequence[Mapping[str, str]] = workspace.task.public["fields"]
        faults = [fault for field in wanted if (fault := _form_fault(said, field["name"], field["kind"]))]
        sources = _sources(workspace)
        traced = [
            CheckItem(f"traced:{name}", _traced(value, sources), f"{name} is in no tool result nor in the statement")
            for name, value in said.items()
        ]
        return (CheckItem("schema", not faults, "; ".join(faults)[:200]), *traced)

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """The values of the draft, the answer first; supported where one stands in a tool result or the statement."""
        sources = _sources(workspace)
        said = _values(workspace.artifact)
        return tuple(
            Claim(f"{name} = {piece(value)}"[:MAX_CLAIM_CHARS], _traced(value, sources))
            for name, value in list(said.items())[:MAX_CLAIMS]
        )

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:  # noqa: ARG002
        """`answer`, `steps`, `results_used`; see `scoring`."""
        return grade(read_draft(artifact), sealed.values)


def _form(fields: Sequence[Mapping[str, str]]) -> str:
    """The JSON that is asked for, with placeholders."""
    pairs = {field["name"]: _PLACEHOLDERS[field["kind"]] for field in fields}
    answer = pairs.pop(ANSWER)
    steps = ", ".join(f'"{name}": {placeholder}' for name, placeholder in pairs.items())
    return f'{{"steps": {{{steps}}}, "{ANSWER}": {answer}}}'


def _columns(tables: Mapping[str, Json]) -> str:
    """`fuel (6 rows): country, diesel, petrol. EUR a litre`, one line a table."""
    return "\n".join(
        f"{name} ({len(content['rows'])} rows): {', '.join(content['columns'])}. {content['note']}"
        for name, content in tables.items()
    )


def _shown(workspace: Workspace) -> dict[str, str]:
    """Evidence as prompts show it: a tool result is written out in its own section, here stands only where."""
    places = {text: name for name, text in workspace.tool_results[-MAX_RESULTS:]}
    return {
        name: f"see {places[text]}" if name.startswith(RESULT) else text
        for name, text in workspace.evidence.items()
        if not name.startswith(RESULT) or text in places
    }


def _values(artifact: str | None) -> Mapping[str, Fraction | str]:
    draft: Draft | None = read_draft(artifact or "")
    return {} if draft is None else draft.values


def _sources(workspace: Workspace) -> list[str]:
    """Results of tools (without the calls, which hold numbers that the executor made up) and the statement."""
    results = [result_text(text) for name, text in workspace.evidence.items() if name.startswith(RESULT)]
    return [*results, workspace.evidence.get(DETAILS, "")]


def _traced(value: Fraction | str, sources: Sequence[str]) -> bool:
    """A number that some source holds, within rounding; a text that some source holds as a whole."""
    if isinstance(value, str):
        pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)
        return any(pattern.search(source) for source in sources)
    return any(close(value, number) for source in sources for number in numbers_in(source))


def _form_fault(said: Mapping[str, Fraction | str], name: str, kind: str) -> str:
    """What is wrong with the form of one quantity; empty if nothing."""
    if name not in said:
        return f"{name} is missing"
    value = said[name]
    if kind == "number":
        return "" if isinstance(value, Fraction) else f"{name} is not a number"
    fits = isinstance(value, str) and re.fullmatch(_MOMENTS[kind], value) is not None
    return "" if fits else f"{name} is not of the form {'YYYY-MM-DD' if kind == 'date' else 'YYYY-MM-DD HH:MM'}"
