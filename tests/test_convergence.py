"""Learners come to the exact values of `tabular` as data grow; `experiments.convergence` has the full table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from controllers.config import Method, PlanConfig, QConfig
from experiments.convergence import LEARNERS, behaviour_table, convergence, growing, reach, target_value
from experiments.convergence_config import ConvergenceConfig
from harness_mdp.errors import ConfigError
from harness_mdp.settings.tabular import exact_value, one_step_improvement, optimal_value, tabular_mdp

FEW, MANY = 200, 4000
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def world():
    return tabular_mdp()


@pytest.fixture(scope="module")
def behaviour(world):
    return behaviour_table(world, "optimum")


@pytest.mark.parametrize("method", LEARNERS)
def test_a_learner_comes_to_its_exact_value_as_data_grow(world, behaviour, method):
    few, many = (
        [reach(world, behaviour, growing(method, n), episodes=n, seed=seed) for seed in SEEDS] for n in (FEW, MANY)
    )
    # Means, because one buffer can be lucky or not.
    assert np.mean([each.loss for each in many]) < 0.05
    assert np.mean([each.loss for each in many]) < np.mean([each.loss for each in few]) / 2
    assert np.mean([each.value for each in many]) == pytest.approx(target_value(world, behaviour, method), abs=0.05)


@pytest.mark.parametrize("method", [Method.PLAN, Method.FITTED_Q])
def test_the_loss_is_how_far_the_value_is_below_the_optimum(world, behaviour, method):
    found = reach(world, behaviour, growing(method, FEW), episodes=FEW, seed=3)
    assert found.loss == pytest.approx(optimal_value(world) - found.value, abs=1e-9)


@pytest.mark.parametrize("name", ["scripts", "optimum"])
def test_the_behaviours_have_full_support_and_leave_something_to_gain(world, name):
    table = behaviour_table(world, name)
    legal = np.broadcast_to(world.mask, table.shape)
    assert table[legal].min() > 0.08
    improved = exact_value(world, one_step_improvement(world, table))
    assert exact_value(world, table) + 0.1 < improved < optimal_value(world) - 0.005


def test_what_is_configured_grows_with_the_data():
    small, large = growing(Method.PLAN, 100), growing(Method.PLAN, 10_000)
    assert isinstance(small, PlanConfig)
    assert isinstance(large, PlanConfig)
    assert (small.cells, large.cells) == (20, 200)
    leaves = [growing(Method.FITTED_Q, n) for n in (100, 8000)]
    assert [each.leaf_steps for each in leaves if isinstance(each, QConfig)] == [2, 10]


def test_the_table_says_exact_values_and_the_preset_beside():
    config = ConvergenceConfig(sizes=[100], methods=["one_step"], seeds=1, presets_up_to=100)
    text = convergence(config, "scripts")
    assert "`one_step` (exact: 0.9141)" in text
    row = text.strip().splitlines()[-1]
    assert row.startswith("| 100 | 0.")
    assert all(cell.strip() for cell in row.strip("|").split("|"))


@pytest.mark.parametrize(
    ("changes", "behaviour_name", "message"),
    [
        ({"sizes": [40]}, "scripts", "sizes holds 40; expected at least 100"),
        ({"methods": ["aw"]}, "scripts", "methods holds 'aw'; expected some of plan, fitted_q, one_step"),
        ({"methods": []}, "scripts", "sizes or methods is empty"),
        ({"seeds": 0}, "scripts", "seeds=0; expected at least 1"),
        ({}, "nobody", "behaviours holds 'nobody'; expected some of scripts, optimum"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(changes, behaviour_name, message):
    with pytest.raises(ConfigError, match=message):
        convergence(ConvergenceConfig(**changes), behaviour_name)


@pytest.mark.parametrize("name", ["scripts", "optimum"])
def test_the_page_has_a_place_for_the_tables(name):
    page = (Path(__file__).parent.parent / "docs" / "tabular.md").read_text()
    assert page.index(f"<!-- convergence_{name}: begin -->") < page.index(f"<!-- convergence_{name}: end -->")
