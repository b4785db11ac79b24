"""Setting `cheapest`: which product on a shelf is cheapest by the kilogram? A template: copy it and change every part.

Run it from this folder, as it is:

    python -m harness_mdp.collect setting=custom setting.name=cheapest:Cheapest rollouts=4 buffer=runs/cheapest
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.executors.protocol import Message, Purpose
from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import generator
from harness_mdp.mdp import Budgets, Claim, LegalRules, Needs, State, ToolResult
from harness_mdp.settings.prompts import Unparsable, compose, fenced
from harness_mdp.settings.protocol import Ask, CheckItem, Criterion, Evidence, Script, ToolCall, Workspace
from harness_mdp.settings.scripts import SCRIPTS, make_more_evidence
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer, Sealed, Task, TaskStore, difficulties, expect_generated

PRODUCTS = ("oats", "rice", "lentils", "flour", "sugar", "beans", "barley", "salt")
SIZES = {"easy": 3, "standard": 5, "hard": 8}
"""Products on the shelf: what makes a task difficult."""

INSTRUCTIONS = {
    Purpose.DRAFT: 'Reply with JSON only: {"product": "...", "price_per_kg": 1.23}',
    Purpose.REVISE: 'Mend the problems. Reply with JSON only: {"product": "...", "price_per_kg": 1.23}',
    Purpose.CHECK: "Compare the draft with the shelf. Reply OK, or one problem per line, each beginning with `- `.",
}


class Cheapest:
    """One class with these attributes and methods is a setting (`harness_mdp.settings.protocol.Setting`)."""

    name = "cheapest"
    version = 1  # bump it whenever tasks, prompts, tools, masks, scripts, check or rubric change
    horizon = 10
    budgets = Budgets(tokens=20_000)
    rules = LegalRules(offers_retrieve=False, tool_needs=Needs.ARTIFACT)
    schema = FeatureSchema(name, version, ("shelf_seen", "price_tested", "price_failed", "check_failed"))
    scripts: Mapping[str, Script] = {**SCRIPTS, "more_evidence": make_more_evidence(observes=2, retrieves=0)}
    tests_code = False

    def tasks(self, *, seed: int, n: int, path: Path | None) -> TaskStore:
        """Public part, sealed part and the simulator's answer are made apart, and handed out apart."""
        expect_generated(self.name, n, path)
        made = [_make(seed, number, level) for number, level in enumerate(difficulties(n))]
        return TaskStore(
            tasks=tuple(task for task, _, _ in made),
            sealed={task.id: sealed for task, sealed, _ in made},
            answers={task.id: answer for task, _, answer in made},
        )

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        """Four structural booleans, from the state alone."""
        failed = state.last_tool is not None and state.last_tool.failed
        return (
            "shelf" in state.evidence,
            state.version_tested,
            state.version_tested and failed,
            state.version_checked and state.last_check is not None and state.last_check.failed,
        )

    def observe(self, workspace: Workspace) -> Sequence[Evidence]:
        """First the shelf, then how to compare; then nothing more."""
        shelf = "; ".join(f"{name}: {grams} g for {price}" for name, grams, price in _shelf(workspace.task))
        items = (Evidence("shelf", shelf), Evidence("rule", "Price per kilogram is price / grams * 1000."))
        return [item for item in items if item.id not in workspace.evidence][:1]

    def retrieve(self, workspace: Workspace) -> Sequence[Evidence]:
        """Not offered (`rules.offers_retrieve`), so never called."""
        raise NotImplementedError

    async def call_tool(self, workspace: Workspace, ask: Ask) -> ToolCall:
        """Real, and about the draft only: computes the price of the product that the draft names."""
        draft = json.loads(workspace.artifact or "{}")
        right = _prices(workspace.task).get(draft["product"])
        problems = () if right == draft["price_per_kg"] else (f"{draft['product']} costs {right} per kg",)
        result = ToolResult("price", True, True, workspace.version, int(not problems), 1, problems)
        return ToolCall(result, problems[0] if problems else f"{draft['product']} costs {right} per kg: as drafted")

    def messages(self, purpose: Purpose, workspace: Workspace) -> tuple[Message, ...]:
        """The prompt from what is at hand; nothing that was not observed may be in it."""
        return compose(
            "You compare prices.",
            task="Which product on the shelf is cheapest by the kilogram?",
            instructions=INSTRUCTIONS[purpose],
            evidence=workspace.evidence,
            tool_results=workspace.tool_results[-1:],
            draft=None if purpose is Purpose.DRAFT else workspace.artifact,
            problems=workspace.problems if purpose is Purpose.REVISE else (),
        )

    def parse(self, reply: str) -> str:
        """Canonical text of the draft, or `Unparsable`; no other exception, whatever a model sends."""
        text = fenced(reply)
        try:
            value = json.loads(text[text.index("{") : text.rindex("}") + 1])
            return _draft(str(value["product"]).strip().lower(), round(float(value["price_per_kg"]), 2))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as problem:
            raise Unparsable('the reply holds no {"product": ..., "price_per_kg": ...}') from problem

    async def check_items(self, workspace: Workspace) -> Sequence[CheckItem]:
        """What can be verified when deployed; the self-review is added to it."""
        product = json.loads(workspace.artifact or "{}")["product"]
        on_shelf = product in _prices(workspace.task)
        return [CheckItem("on_shelf", on_shelf, "" if on_shelf else f"{product} is not on the shelf")]

    def claims(self, workspace: Workspace) -> tuple[Claim, ...]:
        """What the draft asserts, and whether the evidence at hand shows it."""
        product = json.loads(workspace.artifact or "{}")["product"]
        return (Claim(f"{product} is on the shelf", product in workspace.evidence.get("shelf", "")),)

    async def criteria(self, task: Task, sealed: Sealed, artifact: str) -> Sequence[Criterion]:
        """The sealed rubric. Only here are the sealed values read."""
        draft = json.loads(artifact)
        right = draft["product"] == sealed.values["product"]
        price = right and draft["price_per_kg"] == sealed.values["price_per_kg"]
        return [Criterion("product", float(right), 3.0), Criterion("price", float(price), 1.0)]


def _make(seed: int, number: int, level: str) -> tuple[Task, Sealed, Answer]:
    rng = generator("cheapest", seed, number)
    names = [PRODUCTS[i] for i in rng.permutation(len(PRODUCTS))[: SIZES[level]]]
    shelf = [[name, int(rng.integers(2, 20)) * 50, int(rng.integers(50, 900)) / 100] for name in names]
    prices = {name: round(price / grams * 1000, 2) for name, grams, price in shelf}
    best = min(prices, key=lambda name: (prices[name], name))
    task = Task(f"cheapest-{seed}-{number:03d}", f"shelf-{SIZES[level]}", level, {"shelf": shelf})
    others = tuple(name for name in names if name != best)
    figure = prices[best]
    text = SlottedText(
        (
            '{"product":"',
            Slot(best, others, "the product may not be the cheapest", helped_by=("shelf", "rule")),
            '","price_per_kg":',
            Slot(str(figure), (str(round(figure * 10, 2)), str(round(figure + 1, 2))), "the price per kg may be off"),
            "}",
        ),
        fence="json",
    )
    return task, Sealed({"product": best, "price_per_kg": figure}), Answer(text)


def _shelf(task: Task) -> list[tuple[str, int, float]]:
    return [(name, grams, price) for name, grams, price in task.public["shelf"]]


def _prices(task: Task) -> dict[str, float]:
    return {name: round(price / grams * 1000, 2) for name, grams, price in _shelf(task)}


def _draft(product: str, price: float) -> str:
    return json.dumps({"product": product, "price_per_kg": price}, separators=(",", ":"))
