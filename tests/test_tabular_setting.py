"""The setting `tabular` is a setting like any other: tasks, replies, rubric, the commands, the information rule."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buffers import ReplayBuffer
from buffers.verify import verify
from controllers.exploration import Uniform
from experiments.config import EvaluateConfig, MethodConfig, SettingConfig, SimulatedConfig, TrainConfig
from experiments.evaluation import comparison_of, evaluate
from experiments.replay import behaviour_policies
from experiments.training import train
from harness_mdp.errors import ConfigError
from harness_mdp.settings import SETTINGS, open_setting
from harness_mdp.settings.prompts import Unparsable
from harness_mdp.settings.tabular import Tabular
from harness_mdp.settings.tabular.tasks import TEMPLATES
from harness_mdp.settings.tasks import split_tasks
from tests.commands import command
from tests.runs import opened, run, simulated
from tests.scripted import RecordingExecutor
from tests.tabular import SETTING
from tests.test_information_rule import assert_same_course, falsified


def test_it_opens_by_name_and_stands_apart_from_the_settings_of_real_tools() -> None:
    assert isinstance(open_setting("tabular"), Tabular)
    assert "tabular" not in SETTINGS
    with pytest.raises(ConfigError, match="tabular"):
        open_setting("nope")


def test_a_hundred_tasks_are_20_easy_60_standard_20_hard_of_five_templates() -> None:
    _, store = opened("tabular")
    assert Counter(task.difficulty for task in store.tasks) == {"easy": 20, "standard": 60, "hard": 20}
    assert Counter(task.template for task in store.tasks) == dict.fromkeys(TEMPLATES, 20)
    evaluation = [task for task in split_tasks(store.tasks) if task.split == "eval"]
    assert Counter(task.difficulty for task in evaluation) == {"easy": 4, "standard": 12, "hard": 4}


def test_the_reference_scores_one_and_each_missing_figure_costs_a_half() -> None:
    async def quality(choices: list[int]) -> set[float]:
        found = set()
        for task in store.tasks:
            text = store.answers[task.id].text
            draft = SETTING.parse(text.reply(choices))
            assert draft == text.render(choices)
            criteria = await SETTING.criteria(task, store.sealed[task.id], draft)
            found.add(sum(each.score for each in criteria) / len(criteria))
        return found

    _, store = opened("tabular")
    for choices, expected in (([0, 0], 1.0), ([0, 1], 0.5), ([1, 0], 0.5), ([1, 1], 0.0)):
        assert asyncio.run(quality(choices)) == {expected}


@settings(max_examples=50)
@given(st.text() | st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers() | st.floats() | st.text()).map(str))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    try:
        draft = SETTING.parse(reply)
    except Unparsable:
        return
    assert SETTING.parse(draft) == draft


@pytest.mark.parametrize("figure", [999, 10_000, -1234, 1234.0, True, None, "1234", [1234]])
def test_a_figure_of_another_shape_is_refused(figure: object) -> None:
    with pytest.raises(Unparsable, match="four digits"):
        SETTING.parse(json.dumps({"a": 1234, "b": figure}))


def test_sealed_values_decide_returns_and_nothing_else() -> None:
    store = SETTING.tasks(seed=0, n=10, path=None)
    courses = []
    for sealed in (store.sealed, falsified(store)):
        executor = RecordingExecutor(simulated(store))
        courses.append((run(SETTING, store.tasks, Uniform(), executor, sealed, rollouts=3), executor.requests))
    (true, asked), (false, asked_again) = courses
    assert asked == asked_again
    assert max(episode.return_ for episode in true) == 1.0
    assert {episode.return_ for episode in false} == {0.0}
    for one, two in zip(true, false, strict=True):
        assert_same_course(one, two)


def test_collect_verify_train_evaluate(tmp_path: Path) -> None:
    where, few = str(tmp_path / "buffer"), SettingConfig(name="tabular", tasks=20)
    command("harness_mdp.collect", "setting=tabular", "setting.tasks=20", "rollouts=3", f"buffer={where}")
    buffer = ReplayBuffer(where)
    report = verify(buffer, open_setting, policy_for=behaviour_policies(buffer))
    assert report.ok
    assert report.episodes == 48
    train(TrainConfig(SettingConfig(name="tabular"), MethodConfig("aw"), buffer=where, out=str(tmp_path / "aw")))
    arms = ["base", "check_revise", str(tmp_path / "aw")]
    done = evaluate(EvaluateConfig(few, SimulatedConfig(), buffer=where, policies=arms, rollouts=2), quiet=True)
    assert "tabular" in set(comparison_of([done]).rows["setting"])
