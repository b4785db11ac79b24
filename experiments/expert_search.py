"""`python -m experiments.expert_search setting=NAME`: which plan serves a hand-written expert best, on training tasks.

One group of parameters after the other, each on top of what the groups before it chose; draws are shared by all plans,
so a difference is the plans' own. Evaluation tasks are never touched: the expert is a yardstick there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from experiments.expert_search_config import ExpertSearchConfig
from experiments.experts import Confirm, ExpertPlan, Remedy, Verdict, expert, expert_policy
from experiments.hydra_app import run_command
from harness_mdp.mdp import LegalRules, Needs

__all__ = ["axes", "main", "search_plan"]

Changes = Mapping[str, Any]
"""Fields of an `ExpertPlan` and their values, of several types."""


def axes(rules: LegalRules) -> tuple[tuple[Changes, ...], ...]:
    """Groups of alternatives, in the order in which they are tried."""
    by_tool = rules.tool_needs is Needs.ARTIFACT
    retrieves: list[Changes] = [{"retrieves": n} for n in range(4)] if rules.offers_retrieve else []
    evidence: list[Changes] = [*({"observes": n} for n in range(4)), *retrieves]
    tools: list[Changes] = [{"late_tools": 1}, {"late_tools": 2}, *({"tools": n} for n in (1, 2, 3, 4))]
    doubts: list[Changes] = [{"accept": True}, {"confirm": Confirm.CHECK}, {"rechecks": 1}, {"rechecks": 2}]
    groups: list[list[Changes]] = [
        [{"verdict": verdict} for verdict in Verdict] if by_tool else tools,
        [{"failed_tool": remedy} for remedy in Remedy] if by_tool else [],
        evidence,
        [*doubts, {"confirm": Confirm.TOOL}, {"confirm": Confirm.TOOL, "accept": True}] if by_tool else doubts,
        [*({"redraft_problems": n} for n in (2, 3, 4)), *({"redraft_score": score} for score in (0.5, 0.85))],
        [{"last_revise": False}],
        evidence if by_tool else tools,
    ]
    return tuple(tuple(group) for group in groups if group)


def search_plan(
    value: Callable[[ExpertPlan], float], groups: Sequence[Sequence[Changes]], margin: float
) -> Iterator[tuple[ExpertPlan, float, bool]]:
    """Every plan tried, its value, and whether it is the best so far by `margin`; the last such is the result."""
    best = ExpertPlan()
    best_value = value(best)
    yield best, best_value, True
    for group in groups:
        found: tuple[ExpertPlan, float] | None = None
        for changes in group:
            plan = replace(best, **changes)
            if plan == best:
                continue
            this = value(plan)
            better = this > (found[1] if found else best_value + margin)
            found = (plan, this) if better else found
            yield plan, this, better
        best, best_value = found or (best, best_value)


def _search(config: ExpertSearchConfig) -> int:
    import sys

    from experiments.value import SimulatedWorld
    from harness_mdp.settings.scripts import script_policy

    world = SimulatedWorld(config.setting.name, config.profile)
    setting = world.tasks.setting

    def value(plan: ExpertPlan) -> float:
        policy = expert_policy(setting, plan)
        return world.returns(policy, split="train", rollouts=config.rollouts, seed=config.seed).value

    def say(what: str, number: float) -> None:
        sys.stdout.write(f"{number:.4f}  {what}\n")
        sys.stdout.flush()

    say_all = f"{setting.name}, simulated {config.profile}, training tasks x {config.rollouts} rollouts\n"
    sys.stdout.write(say_all)
    for name in ("base", "check_revise"):
        script = script_policy(setting, name)
        say(name, world.returns(script, split="train", rollouts=config.rollouts, seed=config.seed).value)
    say("expert, as written down", value(expert(setting).plan))
    if config.written_only:
        return 0
    best, best_value = ExpertPlan(), float("-inf")
    for plan, this, better in search_plan(value, axes(setting.rules), config.margin):
        say(_changed(plan), this)
        best, best_value = (plan, this) if better else (best, best_value)
    say(f"best: {_changed(best)}", best_value)
    return 0


def _changed(plan: ExpertPlan) -> str:
    default = asdict(ExpertPlan())
    return ", ".join(f"{name}={value}" for name, value in asdict(plan).items() if value != default[name]) or "default"


def main() -> None:
    """Run the command."""
    run_command("expert_search", _search)


if __name__ == "__main__":
    main()
