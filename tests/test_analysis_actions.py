"""What is done where: shares by cluster of states, and what a policy would do there."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from analysis.actions import COLLECTED, action_distribution, what_was_learned
from analysis.clusters import state_clusters
from buffers import ReplayBuffer
from controllers.exploration import Uniform
from controllers.saved import load_controller
from harness_mdp.errors import ConfigError, SchemaMismatch, UnusableBuffer
from harness_mdp.mdp import ACTIONS
from tests.analysis_buffers import buffer, study

CELL = ["setting", "cluster", "arm"]


def test_the_actions_of_a_cluster_add_up_and_are_never_more_than_legal():
    table = action_distribution([buffer(), buffer("multi_tool")])
    assert table.groupby(CELL)["share"].sum().to_numpy() == pytest.approx(1.0)
    assert (table["share"] <= table["share_legal"] + 1e-12).all()
    assert set(table["action"]) == {action.label for action in ACTIONS}
    assert table["simulated"].all()


def test_every_step_is_in_one_cluster():
    table = action_distribution(buffer())
    cells = table.drop_duplicates(CELL)
    steps = ReplayBuffer(buffer()).steps_df(phase="collect")
    assert cells.loc[cells["arm"] == COLLECTED, "n_steps"].sum() == len(steps)
    taken = table[table["arm"] == COLLECTED].assign(n=lambda t: t["share"] * t["n_steps"]).groupby("action")["n"].sum()
    counted = steps["action"].cast(str).value_counts()
    assert taken[taken > 0].to_dict() == pytest.approx(dict(counted.iter_rows()))


def test_at_most_so_many_clusters_each_with_a_name_of_its_own():
    table = action_distribution(buffer(), clusters=3)
    names = table.drop_duplicates(["cluster", "state"])
    assert len(names) == names["cluster"].nunique() == names["state"].nunique() == 3
    with pytest.raises(ConfigError, match="1 clusters"):
        action_distribution(buffer(), clusters=1)


def test_a_cluster_s_name_says_what_holds_in_it():
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.integers(0, 2, 400), rng.random(400)]).astype(np.float32)
    action = np.where(features[:, 0] == 1, 6, np.where(features[:, 1] > 0.5, 3, 0)).astype(np.int64)
    grouped = state_clusters(features, action, ("has_artifact", "tokens_used"))
    at = grouped.assign(features)
    for cluster, label in enumerate(grouped.labels):
        own = features[at == cluster]
        for name, operator, value in re.findall(r"(\w+) (=|<=|>) ([\d.]+)", label):
            column = own[:, ("has_artifact", "tokens_used").index(name)]
            slack = 0.01  # labels have two digits
            holds = {
                "=": column == float(value),
                "<=": column <= float(value) + slack,
                ">": column > float(value) - slack,
            }
            assert holds[operator].all()
        assert len(set(action[at == cluster])) == 1
    assert "has_artifact = 1" in grouped.labels


def test_states_without_steps_are_refused():
    with pytest.raises(UnusableBuffer, match="no steps"):
        state_clusters(np.zeros((0, 3), np.float32), np.zeros(0, np.int64), ("a", "b", "c"))


def test_the_uniform_policy_is_uniform_over_what_is_legal():
    table = what_was_learned(buffer(), {"random": Uniform()})
    random = table[table["arm"] == "random"]
    assert random.groupby("cluster")["share"].sum().to_numpy() == pytest.approx(1.0)
    always = random[np.isclose(random["share_legal"], 1.0)]
    for _, cell in always.groupby("cluster"):
        assert cell["share"].to_numpy() == pytest.approx(cell["share"].iloc[0])
    assert (random.loc[random["share_legal"] == 0, "share"] == 0).all()


def test_a_learned_controller_stands_beside_what_was_collected_in_the_same_states():
    controller = load_controller(study().trainings[0].out)
    table = what_was_learned(buffer(), {"bc": controller, "random": Uniform()})
    cells = {arm: own.set_index(["cluster", "action"]) for arm, own in table.groupby("arm")}
    pd.testing.assert_series_equal(cells["bc"]["n_steps"], cells[COLLECTED]["n_steps"])
    # Even cloning of a handful of episodes comes nearer to the behaviour's propensities than chance.
    off = {
        arm: ((cells[arm]["share"] - cells[COLLECTED]["share"]).abs() * cells[arm]["n_steps"]).sum()
        for arm in ("bc", "random")
    }
    assert off["bc"] < off["random"]


def test_a_controller_of_another_setting_is_refused():
    class Narrow(Uniform):
        def probs_batch(self, batch):
            raise ValueError("controller reads 3 features; the state has 31")

    with pytest.raises(SchemaMismatch, match=r"policy odd cannot decide .*reads 3 features"):
        what_was_learned(buffer(), {"odd": Narrow()})
