"""Setting `tau_retail`: act for a shop's customer with the 16 tools of tau-bench retail.

Observe brings the request and the policy, retrieve looks records up, call_tool runs the drafted calls on a copy,
check holds the dry run against the policy; the sealed rubric is native: the final state equals the reference's
and the required outputs are said. One request, one draft `{calls, respond}`: the customer does not answer back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import Json
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.prompts import compose
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.tasks import Sealed, Task, TaskStore
from harness_mdp.settings.tau_retail.data import Database, Record, Shop, database
from harness_mdp.settings.tau_retail.draft import Draft, Ran, parse_draft, play, read_draft
from harness_mdp.settings.tau_retail.generate import generate
from harness_mdp.settings.tau_retail.lookup import lookup_rounds
from harness_mdp.settings.tau_retail.policy import one_line, policy_items
from harness_mdp.settings.tau_retail.scoring import native_score
from harness_mdp.settings.tau_retail.tasks import upstream_tasks
from harness_mdp.settings.tau_retail.tools import TOOLS, TRANSFER

__all__ = ["TauRetail"]

_SYSTEM = "You are the agent of an online shop. Use only ids that the evidence shows, and keep to the policy."
# Look-ups are the harness's work, so a prompt lists only what a draft needs; the other tools run all the same.
_TOOL_LIST = "\n".join(
    f"{tool.name}({', '.join(tool.arguments)})"
    for tool in TOOLS.values()
    if tool.writes or tool.name == TRANSFER or tool.name.startswith("find_user_id_by")
)
_FORM = (
    'Reply with one JSON object and nothing else: {"calls": [{"name": "...", "arguments": {...}}], "respond": "..."}. '
    "calls: tool calls in order, first find the user id, then only what changes data; it may be empty. "
    "respond: what you say to the customer, with every fact asked for. item_ids and new_item_ids are lists of strings, "
    f"all other arguments strings. Tools:\n{_TOOL_LIST}"
)
_INSTRUCTIONS: Mapping[Purpose, str] = {
    Purpose.DRAFT: f"Handle the request. {_FORM}",
    Purpose.REVISE: f"Correct the draft: mend the problems, keep what is right. {_FORM}",
    Purpose.CHECK: (
        "Compare the draft with request, policy and records. If it is right, reply OK. "
        'Else list each problem in one line that begins with "- ".'
    ),
    Purpose.TOOL: "",
}
_OPENING_CHARS = 160
_MAX_CLAIMS = 12
_CLAIM_CHARS = 80
_ID_ARGUMENTS = ("order_id", "item_ids", "new_item_ids", "payment_method_id", "user_id", "product_id")


class TauRetail:
    """See the module; tasks come from upstream files (`path`) or from the generator."""

    name = "tau_retail"
    version = 1
    horizon = 10
    budgets = Budgets()
    rules = LegalRules(offers_retrieve=True, tool_needs=Needs.ARTIFACT)
    schema = FeatureSchema(name, version, ("customer_known", "orders_read", "variants_read", "dry_run_failed"))
    # Customer, orders and variants take three look-ups, so more evidence means three.
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(observes=2, retrieves=3)}
    tests_code = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """Generated tasks; or all tasks of the upstream files (folder: `tasks_test.json`; or a tasks file in it)."""
        return generate(seed, n) if path is None else upstream_tasks(path)

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """Which records have been read, and whether the current version's dry run failed."""
        seen = state.evidence
        return (
            "user" in seen,
            any(name.startswith("order-") for name in seen),
            any(name.startswith("product-") for name in seen),
            state.version_tested and state.last_tool is not None and state.last_tool.failed,
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First the request and the general rules, then the sections of the policy that the request calls for."""
        rounds = workspace.task.public["observe"]
        index = _turn(workspace, "observe")
        return [Evidence(name, text) for name, text in rounds[index]] if index < len(rounds) else []

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """The customer, then orders, then variants of the products in question, then further orders."""
        public = workspace.task.public
        rounds = _lookups(database(public), public["instruction"])
        index = _turn(workspace, "retrieve")
        return rounds[index] if index < len(rounds) else []

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:  # noqa: ARG002  (nothing is left to choose)
        """Run the drafted calls on a copy; the text says what each changed or why it failed."""
        draft, ran = _dry_run(workspace)
        problems = tuple(one_line(f"{row.call.name}: {_reason(row)}", 200) for row in ran if not row.outcome.ok)
        result = ToolResult(
            name="dry_run",
            valid=all(row.outcome.valid for row in ran),
            ok=not problems,
            version=workspace.version,
            passed=len(ran) - len(problems),
            total=len(ran),
            problems=tuple(dict.fromkeys(problems)),
        )
        lines = [f"{row.call.name}: {_effect(row)}" for row in ran]
        skipped = len(draft.calls) - len(ran)
        lines += [f"{skipped} calls after the transfer do not run"] if skipped else []
        return ToolCall(result, "dry run: " + ("; ".join(lines) or "no call, nothing changes"))

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """Opening of the request, evidence, the latest dry run, draft and problems."""
        opening = one_line(workspace.task.public["instruction"], _OPENING_CHARS)
        review = purpose is not Purpose.DRAFT
        return compose(
            _SYSTEM,
            task=f"A customer asks (full text: evidence `request`): {opening}",
            instructions=_INSTRUCTIONS[purpose],
            evidence=workspace.evidence,
            tool_results=workspace.tool_results[-1:],
            draft=workspace.artifact if review else None,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """See `draft.parse_draft`."""
        return parse_draft(reply)

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """Form, tools, arguments and policy on a dry run."""
        draft, ran = _dry_run(workspace)
        return policy_items(database(workspace.task.public), draft, ran)

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """Each id that the drafted calls use; supported if evidence or a look-up shows it."""
        draft = read_draft(workspace.artifact or "")
        used = dict.fromkeys(value for call in draft.calls for value in _ids(call.arguments))
        texts = "\n".join(workspace.evidence.values())
        return tuple(Claim(one_line(value, _CLAIM_CHARS), value in texts) for value in list(used)[:_MAX_CLAIMS])

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """The native score alone: 1 or 0."""
        return [Criterion("native", native_score(database(task.public), sealed.values, artifact))]


@lru_cache(maxsize=1024)
def _lookups(base: Database, request: str) -> tuple[tuple[Evidence, ...], ...]:
    return lookup_rounds(base, request)


def _turn(workspace: Workspace, action: str) -> int:
    """How often `action` was taken before; counts this one."""
    index = workspace.notes.get(action, 0)
    workspace.notes[action] = index + 1
    return index


def _dry_run(workspace: Workspace) -> tuple[Draft, tuple[Ran, ...]]:
    draft = read_draft(workspace.artifact or "")
    return draft, play(Shop(database(workspace.task.public)), draft.calls, ends_at_transfer=True)


def _reason(row: Ran) -> str:
    return row.outcome.text.removeprefix("Error: ")


def _effect(row: Ran) -> str:
    """One call's outcome, short: a failure, the new state of an order, or just that it worked."""
    if not row.outcome.ok:
        return one_line(f"fails, {_reason(row)}", 200)
    if not TOOLS[row.call.name].writes:
        return one_line(row.outcome.text, 40) or "ok"
    record: Record = json.loads(row.outcome.text)
    if "order_id" not in record:
        return "profile changed"
    money = ""
    if "exchange_price_difference" in record:
        money = f", price difference {record['exchange_price_difference']:.2f}"
    elif row.call.name == "modify_pending_order_items":
        entry = record["payment_history"][-1]
        money = f", {entry['transaction_type']} {entry['amount']:.2f}"
    return f"order {record['order_id']} becomes {record['status']}{money}"


def _ids(arguments: Mapping[str, Json]) -> list[str]:
    """The ids in a call's arguments, in order."""
    found: list[str] = []
    for name in _ID_ARGUMENTS:
        value: Json = arguments.get(name)
        found += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item]
    return found
