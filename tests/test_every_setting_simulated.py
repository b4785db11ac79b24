"""What the simulated executor owes in every setting: evidence helps, named faults are mended, reviews are as profiled.

Prompts are the setting's own, replies go through its parser, and the faults are read back from the artifact. Draws are
fixed by their keys, so a figure is the same in every run; one beyond three standard errors is a chance of 1 in 370.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from harness_mdp.executors.protocol import Completion, DrawKey, Message, Purpose, Request
from harness_mdp.executors.simulated import GARBLED, SimulatedExecutor
from harness_mdp.executors.skill import skill_profile
from harness_mdp.hashing import generator
from harness_mdp.mdp import Action, Needs
from harness_mdp.settings.acting import act
from harness_mdp.settings.prompts import review_problems
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.slots import SlottedText
from harness_mdp.settings.tasks import Task
from tests.runs import SETTING_NAMES, opened, simulated

every_setting = pytest.mark.parametrize("name", SETTING_NAMES)


def sample(name: str, stride: int) -> list[tuple[Task, SlottedText]]:
    _, store = opened(name)
    return [(task, store.answers[task.id].text) for task in store.tasks[::stride]]


def reply(executor: SimulatedExecutor, name: str, purpose: Purpose, workspace: Workspace, rollout: int) -> str | None:
    """What the executor answers to the setting's prompt; None when it garbles, which is another figure's matter."""
    messages = opened(name)[0].messages(purpose, workspace)
    task = workspace.task
    request = Request(messages, purpose, task.id, task.hash, DrawKey(0, rollout, 0))
    text = asyncio.run(executor.complete(request)).text
    return None if text == GARBLED else text


def faults(name: str, text: SlottedText, said: str | None) -> list[bool] | None:
    """Which slots of a draft in a reply are wrong."""
    if said is None:
        return None
    choices = text.read(opened(name)[0].parse(said))
    assert choices is not None, "the setting reads a draft of the simulator as it was written"
    return [choice > 0 for choice in choices]


def everything_at_hand(name: str, task: Task) -> Workspace:
    """What an episode can have gathered before a draft: observe, retrieve, the right tool call, in turn."""
    setting, store = opened(name)
    workspace = Workspace(task)
    calls = iter(store.answers[task.id].tool_calls)

    async def ask(_purpose: Purpose, _messages: Sequence[Message]) -> Completion:
        return Completion(next(calls, "none"), 0, 0, 0.0, 0.0, "stop", "right")

    async def gather() -> None:
        for step in range(setting.horizon - 1):
            action = (Action.OBSERVE, Action.RETRIEVE, Action.CALL_TOOL)[step % 3]
            if action is Action.RETRIEVE and not setting.rules.offers_retrieve:
                action = Action.OBSERVE
            if action is Action.CALL_TOOL and setting.rules.tool_needs is Needs.ARTIFACT:
                action = Action.RETRIEVE if setting.rules.offers_retrieve else Action.OBSERVE
            await act(setting, action, workspace, ask)

    asyncio.run(gather())
    return workspace


def drafted(name: str, text: SlottedText, task: Task, choices: Sequence[int]) -> Workspace:
    """A workspace that holds this draft."""
    artifact = opened(name)[0].parse(text.reply(choices))
    assert text.read(artifact) == list(choices), (task.id, artifact)
    return Workspace(task, artifact=artifact, version=1)


def margin(first: Sequence[float], second: Sequence[float]) -> float:
    """How many standard errors the mean of `first` lies above that of `second`."""
    spread = math.sqrt(np.var(first) / len(first) + np.var(second) / len(second))
    return float(np.mean(first) - np.mean(second)) / spread


@every_setting
def test_more_evidence_means_fewer_faults(name):
    _, store = opened(name)
    executor = simulated(store, "medium")
    fewer: list[float] = []
    for task, text in sample(name, 2):
        without, with_all = (
            [
                sum(wrong)
                for rollout in range(8)
                if (wrong := faults(name, text, reply(executor, name, Purpose.DRAFT, workspace, rollout))) is not None
            ]
            for workspace in (Workspace(task), everything_at_hand(name, task))
        )
        fewer.append(np.mean(without) - np.mean(with_all))
    assert margin(fewer, [0.0, 0.0]) > 3, "by task, since a task's own difficulty is in both"


@every_setting
def test_a_named_fault_is_mended_more_often_than_an_unnamed_one(name):
    _, store = opened(name)
    executor = simulated(store, "medium")
    mended: dict[bool, list[float]] = {True: [], False: []}
    for task, text in sample(name, 4):
        workspace = drafted(name, text, task, [1] * len(text.slots))
        for rollout in range(4):
            place = rollout % len(text.slots)
            workspace.problems = (text.slots[place].problem,)
            wrong = faults(name, text, reply(executor, name, Purpose.REVISE, workspace, rollout))
            for at, still in enumerate(wrong or ()):
                mended[at == place].append(not still)
    assert margin(mended[True], mended[False]) > 3


@every_setting
@pytest.mark.parametrize("profile", ["weak", "medium", "strong"])
def test_self_review_finds_and_alarms_as_its_profile_says(name, profile):
    _, store = opened(name)
    executor, skill = simulated(store, profile), skill_profile(profile)
    found: dict[bool, list[bool]] = {True: [], False: []}
    for task, text in sample(name, 3):
        own = [slot.problem for slot in text.slots]
        assert len(set(own)) == len(own), f"{task.id}: a problem that is named could be either of two"
        for rollout in range(3):
            choices = faulty_choices(text, generator("review", name, task.id, rollout))
            said = reply(executor, name, Purpose.CHECK, drafted(name, text, task, choices), rollout)
            named = () if said is None else review_problems(said, limit=len(own))
            assert named is not None
            assert set(named) <= set(own), "what a slot calls its problem survives the review"
            if said is not None:
                for problem, choice in zip(own, choices, strict=True):
                    found[choice > 0].append(problem in named)
    for is_fault, rate in ((True, skill.review_hit), (False, skill.review_alarm)):
        error = math.sqrt(rate * (1 - rate) / len(found[is_fault]))
        assert abs(np.mean(found[is_fault]) - rate) <= 3 * error, (is_fault, np.mean(found[is_fault]), rate, error)


def faulty_choices(text: SlottedText, rng: np.random.Generator) -> list[int]:
    """About half of the slots wrong, each in any of its ways."""
    wrong: Callable[[int], int] = lambda n: 1 + int(rng.integers(n))  # noqa: E731
    return [wrong(len(slot.wrong)) if rng.random() < 0.5 else 0 for slot in text.slots]
