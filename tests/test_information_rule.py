"""Nothing sealed reaches an event, a state, a prompt or a check: replace every sealed value and only returns change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from controllers.exploration import Uniform
from harness_mdp.executors.protocol import Purpose
from harness_mdp.mdp import Episode
from harness_mdp.settings import open_setting
from harness_mdp.settings.tasks import Sealed, TaskStore
from tests.runs import SETTING_NAMES, run, simulated
from tests.scripted import RecordingExecutor, ScriptedExecutor

DRAFTS = {
    "coding": "```python\ndef solve(*values):\n    return 7\n```",
    "dbbench": '{"sql": "SELECT 1", "answer": null}',
    "knowledge_work": "## Summary\nFine.\n## Findings\n- Total: 7 [T1]\n## Recommendation\n- Decision: wait [M1]",
    "multi_tool": '{"steps": {"guests": 7}, "answer": 7}',
    "planning": '{"schedule": [{"task": "A", "start": 0}, {"task": "B", "start": 4}]}',
    "research": "Halstead [doc-1]",
    "long_memory": "Orbit Flex [S1, 2023-01-31]",
}
"""A parsable draft per setting that was made without any task."""


def other(value: object) -> object:
    """A value of the same shape with every leaf replaced."""
    match value:
        case bool():
            return not value
        case int():
            return value + 7
        case float():
            return value + 7.5 if math.isfinite(value) else 7.5
        case str():
            return f"other {value}"
        case list() | tuple():
            return [other(item) for item in value]
        case dict():
            return {key: other(item) for key, item in value.items()}
        case _:
            return value


def falsified(store: TaskStore) -> dict[str, Sealed]:
    return {identity: Sealed({key: other(v) for key, v in s.values.items()}) for identity, s in store.sealed.items()}


OUTCOME = {"return_", "rubric", "seconds", "eval_status", "maturity", "maturity_events", "steps"}
"""What the scorer computes, wall times, and the steps, which are compared one by one."""


def assert_same_course(one: Episode, two: Episode) -> None:
    for step, twin in zip(one.steps, two.steps, strict=True):
        assert replace(step.event, seconds=0.0) == replace(twin.event, seconds=0.0)
        assert step.action is twin.action
        assert np.array_equal(step.features, twin.features)
        assert np.array_equal(step.mask, twin.mask)
        assert np.array_equal(step.propensities, twin.propensities)
    for name in set(Episode.__dataclass_fields__) - OUTCOME:
        assert getattr(one, name) == getattr(two, name), name


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_sealed_values_decide_returns_and_nothing_else(name: str) -> None:
    setting = open_setting(name)
    store = setting.tasks(seed=0, n=10, path=None)
    courses = []
    for sealed in (store.sealed, falsified(store)):
        executor = RecordingExecutor(simulated(store))
        episodes = run(setting, store.tasks, Uniform(), executor, sealed, rollouts=3, concurrency=1)
        courses.append((episodes, executor.requests))
    (true, asked), (false, asked_again) = courses
    for one, two in zip(true, false, strict=True):
        assert_same_course(one, two)
    assert asked == asked_again
    assert sum(e.return_ for e in true) > sum(e.return_ for e in false), "the scorer does read the sealed values"


@pytest.mark.parametrize("name", sorted(DRAFTS))
def test_an_executor_without_a_task_store_sees_the_same_whatever_is_sealed(name: str) -> None:
    setting = open_setting(name)
    store = setting.tasks(seed=0, n=10, path=None)
    replies = {
        Purpose.DRAFT: DRAFTS[name],
        Purpose.REVISE: DRAFTS[name],
        Purpose.CHECK: "- the result may be wrong",
        Purpose.TOOL: "none",
    }
    courses = []
    for sealed in (store.sealed, falsified(store)):
        executor = ScriptedExecutor(replies)
        courses.append((run(setting, store.tasks, Uniform(), executor, sealed, concurrency=1), executor.requests))
    (true, asked), (false, asked_again) = courses
    assert asked == asked_again
    for one, two in zip(true, false, strict=True):
        assert_same_course(one, two)
