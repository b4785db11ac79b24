"""The setting `long_memory`: answer from dated chat sessions, of which only some fit into a prompt.

`observe` tells the day of the question, then lists dates and topics of the sessions. `retrieve` searches the sessions
by TF-IDF and brings hits, the next ones each time: id, date and the turn that fits best. `call_tool` opens the next
hit: the places of the session that the question is about. `check` looks at what can be known when deployed: the
session was opened, the answer stands in it, and nothing at hand is newer. The rubric knows the answer and its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.long_memory.checking import heard, held, newest_problem
from harness_mdp.settings.long_memory.draft import Finding, counted, draft_text, parse_draft, read_draft
from harness_mdp.settings.long_memory.queries import Kind
from harness_mdp.settings.long_memory.scoring import grade
from harness_mdp.settings.long_memory.search import rank
from harness_mdp.settings.long_memory.sessions import excerpt, log_of, snippet
from harness_mdp.settings.long_memory.tasks import generate, hit_id, queries_of
from harness_mdp.settings.prompts import compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["LongMemory"]

HITS: Final = 4
"""Hits that one `retrieve` brings."""
PAGE: Final = 15
"""Sessions that one `observe` lists, newest first."""
SHOWN_HITS: Final = 10
SHOWN_OPEN: Final = 6
"""What a prompt shows at most: the hits and open sessions that came last, so that a small model can read it."""
MAX_CLAIM_CHARS: Final = 80
NOT_SHOWN: Final = "no open session that is named shows the answer"
ASKED: Final = "asked"

WRITER: Final = "You answer questions from the user's earlier chats. Newer chats win over older ones. You are brief."
REVIEWER: Final = "You review an answer from earlier chats. Newer chats win over older ones. You are brief."

_FORM: Final = "Answer: the {wanted} [session, date]"
_ONE: Final = "Reply with one line, the {wanted} alone and the session that says so with its date:\n{form}"
_MANY: Final = "Reply with a line for each question, in order, and the session that says so with its date:\n{form}"
INSTRUCTIONS: Final[Mapping[Purpose, str]] = {
    Purpose.DRAFT: "{question}\n{form}",
    Purpose.REVISE: "{question}\nThe draft has problems; correct it. {form}",
    Purpose.CHECK: "Compare the draft with the evidence. If it is right, reply OK. Otherwise name one problem per "
    'line, each line starting with "- ".',
}


class LongMemory:
    """100 generated logs of chat sessions with questions of seven kinds; see `templates` and `tasks`."""

    name: str = "long_memory"
    version: int = 2
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=True, tool_needs=Needs.RETRIEVED)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("session_open", "hits_unopened", "answers_found", "check_named_problems")
    )
    scripts: Mapping[str, Script] = SCRIPTS
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` tasks generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is below 1.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """A session is open; hits are unopened; open sessions show all answers; the check of this version failed."""
        opened = sum(name.startswith("S") for name in state.evidence)
        check = state.last_check
        return (
            opened > 0,
            state.retrieved > opened,
            bool(state.claims) and all(claim.supported for claim in state.claims),
            state.version_checked and check is not None and check.failed,
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """The day of the question and the extent of the log; then its dates and topics, page by page; then nothing."""
        log, seen = log_of(workspace.task), workspace.notes.get("observed", 0)
        workspace.notes["observed"] = seen + 1
        if seen == 0:
            asked = workspace.task.public["asked_on"]
            text = f"Today is {asked}. There are {len(log)} sessions, S1 of {log.date(1)} to S{len(log)}, the newest."
            return [Evidence(ASKED, text)]
        newest = len(log) - PAGE * (seen - 1)
        numbers = range(newest, max(0, newest - PAGE), -1)
        if not numbers:
            return []
        listed = "; ".join(f"S{number} {log.date(number)} {log.plan[number - 1][1]}" for number in numbers)
        return [Evidence(f"list-{seen}", listed)]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """The `HITS` best sessions that match and are no hits yet."""
        log, question = log_of(workspace.task), workspace.task.public["question"]
        new = [number for number in _ranked(workspace) if hit_id(number) not in workspace.evidence]
        return [
            Evidence(hit_id(number), f"{log.date(number)}: {snippet(log.sessions[number - 1], question)}")
            for number in new[:HITS]
        ]

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing to choose)
        """Open the best hit that is not open yet."""
        closed = [
            n for n in _ranked(workspace) if hit_id(n) in workspace.evidence and f"S{n}" not in workspace.evidence
        ]
        if not closed:
            return ToolCall(ToolResult("open_session", True, False), "every session found is open; retrieve more")
        session = log_of(workspace.task).sessions[closed[0] - 1]
        text = f"{session.date}: {excerpt(session, workspace.task.public['question'])}"
        return ToolCall(ToolResult("open_session", True, True), f"opened {session.id}", (Evidence(session.id, text),))

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The question and what was found, open sessions last; for check and revise the draft as well."""
        question = workspace.task.public["question"]
        return compose(
            REVIEWER if purpose is Purpose.CHECK else WRITER,
            task=question,
            instructions=INSTRUCTIONS[purpose].format(question=question, form=_form(workspace.task)),
            evidence=_shown(workspace.evidence),
            draft=None if purpose is Purpose.DRAFT else workspace.artifact,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """The answers in canonical form (see `draft`).

        Raises:
            Unparsable: the reply holds no short answer.
        """
        return draft_text(parse_draft(reply))

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """One answer a question; for each: its session was opened, shows it, has that date, and nothing is newer."""
        log, queries = log_of(workspace.task), queries_of(workspace.task)
        findings = read_draft(workspace.artifact or "")
        known = heard(workspace.evidence)
        fits = len(findings) == len(queries)
        answers = counted(findings, len(queries))
        items = [CheckItem("answered", fits, f"{len(queries)} answers are asked for, the draft has {len(findings)}")]
        for at, query in enumerate(queries):
            finding = answers[at] if at < len(answers) else Finding("")
            where = f"answer {at + 1}: " if len(queries) > 1 else ""
            opened = f"{finding.session} was not opened" if finding.session else "no session is named"
            shown = "the open sessions do not add up to the answer" if query.kind is Kind.COUNT else NOT_SHOWN
            dated = bool(finding.date) and finding.date == log.date(finding.number)
            newer = newest_problem(query, finding, known, log)
            items += (
                CheckItem(f"opened_{at + 1}", finding.session in workspace.evidence, where + opened),
                CheckItem(f"shown_{at + 1}", held(query, finding, workspace.evidence), where + shown),
                CheckItem(f"dated_{at + 1}", dated, f"{where}the date is not that of the session"),
                CheckItem(f"newest_{at + 1}", not newer, where + newer),
            )
        return items

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """Each answer with its session, supported where open sessions show it."""
        queries = queries_of(workspace.task)
        findings = counted(read_draft(workspace.artifact or ""), len(queries))
        pairs = zip(queries, findings, strict=False)
        return tuple(
            Claim(f"{finding.answer} [{finding.session}]"[:MAX_CLAIM_CHARS], held(query, finding, workspace.evidence))
            for query, finding in pairs
        )

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """`answer`, `session` and `date` for each question; see `scoring`."""
        return grade(read_draft(artifact), sealed.values["answers"], [query.text for query in queries_of(task)])


def _form(task: Task) -> str:
    """How to reply; for several questions as many lines."""
    queries = queries_of(task)
    form = "\n".join(_FORM.format(wanted=query.wanted) for query in queries)
    return (_ONE if len(queries) == 1 else _MANY).format(wanted=queries[0].wanted, form=form)


def _ranked(workspace: Workspace) -> list[int]:
    """Sessions that match, best first; several questions take turns.

    Who was found to have the role that a question asks about is searched for as well.
    """
    ranks: list[list[int]] = []
    for query in queries_of(workspace.task):
        holders = [h.said.value for h in heard(workspace.evidence) if query.role and h.said.thing == query.role]
        ranks.append(rank(workspace.task, " ".join((query.text, *holders[-1:]))))
    turns = zip_longest(*ranks, fillvalue=0)
    return list(dict.fromkeys(number for turn in turns for number in turn if number))


def _shown(evidence: Mapping[str, str]) -> dict[str, str]:
    """Evidence as prompts show it: notes, one list, hits (of an open session only where to look), open sessions.

    Hits and sessions stand in order of time, so that the newest comes last.
    """
    lists = [name for name in evidence if name.startswith("list-")]
    notes = {name: text for name, text in evidence.items() if name == ASKED or name in lists[-1:]}
    opened = [name for name in evidence if name.startswith("S")][-SHOWN_OPEN:]
    hits = [name for name in evidence if name.startswith("hit-")][-SHOWN_HITS:]
    sessions = {name: evidence[name] for name in sorted(opened, key=_number)}
    found = {name: evidence[name] for name in sorted(hits, key=_number)}
    brief = {n: f"see S{_number(n)}" if f"S{_number(n)}" in sessions else text for n, text in found.items()}
    return notes | brief | sessions


def _number(name: str) -> int:
    return int(name.removeprefix("hit-").removeprefix("S"))
