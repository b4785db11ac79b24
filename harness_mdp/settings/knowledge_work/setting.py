"""The setting `knowledge_work`: decide something by the rule of a memo and the figures of tables, in a Markdown brief.

`observe` brings the request with the list of sources, then the memo in force. `retrieve` searches tables and memos and
brings the next two. `call_tool` lets the executor choose a table query (`query`), which a small safe evaluator runs.
`check` looks at what can be known when deployed: sections, cited ids, whether each figure stands in a source or a query
result at hand. The rubric (`scoring`) knows the figures, the limit that applies and the decision that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import Json
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.knowledge_work.brief import parse_brief
from harness_mdp.settings.knowledge_work.query import QueryError, evaluate, find_query
from harness_mdp.settings.knowledge_work.scoring import grade
from harness_mdp.settings.knowledge_work.search import rank
from harness_mdp.settings.knowledge_work.sources import memos_of, plain, tables_of
from harness_mdp.settings.knowledge_work.support import check_brief, claims_of
from harness_mdp.settings.knowledge_work.tasks import generate
from harness_mdp.settings.prompts import compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["KnowledgeWork"]

REQUEST = "request"
"""Evidence id of what the brief has to hold."""
LISTED = "sources"
"""Evidence id of the list of sources."""
TOOL = "table_query"
HITS = 2
"""Sources that one `retrieve` brings."""
PROMPT_RESULTS = 6
"""Query results that a prompt shows, the last ones."""

WRITER = "You write short business briefs from the evidence given. Every figure has a source."
REVIEWER = "You review a short business brief. You are brief."
ANALYST = "You choose table queries that compute the figures of a brief. Reply with one query and nothing else."

FORM = """Reply in Markdown:
## Summary
(is the {key} above or within the limit that applies, and what is that limit [M?])
## Findings
- (name of figure): (value) [T?]
## Recommendation
- Decision: (one option) [M?]{owner}"""

INSTRUCTIONS: Mapping[Purpose, str] = {
    Purpose.DRAFT: "Write the brief. Cite sources by id, such as [T1].\n" + FORM,
    Purpose.REVISE: "Correct the draft: solve the problems named, keep the rest.\n" + FORM,
    Purpose.CHECK: "Compare the draft with the evidence and the tool results. If it is right, reply OK. Otherwise "
    'name one problem per line, each line starting with "- ".',
    Purpose.TOOL: """Reply with the next query that is needed, for example
sum(T1.amount where region = North and state != open)
Functions: sum mean min max of a column; count(T1 where ...); rows(T1 where ...); diff(a, b), ratio(a, b),
percent(a, b), product(a, b) of two figures. Conditions: = != < <= > >= and.""",
}


class KnowledgeWork:
    """100 generated decisions of seven templates; see `tasks` and `templates`."""

    name: str = "knowledge_work"
    version: int = 2
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=True, tool_needs=Needs.NOTHING)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("request_read", "memo_read", "table_read", "figures_computed")
    )
    # A hard task has up to ten sources; the request and the memo in force are observed, the rest is retrieved.
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(observes=2, retrieves=3)}
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` decisions generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is not a number of tasks that can be made.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """The request was read; a memo was; a table was; a query computed something."""
        return (
            REQUEST in state.evidence,
            any(name[:1] == "M" for name in state.evidence),
            any(name[:1] == "T" for name in state.evidence),
            any("(" in name for name in state.evidence),
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First the request and the list of sources, then the memo in force, then nothing."""
        public = workspace.task.public
        rule = memos_of(public)[public["rule"]]
        steps = (
            (Evidence(REQUEST, _request(public)), Evidence(LISTED, _listed(public))),
            (Evidence(rule.id, rule.text),),
        )
        seen = workspace.notes.get("observed", 0)
        workspace.notes["observed"] = seen + 1
        return steps[seen] if seen < len(steps) else ()

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """The next `HITS` sources most like the request that are not at hand."""
        public = workspace.task.public
        sources = [*tables_of(public).values(), *memos_of(public).values()]
        order = rank(_query(public), tuple(source.text for source in sources))
        new = [sources[i] for i in order if sources[i].id not in workspace.evidence]
        return [Evidence(source.id, source.text) for source in new[:HITS]]

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:
        """Ask the executor for a query and run it; its result is evidence under the query's canonical text."""
        tables = tables_of(workspace.task.public)
        completion = await ask(Purpose.TOOL, self.messages(Purpose.TOOL, workspace))
        try:
            query = find_query(completion.text, tables)
        except QueryError as problem:
            return ToolCall(ToolResult(TOOL, valid=False, ok=False), f"{TOOL}: {problem}")
        try:
            value = evaluate(query, tables)
        except QueryError as problem:
            return ToolCall(ToolResult(TOOL, valid=True, ok=False), f"{query}: {problem}")
        shown = value if isinstance(value, str) else plain(value)
        return ToolCall(ToolResult(TOOL, True, True), f"{query} = {shown}", (Evidence(str(query), shown),))

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """Question and options, sources at hand, the last query results; for check and revise the draft as well."""
        public = workspace.task.public
        results = [(name, text) for name, text in workspace.evidence.items() if "(" in name]
        if workspace.tool_results and not any(_reports(workspace.tool_results[-1][1], name) for name, _ in results):
            results.append(workspace.tool_results[-1])
        system = {Purpose.CHECK: REVIEWER, Purpose.TOOL: ANALYST}.get(purpose, WRITER)
        owner = "\n- Owner: (name) [M?]" if public["asks_owner"] else ""
        key = f"{public['figures'][-1]['label']} of {public['subject']}"
        # Only the forms hold braces to fill; the query examples have none.
        instructions = INSTRUCTIONS[purpose].format(key=key, owner=owner)
        return compose(
            system,
            task=_question(public),
            instructions=instructions,
            evidence={name: text for name, text in workspace.evidence.items() if "(" not in name},
            tool_results=results[-PROMPT_RESULTS:],
            draft=workspace.artifact if purpose in (Purpose.CHECK, Purpose.REVISE) else None,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The brief in canonical Markdown (see `brief`).

        Raises:
            Unparsable: the reply holds none.
        """
        return parse_brief(reply)

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """Sections, cited ids, figures asked for and figures found, one option; see `support.check_brief`."""
        return check_brief(workspace.artifact or "", workspace.task.public, workspace.evidence)

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """Statements with figures, and the recommendation; see `support.claims_of`."""
        return claims_of(workspace.artifact or "", workspace.task.public, workspace.evidence)

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """`decision`, `figures`, `points`, `citations`; see `scoring`."""
        return grade(artifact, task.public, sealed.values)


def _question(public: Mapping[str, Json]) -> str:
    *most, last = (option["text"] for option in public["options"])
    return f"{public['title']}\nWrite a brief that decides: {', '.join(most)} or {last}?"


def _request(public: Mapping[str, Json]) -> str:
    forms = {("%", 1): " (percent, one decimal)", ("", 1): " (one decimal)"}
    asked = [
        f"{f['label']} of {public['subject']}{forms.get((f['unit'], f['decimals']), '')}" for f in public["figures"]
    ]
    owner = " Name the owner of the decision." if public["asks_owner"] else ""
    key = public["figures"][-1]["label"]
    return f"Report {', '.join(asked)}. Say whether the {key} is above or within the limit that applies.{owner}"


def _listed(public: Mapping[str, Json]) -> str:
    tables = [f"{t.id} {t.title} ({', '.join(t.columns)})" for t in tables_of(public).values()]
    return "; ".join([*tables, *(f"{m.id} {m.title}" for m in memos_of(public).values())])


def _query(public: Mapping[str, Json]) -> str:
    labels = [figure["label"] for figure in public["figures"]]
    return " ".join([public["title"], *labels, *(option["text"] for option in public["options"]), "limit"])


def _reports(text: str, query: str) -> bool:
    return text.startswith(f"{query} = ")
