"""The setting `research`: answer a question from a small corpus and cite the documents that show it.

`observe` tells what kind of answer is asked for, then the titles of the corpus. `retrieve` brings hits (title and
first sentence) by TF-IDF, only those that are nearly as good as the best, the next ones each time, with names met in
opened documents added to the query.
`call_tool` opens the next retrieved document. `check` looks at what can be known when deployed: sources are given,
were opened, and hold the answer; the answer is of the kind asked for. The rubric knows the answer and its sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import Json
from harness_mdp.mdp import Action, Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.answers import says
from harness_mdp.settings.prompts import compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.research.draft import parse_draft, read_draft
from harness_mdp.settings.research.scoring import grade
from harness_mdp.settings.research.search import mentioned, rank
from harness_mdp.settings.research.tasks import generate, hit_id
from harness_mdp.settings.scripts import SCRIPTS, base
from harness_mdp.settings.scripts import tool_first as tool_first_everywhere
from harness_mdp.settings.tasks import Sealed, Task, TaskStore, expect_generated

__all__ = ["Research"]

ASKED = "asked"
"""Evidence id of what kind of answer is wanted."""
TITLES = "titles"
"""Evidence id of the list of documents."""
HITS = 3
"""Hits that one `retrieve` brings at most."""
NEAR = 0.5
"""How similar to the query a hit is at least, as a share of the best new one: where a question names its document,
what merely looks like it stays away."""

MAX_CLAIMS = 12
MAX_CLAIM_CHARS = 80
_YEAR = re.compile(r"\d{4}")

WRITER = "You answer questions from the evidence given."
REVIEWER = "You review the answer to a question. You are brief."

# The question comes last and the form is one line: what SmolLM2-135M follows best of the forms tried. An example of a
# source is left out: it is copied instead of one from the evidence.
INSTRUCTIONS: Mapping[Purpose, str] = {
    Purpose.DRAFT: "Answer {form}, then the source in brackets: {question}",
    Purpose.REVISE: "Correct the draft. Answer {form}, then the source in brackets: {question}",
    Purpose.CHECK: "Compare the draft with the evidence. If it is right, reply OK. Otherwise name one problem per "
    'line, each line starting with "- ".',
}


def tool_first(state: State, rules: LegalRules) -> Action:
    """Opens up to two retrieved documents before the first draft; one where no more were found."""
    action = tool_first_everywhere(state, rules)
    none_left = action is Action.CALL_TOOL and state.retrieved <= _opened(state)
    return base(state, rules) if none_left else action


class Research:
    """100 generated questions of six templates; see `tasks`."""

    name: str = "research"
    version: int = 3
    horizon: int = 10
    budgets: Budgets = Budgets(tokens=20_000)
    rules: LegalRules = LegalRules(offers_retrieve=True, tool_needs=Needs.RETRIEVED)
    schema: FeatureSchema = FeatureSchema(
        name, version, ("document_open", "hits_unopened", "answer_found", "sources_open")
    )
    scripts: Mapping[str, Script] = {**SCRIPTS, "tool_first": tool_first}
    tests_code: bool = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """`n` questions generated from `seed`: a fifth easy, a fifth hard.

        Raises:
            ConfigError: a path was given, or `n` is not a number of tasks that can be made.
        """
        expect_generated(self.name, n, path)
        return generate(seed, n)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """A document is open; hits are unopened; the answer stands in the evidence; all cited documents are open."""
        opened = _opened(state)
        answer, sources = state.claims[:1], state.claims[1:]
        return (
            opened > 0,
            state.retrieved > opened,
            bool(answer) and answer[0].supported,
            bool(sources) and all(claim.supported for claim in sources),
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First what kind of answer is wanted, then the titles of the corpus, then nothing."""
        public = workspace.task.public
        titles = "; ".join(f"{document['id']} {document['title']}" for document in public["documents"])
        items = (
            Evidence(ASKED, f"The answer is {_asked(public['kind'])}."),
            Evidence(TITLES, f"The corpus holds {titles}."),
        )
        seen = workspace.notes.get("observed", 0)
        workspace.notes["observed"] = seen + 1
        return items[seen : seen + 1]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """Of the documents that are no hits yet the best: first sentences, which begin with the title."""
        new = [(d, near) for d, near in _ranked(workspace) if hit_id(d["id"]) not in workspace.evidence]
        return [Evidence(hit_id(d["id"]), d["lead"]) for d, near in new[:HITS] if near >= NEAR * new[0][1]]

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing to choose)
        """Open the next retrieved document: one that an open document names, else the one most like the question."""
        found = workspace.evidence
        closed = [d for d, _ in _ranked(workspace) if hit_id(d["id"]) in found and d["id"] not in found]
        if not closed:
            return ToolCall(ToolResult("open_document", True, False), "every retrieved document is open; retrieve more")
        named = [d for d in closed if d["title"] in _leads_on(workspace)]
        document = (named or closed)[0]
        opened = Evidence(document["id"], document["text"])
        return ToolCall(ToolResult("open_document", True, True), f"opened {opened.id}", (opened,))

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The question and what was found; for check and revise the draft as well."""
        public = workspace.task.public
        form = f"with {_asked(public['kind'])} only" if ASKED in workspace.evidence else "in a few words"
        return compose(
            REVIEWER if purpose is Purpose.CHECK else WRITER,
            task=public["question"],
            instructions=INSTRUCTIONS[purpose].format(question=public["question"], form=form),
            evidence=_shown(workspace.evidence),
            draft=None if purpose is Purpose.DRAFT else workspace.artifact,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """Answer and sources in the canonical line (see `draft`).

        Raises:
            Unparsable: the reply holds no short answer.
        """
        return parse_draft(reply).text

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """Sources are given, exist and were opened; the answer stands in one of them and is of the kind asked for."""
        public, draft = workspace.task.public, read_draft(workspace.artifact or "")
        corpus = {document["id"] for document in public["documents"]}
        unknown = [name for name in draft.citations if name not in corpus]
        closed = [name for name in draft.citations if name in corpus and name not in workspace.evidence]
        held = any(says(workspace.evidence.get(name, ""), draft.answer) for name in draft.citations)
        fits = bool(_YEAR.fullmatch(draft.answer)) if public["kind"] == "year" else _is_name(draft.answer)
        return (
            CheckItem("sources_given", bool(draft.citations), "no source is cited"),
            CheckItem("sources_exist", not unknown, f"{', '.join(unknown)}: not in the corpus"),
            CheckItem("sources_opened", not closed, f"{', '.join(closed)}: cited but not opened"),
            CheckItem("answer_found", held, "the answer stands in no cited document that was opened"),
            CheckItem("answer_kind", fits, f"the answer is not {_asked(public['kind'])} alone"),
        )

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """The answer, supported where it stands in a hit or open document; each source, supported once it is open."""
        draft = read_draft(workspace.artifact or "")
        found = any(says(text, draft.answer) for name, text in workspace.evidence.items() if _is_passage(name))
        sources = tuple(Claim(f"{name} shows it", name in workspace.evidence) for name in draft.citations)
        return (Claim(f"answer: {draft.answer}"[:MAX_CLAIM_CHARS], found), *sources[: MAX_CLAIMS - 1])

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """`answer`, `sources_found`, `sources_precise`, `supported`; see `scoring`."""
        return grade(read_draft(artifact), task.public["question"], task.public["documents"], sealed.values)


def _opened(state: State) -> int:
    return sum(name.startswith("doc-") for name in state.evidence)


def _asked(kind: str) -> str:
    return "a year" if kind == "year" else f"the name of a {kind}"


def _is_name(answer: str) -> bool:
    return len(answer.split()) <= 4 and not answer[:1].isdigit()


def _is_passage(name: str) -> bool:
    return name.startswith(("hit-", "doc-"))


def _leads_on(workspace: Workspace) -> list[str]:
    """Titles that open documents name and that are not open themselves: where a chain of facts goes on."""
    documents: Sequence[Json] = workspace.task.public["documents"]
    closed = [d["title"] for d in documents if d["id"] not in workspace.evidence]
    read = " ".join(d["text"] for d in documents if d["id"] in workspace.evidence)
    return mentioned(closed, read)


def _ranked(workspace: Workspace) -> list[tuple[Json, float]]:
    """The corpus with its similarity to question and names met, best first."""
    documents: Sequence[Json] = workspace.task.public["documents"]
    query = " ".join((workspace.task.public["question"], *_leads_on(workspace)))
    return [(documents[i], near) for i, near in rank(query, [d["text"] for d in documents])]


def _shown(evidence: Mapping[str, str]) -> dict[str, str]:
    """Evidence as prompts show it: open documents alone once there is one, else the titles and hits, with sources.

    An answer rests on open documents, and a small model is led astray by everything else (on SmolLM2-135M the
    hit rate fell to a third). What kind of answer is wanted is said in the instructions.
    """
    opened = {name: text for name, text in evidence.items() if name.startswith("doc-")}
    shown = opened or {name: text for name, text in evidence.items() if name != ASKED}
    return {name: _sourced(name, text) if _is_passage(name) else text for name, text in shown.items()}


def _sourced(name: str, text: str) -> str:
    """Each sentence with its document behind it, as an answer is to have it."""
    return re.sub(r"\.(?=\s|$)", f" ({name.replace('hit-', 'doc-')}).", text)
