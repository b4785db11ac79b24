"""Synthetic but valid episodes: random legal events, folded by the same code as real ones.

`episode(seed)` is a pure function of its arguments. What it makes replays: masks, features, base actions,
propensities, artifact hashes and totals all come from `harness_mdp.mdp`. Returns and texts are random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness_mdp.features import FeatureSchema
from harness_mdp.hashing import digest, generator, text_hash
from harness_mdp.mdp import (
    N_ACTIONS,
    Action,
    Artifact,
    Budgets,
    CheckResult,
    Claim,
    DecisionBatch,
    DecisionPoint,
    Episode,
    EvalStatus,
    Event,
    EventError,
    LegalRules,
    Needs,
    Probs,
    State,
    Status,
    Step,
    Termination,
    ToolResult,
    advance,
    ended,
    start,
)
from harness_mdp.settings.scripts import SCRIPTS, decision_point

__all__ = ["MADE_UP", "Behaviour", "MadeUpSetting", "episode", "episodes"]


_BUDGETS = Budgets(tokens=20_000, usd=1.0)
_RULES = LegalRules(offers_retrieve=True, tool_needs=Needs.ARTIFACT)


@dataclass(frozen=True)
class MadeUpSetting:
    """The parts of a setting that folding needs: rules, scripts, flags, schema. It has no tasks."""

    name: str = "made_up"
    version: int = 1
    horizon: int = 10
    budgets: Budgets = _BUDGETS
    rules: LegalRules = _RULES
    scripts: dict = field(default_factory=lambda: dict(SCRIPTS))
    tests_code: bool = False

    @property
    def schema(self) -> FeatureSchema:
        return FeatureSchema(self.name, self.version, ("even", "checked", "tooled", "stuck"))

    def flags(self, state: State) -> tuple[bool, bool, bool, bool]:
        checked, tooled = state.last_check is not None, state.last_tool is not None
        return state.steps % 2 == 0, checked, tooled, state.stalled > 1


MADE_UP = MadeUpSetting()


@dataclass(frozen=True)
class Behaviour:
    """base with probability 1 - ε, else uniform over the legal actions but submit."""

    epsilon: float = 0.5
    name: str = "made_up_behaviour"

    @property
    def fingerprint(self) -> str:
        return digest([self.name, str(self.epsilon)], 16)

    def probs(self, point: DecisionPoint) -> Probs:
        others = point.mask.copy()
        others[Action.SUBMIT] = False
        probs = self.epsilon * others / others.sum()
        probs[point.base_action] += 1.0 - self.epsilon
        return probs

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        raise NotImplementedError("the tests ask one point at a time")


def episode(
    index: int,
    *,
    setting: MadeUpSetting = MADE_UP,
    policy: Behaviour | None = None,
    tasks: int = 80,
    phase: str = "collect",
    split: str = "train",
    executor: str = "simulated:medium",
    run: str = "run-1",
    odd_text: str = "",
) -> Episode:
    """Episode number `index`: task `index % tasks`, rollout `index // tasks`.

    `odd_text` is added to every free text, to see whether storage keeps it.
    """
    behaviour = policy or Behaviour()
    task, rollout = index % tasks, index // tasks
    rng = generator("episode", index, setting.name, setting.version, behaviour.fingerprint)
    state = start(setting.horizon, setting.budgets)
    artifacts: dict[str, str] = {}
    steps: list[Step] = []
    termination: Termination | None = None
    while termination is None:
        point = decision_point(setting, state)
        probs = behaviour.probs(point)
        action = Action(int(rng.choice(N_ACTIONS, p=probs)))
        event = _event(action, state, rng, artifacts, task, odd_text)
        steps.append(Step(state.steps + 1, event, point.features, point.mask, point.base_action, action, probs))
        state = advance(state, event)
        termination = ended(state)
    scores = tuple((f"criterion_{i}", float(rng.integers(0, 5)) / 4.0, float(i + 1)) for i in range(3))
    quality = sum(s * w for _, s, w in scores) / sum(w for *_, w in scores)
    work = digest([setting.name, setting.version, behaviour.fingerprint, executor, task, rollout])
    final = state.artifact.sha256 if state.artifact else ""
    return Episode(
        episode_id=work,
        run=run,
        phase=phase,
        setting=setting.name,
        setting_version=setting.version,
        feature_schema_id=setting.schema.id,
        task_id=f"task-{task:03d}",
        task_hash=digest(["task", task]),
        template=f"template-{task % 8}",
        split=split,
        difficulty=("easy", "standard", "standard", "standard", "hard")[task % 5],
        executor=executor,
        policy=behaviour.name,
        policy_fingerprint=behaviour.fingerprint,
        seed=0,
        rollout=rollout,
        horizon=setting.horizon,
        budgets=setting.budgets,
        eval_status=EvalStatus.SCORED if final else EvalStatus.INVALID,
        termination=termination,
        return_=quality if final else 0.0,
        rubric=scores if final else (),
        maturity={"paper": float(rng.uniform(-1, 1))},
        maturity_events=tuple(("paper", name, True, bool(rng.random() < 0.5)) for name in _EVENTS),
        artifacts=artifacts,
        final_artifact=final,
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        seconds=sum(step.event.seconds for step in steps),
        steps=tuple(steps),
    )


def episodes(n: int, **kwargs) -> list[Episode]:
    """Episodes 0 .. n-1."""
    return [episode(index, **kwargs) for index in range(n)]


_EVENTS = ("CheckBeforeSubmit", "RevisionAfterFailure", "ValidToolUse", "StopWhenSufficient")
_FAULTS = (
    "the upper bound of the range may be off by one",
    "the total is not the sum of its parts",
    "the second condition is missing",
    "a name is used before it is defined",
)


def _event(
    action: Action, state: State, rng: np.random.Generator, artifacts: dict[str, str], task: int, odd: str
) -> Event:
    """A random outcome of `action` that the state allows."""
    event = Event(action, note=odd)
    if action in (Action.DRAFT, Action.CHECK, Action.REVISE):
        event = replace(
            event,
            calls=1,
            prompt_tokens=int(rng.integers(200, 900)),
            completion_tokens=int(rng.integers(20, 300)),
            cost_usd=0.0,
            seconds=float(rng.gamma(2.0, 0.3)),
        )
        if rng.random() < 0.05:
            return replace(event, status=Status.ERROR, error=EventError.PARSE, note=f"the reply is empty{odd}")
    match action:
        case Action.OBSERVE | Action.RETRIEVE:
            new = tuple(f"{action.label}{len(state.evidence) + i}{odd}" for i in range(int(rng.integers(0, 4))))
            return replace(event, evidence=new)
        case Action.CALL_TOOL:
            passed, problems = _verdict(rng, 4, odd)
            valid = bool(rng.random() < 0.95)
            result = ToolResult(
                "visible_tests", valid, valid, state.version, passed if valid else 0, 4 if valid else 0, problems
            )
            return replace(event, tool=result, seconds=float(rng.gamma(2.0, 0.1)))
        case Action.CHECK:
            passed, problems = _verdict(rng, 5, odd)
            return replace(event, check=CheckResult(passed / 5, state.version, passed, 5, problems))
        case Action.DRAFT | Action.REVISE:
            text = _draft(task, int(rng.integers(0, 6)), odd)
            artifacts[text_hash(text)] = text
            claims = tuple(Claim(f"claim {i}{odd}", bool(rng.random() < 0.6)) for i in range(2))
            made = Artifact(state.version + 1, text_hash(text), len(text))
            return replace(event, artifact=made, claims=None if claims == state.claims else claims)
        case Action.SUBMIT:
            return replace(event, note=f"submitted version {state.version}{odd}")


def _verdict(rng: np.random.Generator, total: int, odd: str) -> tuple[int, tuple[str, ...]]:
    failed = int(rng.integers(0, min(total, len(_FAULTS)) + 1))
    order: Sequence[int] = rng.permutation(len(_FAULTS)).tolist()
    return total - failed, tuple(_FAULTS[i] + odd for i in order[:failed])


def _draft(task: int, variant: int, odd: str) -> str:
    """One of few drafts of a task, as the faults of a simulated executor make them."""
    lines = [f"def solve_{task}(items):", f'    """Task {task}, variant {variant}."""', "    total = 0"]
    lines += [f"    for item in items[{variant}:]:", f"        total += item * {task + variant}"]
    return "\n".join([*lines, f"    return total{odd}", ""])
