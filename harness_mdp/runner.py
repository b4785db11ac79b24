"""One episode: policy -> action -> setting -> event -> state; and many of them at once.

The runner holds no sealed part: it hands the final artifact to the scorer and gets a score back.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from harness_mdp.executors.protocol import (
    Completion,
    DrawKey,
    Executor,
    InfraFault,
    Message,
    Purpose,
    Request,
)
from harness_mdp.hashing import digest, generator
from harness_mdp.mdp import (
    ACTIONS,
    Action,
    Budgets,
    Episode,
    Event,
    Policy,
    Probs,
    Step,
    Termination,
    advance,
    ended,
    start,
)
from harness_mdp.scoring.rubric import RubricScore, Scorer
from harness_mdp.settings.acting import act
from harness_mdp.settings.prompts import without_thinking
from harness_mdp.settings.protocol import Setting, Workspace
from harness_mdp.settings.scripts import decision_point
from harness_mdp.settings.tasks import Task

__all__ = ["EpisodePlan", "Failure", "draw_action", "episode_id", "run_episode", "run_episodes"]


@dataclass(frozen=True)
class EpisodePlan:
    """An episode that is to be run: everything its id depends on, and where it belongs."""

    run: str
    phase: str
    setting: Setting
    task: Task
    policy: Policy
    executor: str
    """Executor fingerprint."""
    seed: int
    rollout: int
    horizon: int
    budgets: Budgets

    @cached_property
    def id(self) -> str:
        """See `episode_id`."""
        return episode_id(self)


def episode_id(plan: EpisodePlan) -> str:
    """32 hex digits over task, policy, executor, rollout, seed, H, budgets and setting version.

    The same work twice is one episode; a retrained controller is another.
    """
    return digest(
        {
            "task": plan.task.hash,
            "policy": plan.policy.fingerprint,
            "executor": plan.executor,
            "rollout": plan.rollout,
            "seed": plan.seed,
            "horizon": plan.horizon,
            "budgets": [plan.budgets.tokens, plan.budgets.usd],
            "setting": [plan.setting.name, plan.setting.version],
        }
    )


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt at an episode that failed for reasons outside the agent: it has no return, never 0."""

    plan: EpisodePlan
    kind: str
    """Type of the error behind it, e.g. `APITimeoutError`."""
    message: str


def draw_action(probs: Probs, rng: np.random.Generator) -> Action:
    """An action from `probs` (7,) by the inverse CDF; never one of probability 0."""
    weights: list[float] = probs.tolist()  # seven numbers are faster as Python floats than as numpy calls
    mark = rng.random() * sum(weights)
    edge, action = 0.0, 0
    for index, weight in enumerate(weights):
        if weight > 0.0:
            edge, action = edge + weight, index
            if mark < edge:
                break
    return ACTIONS[action]


@dataclass
class _Usage:
    """What one step spent."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0

    def book(self, completion: Completion) -> None:
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens
        unknown = self.cost_usd is None or completion.cost_usd is None
        self.cost_usd = None if unknown else self.cost_usd + completion.cost_usd  # pyright: ignore[reportOperatorIssue]


@dataclass
class _Caller:
    """Makes the executor calls of one episode, with draw keys that do not depend on the policy."""

    plan: EpisodePlan
    executor: Executor
    usage: _Usage = field(default_factory=_Usage)
    seen: Counter[str] = field(default_factory=Counter[str])

    async def ask(self, purpose: Purpose, messages: tuple[Message, ...]) -> Completion:
        task = self.plan.task
        draw = DrawKey(self.plan.seed, self.plan.rollout, 0)
        request = Request(messages, purpose, task.id, task.hash, draw)
        content = request.content_key
        if self.seen[content]:
            request = replace(request, draw=replace(draw, occurrence=self.seen[content]))
        self.seen[content] += 1
        self.usage.calls += 1
        completion = await self.executor.complete(request)
        self.usage.book(completion)
        return replace(completion, text=without_thinking(completion.text))


async def run_episode(plan: EpisodePlan, executor: Executor, scorer: Scorer) -> Episode:
    """Run one episode to its end and score its quality; maturity is left to `scoring.maturity`.

    Raises:
        InfraFault: endpoint or scorer failed for reasons outside the agent.
        ExecutorStopped: the whole run has to stop.
        ValueError: the policy gave no distribution over legal actions (a programming error).
    """
    setting, policy, identity = plan.setting, plan.policy, plan.id
    began = time.perf_counter()
    workspace = Workspace(plan.task)
    caller = _Caller(plan, executor)
    state = start(plan.horizon, plan.budgets)
    steps: list[Step] = []
    artifacts: dict[str, str] = {}
    termination: Termination | None = None
    while termination is None:
        t = len(steps) + 1
        point = decision_point(setting, state)
        probs = policy.probs(point)
        _expect_distribution(policy, probs, point.mask)
        action = draw_action(probs, generator("policy", identity, t))
        event = await _step(setting, action, workspace, caller)
        steps.append(Step(t, event, point.features, point.mask, point.base_action, action, probs))
        state = advance(state, event)
        if event.artifact is not None and workspace.artifact is not None:
            artifacts[event.artifact.sha256] = workspace.artifact
        termination = ended(state)
    score = await _score(scorer, plan.task, workspace.artifact)
    return Episode(
        episode_id=identity,
        run=plan.run,
        phase=plan.phase,
        setting=setting.name,
        setting_version=setting.version,
        feature_schema_id=setting.schema.id,
        task_id=plan.task.id,
        task_hash=plan.task.hash,
        template=plan.task.template,
        split=plan.task.split,
        difficulty=plan.task.difficulty,
        executor=plan.executor,
        policy=policy.name,
        policy_fingerprint=policy.fingerprint,
        seed=plan.seed,
        rollout=plan.rollout,
        horizon=plan.horizon,
        budgets=plan.budgets,
        eval_status=score.eval_status,
        termination=termination,
        return_=score.value,
        rubric=tuple((c.id, c.score, c.weight) for c in score.criteria),
        artifacts=artifacts,
        final_artifact=state.artifact.sha256 if state.artifact else "",
        tokens=state.tokens,
        cost_usd=state.cost_usd,
        seconds=time.perf_counter() - began,
        steps=tuple(steps),
    )


def _expect_distribution(policy: Policy, probs: Probs, mask: np.ndarray) -> None:
    if probs.shape != mask.shape or abs(float(probs.sum()) - 1.0) > 1e-9 or (probs[~mask] != 0.0).any():
        raise ValueError(f"policy {policy.name} gave {probs.tolist()} where legal is {mask.tolist()}")


async def _step(setting: Setting, action: Action, workspace: Workspace, caller: _Caller) -> Event:
    caller.usage = _Usage()
    began = time.perf_counter()
    event = await act(setting, action, workspace, caller.ask)
    usage = caller.usage
    return replace(
        event,
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost_usd=usage.cost_usd,
        seconds=time.perf_counter() - began,
    )


async def _score(scorer: Scorer, task: Task, artifact: str | None) -> RubricScore:
    try:
        return await scorer.score(task, artifact)
    except Exception as problem:
        raise InfraFault(f"the scorer failed: {type(problem).__name__}: {problem}") from problem


async def run_episodes(
    plans: Iterable[EpisodePlan],
    executor: Executor,
    scorer: Scorer,
    *,
    concurrency: int,
    on_episode: Callable[[Episode], Awaitable[None]],
    on_failure: Callable[[Failure], Awaitable[None]],
) -> None:
    """Run `plans`, at most `concurrency` at once; report each as soon as it ends.

    Raises:
        ExecutorStopped: from the executor, after episodes under way were cancelled (their finished completions
            are in the cache); also anything that `on_episode` raises.
    """
    queue = iter(plans)

    async def worker() -> None:
        for plan in queue:  # one iterator shared by all workers: each plan is taken once
            try:
                episode = await run_episode(plan, executor, scorer)
            except InfraFault as fault:
                cause = fault.__cause__ or fault
                await on_failure(Failure(plan, type(cause).__name__, str(fault)))
            else:
                await on_episode(episode)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(worker())
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
