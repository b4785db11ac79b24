"""What a controller learned: a tree with its fidelity, the states where it differs from base, and the command."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buffers import ReplayBuffer
from controllers.config import AWConfig, Method, PlanConfig
from controllers.data import StepArrays
from controllers.explain import choices, differences, explain
from controllers.learners import learn
from controllers.presets import preset
from controllers.readable_tree import fit_tree
from controllers.saved import save_controller
from experiments.collection import collect
from experiments.config import CollectConfig, PortfolioPolicyConfig, SettingConfig, SimulatedConfig
from experiments.explain import LINEAR_VALUES, OWN_VALUES, PLANNED_VALUES, explain_policies
from experiments.explain_config import ExplainConfig
from harness_mdp.errors import ConfigError, InputError, UnusableBuffer
from harness_mdp.hashing import generator
from harness_mdp.mdp import Action, DecisionBatch
from harness_mdp.settings import open_setting
from tests.commands import command
from tests.ope_logs import random_log
from tests.saved_controllers import manifest

NAMES = ("drafted", "checked", "tokens_used", "task_number")


def log(n_tasks: int = 20, per_task: int = 30, seed: int = 0) -> StepArrays:
    """One-step episodes: base drafts, then submits; `tokens_used` tells the same as `drafted`."""
    rng = generator("explained log", n_tasks, per_task, seed)
    n = n_tasks * per_task
    task = np.repeat(np.arange(n_tasks), per_task)
    drafted, checked = rng.random(n) < 0.7, rng.random(n) < 0.5
    features = np.stack([drafted, checked & drafted, 0.1 * drafted + 0.05, task / n_tasks], axis=1)
    mask = np.zeros((n, 7), dtype=np.bool_)
    mask[:, [Action.OBSERVE, Action.DRAFT]] = True
    mask[:, [Action.CHECK, Action.REVISE, Action.SUBMIT]] = drafted[:, None]
    legal = mask / mask.sum(axis=1, keepdims=True)
    return StepArrays(
        features=features.astype(np.float32),
        mask=mask,
        action=np.array([rng.choice(7, p=row) for row in legal]),
        base_action=np.where(drafted, int(Action.SUBMIT), int(Action.DRAFT)),
        propensities=legal,
        t=np.ones(n, dtype=np.int64),
        episode=np.arange(n),
        returns=rng.random(n),
        task=task,
    )


class Rule:
    """Takes the action that a function of the stored states gives, with probability `sure`."""

    name = fingerprint = "rule"

    def __init__(self, choose, sure: float = 1.0) -> None:
        self.choose, self.sure = choose, sure

    def probs(self, point):
        raise NotImplementedError

    def probs_batch(self, batch: DecisionBatch) -> np.ndarray:
        rest = batch.mask / batch.mask.sum(axis=1, keepdims=True)
        return self.sure * np.eye(7)[self.choose(batch)] + (1 - self.sure) * rest


def as_base(batch: DecisionBatch) -> np.ndarray:
    return batch.base_action


def check_first(batch: DecisionBatch) -> np.ndarray:
    """Base, and a check where it would submit what is not checked."""
    unchecked = (batch.base_action == Action.SUBMIT) & (batch.features[:, 1] == 0)
    return np.where(unchecked, int(Action.CHECK), batch.base_action)


def by_task(batch: DecisionBatch) -> np.ndarray:
    """Something else in every task, which no tree can know of a task that it has not seen."""
    number = np.rint(batch.features[:, 3] * 20).astype(int)
    return np.where(generator("by task").random(64)[number] < 0.5, int(Action.OBSERVE), int(Action.DRAFT))


def test_a_rule_that_a_tree_can_hold_is_held_whole() -> None:
    told = explain(log(), Rule(check_first), NAMES)
    assert told.fidelity is not None
    assert (told.fidelity.agreement, told.fidelity.where_it_differs) == (1.0, 1.0)
    assert told.certainty == 1.0
    found = {(leaf.conditions, Action(leaf.action), leaf.agreement) for leaf in told.tree.leaves()}
    assert (("checked = 0", "base would submit"), Action.CHECK, 1.0) in found
    assert len(told.tree.text().splitlines()) == 4
    assert re.search(r"base would submit: check +\([\d,]+ states, 100% so\)", told.tree.text())
    assert "tokens_used" not in told.tree.text()  # structure says the same


def test_a_controller_that_does_as_base_is_one_and_differs_nowhere() -> None:
    told = explain(log(), Rule(as_base), NAMES)
    assert told.differences.empty
    assert told.fidelity is not None
    assert told.fidelity.base == 1.0
    assert np.isnan(told.fidelity.where_it_differs)


def test_a_controller_that_does_one_thing_is_a_tree_of_one_leaf() -> None:
    told = explain(log(), Rule(lambda batch: np.full(len(batch), int(Action.OBSERVE))), NAMES)
    assert re.fullmatch(r"observe  \(600 states, 100% so\)", told.tree.text())
    assert set(told.differences["state"]) == {"all states"}
    assert told.differences["n_states"].sum() == 600


def test_fidelity_is_that_of_tasks_the_tree_has_not_seen() -> None:
    told = explain(log(), Rule(by_task), NAMES, leaves=40)
    data, choice = (
        log(),
        choices(Rule(by_task).probs_batch(DecisionBatch(log().features, log().mask, log().base_action)), log().mask),
    )
    seen = told.tree.actions(data.features, data.mask, data.base_action) == choice
    assert seen.mean() > 0.99
    assert told.fidelity is not None
    assert told.fidelity.agreement < 0.8


def test_one_task_has_a_tree_and_no_fidelity() -> None:
    assert explain(log(n_tasks=1), Rule(check_first), NAMES).fidelity is None


def test_certainty_is_the_probability_of_what_is_shown() -> None:
    told = explain(log(), Rule(as_base, sure=0.8), NAMES)
    assert 0.8 < told.certainty < 1.0


def test_differences_count_states_tasks_and_what_the_log_took_and_weigh_them_by_q() -> None:
    data = log()
    values = generator("values").random((600, 7))
    values[:, Action.SUBMIT] = np.where(np.arange(600) < 300, values[:, Action.SUBMIT], -np.inf)
    told = explain(data, Rule(check_first), NAMES, values=values).differences
    differs = (data.base_action == Action.SUBMIT) & (data.features[:, 1] == 0)
    assert told["n_states"].sum() == differs.sum()
    row = told.iloc[0]
    assert (row["base_action"], row["action"]) == ("submit", "check")
    assert row["share"] == pytest.approx(row["n_states"] / 600)
    assert row["n_tasks"] == len(np.unique(data.task[differs]))
    assert told["n_taken"].sum() == (data.action[differs] == Action.CHECK).sum()
    known = differs & (np.arange(600) < 300)
    assert told["n_valued"].sum() == known.sum()
    gain = (values[:, Action.CHECK] - values[:, Action.SUBMIT])[known].mean()
    assert np.average(told["advantage"], weights=told["n_valued"]) == pytest.approx(gain)


def test_without_values_there_are_no_advantages() -> None:
    told = explain(log(), Rule(check_first), NAMES).differences
    assert told["advantage"].isna().all()
    assert (told["n_valued"] == 0).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), leaves=st.integers(2, 20))
def test_a_tree_never_does_what_is_illegal_and_every_state_has_a_leaf(seed: int, leaves: int) -> None:
    seen, new = random_log(seed), random_log(seed + 1, tasks=9)
    tree = fit_tree(seen.features, seen.base_action, seen.action, ("a", "b", "c"), leaves)
    told = tree.actions(new.features, new.mask, new.base_action)
    legal = new.mask[np.arange(len(told)), told]
    assert (legal | (told == new.base_action)).all()
    places = tree.place(new.features, new.base_action)
    assert 0 <= places.min() <= places.max() < len(tree.leaves()) <= leaves
    assert sum(leaf.n_states for leaf in tree.leaves()) == len(seen.action)
    counts = np.bincount(tree.place(seen.features, seen.base_action), minlength=len(tree.leaves()))
    assert counts.tolist() == [leaf.n_states for leaf in tree.leaves()]


def test_the_same_states_give_the_same_tree_in_any_order() -> None:
    data = log()
    order = generator("another order").permutation(600)
    choice = check_first(DecisionBatch(data.features, data.mask, data.base_action))
    first = fit_tree(data.features, data.base_action, choice, NAMES)
    second = fit_tree(data.features[order], data.base_action[order], choice[order], NAMES)
    assert first.text() == second.text()


def test_what_does_not_fit_is_refused() -> None:
    data = log()
    with pytest.raises(ConfigError, match="1 leaves"):
        explain(data, Rule(as_base), NAMES, leaves=1)
    with pytest.raises(ValueError, match="3 names for 4 features"):
        explain(data, Rule(as_base), NAMES[:3])
    tree = fit_tree(data.features, data.base_action, data.base_action, NAMES)
    with pytest.raises(ValueError, match="values"):
        differences(data, data.base_action, tree, np.zeros((3, 7)))
    with pytest.raises(UnusableBuffer, match="no steps"):
        explain(log(per_task=0), Rule(as_base), NAMES)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tabular buffer of 32 training tasks, and two controllers that learned from it."""
    root, setting = tmp_path_factory.mktemp("explain"), SettingConfig(name="tabular", tasks=40)
    policy, buffer = PortfolioPolicyConfig(), f"{root}/buffer"
    collect(
        CollectConfig(setting=setting, executor=SimulatedConfig(), policy=policy, buffer=buffer, rollouts=8), quiet=True
    )
    arrays, about = ReplayBuffer(buffer).tensors("tabular"), open_setting("tabular")
    for config in (AWConfig(method=Method.BC, epochs=3), PlanConfig(members=1), preset(Method.AW_LINEAR)):
        learned = learn(arrays, config)
        made = manifest(
            method=config.method.value,
            feature_schema_id=about.schema.id,
            feature_names=about.schema.names,
            settings={about.name: about.version},
        )
        save_controller(root / config.method.value, learned.controller, made)
    return root


def test_the_command_shows_tree_fidelity_and_differences_and_that_they_are_simulated(place: Path) -> None:
    out, _ = command("harness_mdp.explain", f"buffer={place}/buffer", f"policy={place}/plan", "rows=1")
    assert "counts are shares of the horizon (open_problems: of 5)" in out
    for word in (
        f"== {place}/plan",
        "Fidelity: a tree of this size agrees",
        "differences from base, simulated",
        "rows=",
        "by its own Q",
    ):
        assert word in out
    assert re.search(r"\(\d+ states, \d+% so\)", out)


def test_controllers_and_scripts_are_explained_alike(place: Path) -> None:
    asked = [f"{place}/bc", f"{place}/plan", f"{place}/aw_linear", "check_revise", "base"]
    told = explain_policies(ExplainConfig(buffer=f"{place}/buffer", policies=asked))
    by_name = {each.name: each for each in told.policies}
    assert by_name[f"{place}/plan"].values_of == OWN_VALUES
    assert by_name[f"{place}/bc"].values_of == by_name["check_revise"].values_of == PLANNED_VALUES
    assert by_name[f"{place}/aw_linear"].values_of == LINEAR_VALUES
    assert by_name[f"{place}/bc"].explanation.certainty < 1
    assert by_name["base"].explanation.differences.empty
    rule = by_name["check_revise"].explanation
    assert set(rule.differences["action"]) <= {"check", "revise"}
    assert rule.differences["advantage"].notna().any()
    assert told.simulated


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"policies": ["nope"]}, "nope"),
        ({"policies": []}, "policies is empty"),
        ({"policies": ["base", "base"]}, "twice"),
        ({"leaves": 1}, "leaves=1"),
        ({"rows": 0}, "rows=0"),
        ({"split": "nope"}, "split=nope"),
    ],
)
def test_what_cannot_be_is_refused_by_name(place: Path, changes: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        explain_policies(ExplainConfig(**{"buffer": f"{place}/buffer", "policies": ["base"], **changes}))


def test_a_folder_without_a_buffer_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing"):
        explain_policies(ExplainConfig(buffer=f"{tmp_path}/nothing", policies=["base"]))
