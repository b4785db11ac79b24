"""Trajectory advantages, and what a buffer without contrast is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.advantages import trajectory_advantages
from controllers.config import AWConfig, Baseline
from controllers.slack import measure_slack
from harness_mdp.errors import ConfigError, UnusableBuffer

# Task 0: 0.2, 0.8, 0.5; task 1: one rollout; task 2: two of the same return.
RETURNS = np.array([0.2, 0.9, 0.8, 0.4, 0.5, 0.4])
TASK = np.array([0, 1, 0, 2, 0, 2])


def test_task_mean_by_hand():
    expected = [-0.3, 0.0, 0.3, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(trajectory_advantages(RETURNS, TASK, Baseline.TASK_MEAN), expected, atol=1e-12)


def test_leave_one_out_by_hand():
    # The others of 0.2 are 0.8 and 0.5, mean 0.65; of 0.8, mean 0.35; of 0.5, mean 0.5.
    expected = [-0.45, 0.0, 0.45, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(trajectory_advantages(RETURNS, TASK, Baseline.LEAVE_ONE_OUT), expected, atol=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=12).filter(
        lambda rows: len({task for task, _ in rows}) < len(rows)
    )
)
def test_leave_one_out_is_the_return_above_the_mean_of_the_others(rows):
    task, returns = np.array([k for k, _ in rows]), np.array([g for _, g in rows])
    found = trajectory_advantages(returns, task, Baseline.LEAVE_ONE_OUT)
    for i, (k, g) in enumerate(rows):
        others = [other for j, (same, other) in enumerate(rows) if same == k and j != i]
        assert found[i] == pytest.approx(g - np.mean(others) if others else 0.0, abs=1e-9)


def test_slack_by_hand():
    slack = measure_slack(RETURNS, TASK)
    assert slack.slack == pytest.approx((0.3 + 0 + 0) / 3)
    assert (slack.n_tasks, slack.n_episodes, slack.n_single, slack.n_flat, slack.n_contrast) == (3, 6, 1, 1, 1)
    single, flat = slack.remarks()
    assert "1 of 3 tasks have one rollout" in single
    assert "1 of 3 tasks scored the same" in flat


def test_task_indices_that_do_not_occur_are_no_tasks():
    assert measure_slack(np.array([0.0, 1.0]), np.array([4, 4])).n_tasks == 1


def test_a_buffer_with_contrast_everywhere_needs_no_remark():
    assert measure_slack(np.array([0.0, 1.0, 0.5, 0.25]), np.array([0, 0, 1, 1])).remarks() == ()


def test_zero_slack_is_said_aloud():
    (remark,) = measure_slack(np.full(4, 0.1 + 0.2), np.array([0, 0, 1, 1])).remarks()
    assert "slack is 0" in remark
    assert "each of 2 tasks" in remark


@pytest.mark.parametrize("baseline", Baseline)
def test_one_rollout_per_task_is_refused_with_numbers_and_remedy(baseline):
    with pytest.raises(UnusableBuffer, match=r"3 tasks with one rollout each \(3 episodes\).*rollouts=2.*method=bc"):
        trajectory_advantages(np.array([0.1, 0.5, 1.0]), np.array([0, 1, 2]), baseline)


def test_no_episodes_are_refused():
    with pytest.raises(UnusableBuffer, match="no episodes"):
        trajectory_advantages(np.zeros(0), np.zeros(0, np.int64), Baseline.TASK_MEAN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": 0.0}, "beta is 0.0"),
        ({"epochs": 0}, "epochs is 0"),
        ({"entropy": float("nan")}, "entropy is nan"),
        ({"weight_min": 2.0, "weight_max": 1.0}, "weight_min is 2.0 and weight_max 1.0"),
        ({"method": "magic"}, "method is 'magic'; expected one of aw, bc"),
        ({"baseline": "median"}, "expected one of task_mean, leave_one_out"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(changes, message):
    with pytest.raises(ConfigError, match=message):
        AWConfig(**changes)
