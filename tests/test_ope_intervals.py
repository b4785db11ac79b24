"""Intervals of ratios and of refitted estimates: the same statistics as everywhere else, wherever both apply."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.ope import IntervalKind, Refitted, Terms, estimate_policy, interval, logged
from analysis.ope.intervals import mean_terms
from analysis.statistics import Degeneracy, bootstrap_t, resample_counts
from harness_mdp.hashing import generator
from tests.ope_logs import other_target, random_log

COUNTS = resample_counts(12, 2000, 0)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_interval_of_a_mean_is_that_of_an_evaluation(seed: int) -> None:
    values = generator("values", seed).random(12)
    found = interval(mean_terms(values), COUNTS, support=(0, 1))
    assert found == bootstrap_t(values, COUNTS, support=(0, 1))


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_a_ratio_with_equal_denominators_is_a_mean(seed: int) -> None:
    values = generator("values", seed).random(12)
    found = interval(Terms(3.0 * values[:, None], np.full((12, 1), 3.0)), COUNTS)
    expected = bootstrap_t(values, COUNTS)
    assert (found.mean, found.low, found.high) == pytest.approx((expected.mean, expected.low, expected.high))


def test_the_interval_of_a_ratio_covers_as_often_as_it_says() -> None:
    rng = generator("ratio coverage")
    counts = resample_counts(30, 500, 0)
    held = 0
    for _ in range(400):
        weight = rng.gamma(2.0, size=(30, 1))
        value = 0.6 + 0.3 * rng.standard_normal((30, 1))
        found = interval(Terms(weight * value, weight), counts)
        held += found.low <= 0.6 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_a_ratio_scales_with_its_values_and_not_with_its_weights() -> None:
    rng = generator("scale")
    weight, value = rng.random((12, 1)), rng.random((12, 1))
    one = interval(Terms(weight * value, weight), COUNTS)
    other = interval(Terms(weight * value * 50, weight * 5), COUNTS)
    assert (other.mean, other.low, other.high) == pytest.approx((10 * one.mean, 10 * one.low, 10 * one.high))


def test_the_difference_to_itself_is_nothing() -> None:
    values = generator("values").random(12)
    found = interval(mean_terms(values).less(values), COUNTS, support=(-1, 1))
    assert found.mean == pytest.approx(0.0)
    assert found.degeneracy.value == "zero variance"


def test_the_interval_of_a_refitted_estimate_is_quantiles_of_its_draws() -> None:
    draws = np.linspace(0.0, 1.0, 1001)
    found = interval(Refitted(0.4, draws), COUNTS[:1001])
    assert (found.low, found.high) == pytest.approx((0.025, 0.975))
    basic = interval(Refitted(0.4, draws), COUNTS[:1001], kind=IntervalKind.BASIC)
    assert (basic.low, basic.high) == pytest.approx((0.8 - 0.975, 0.8 - 0.025))


def test_an_interval_is_cut_to_what_a_value_can_be_but_keeps_its_estimate() -> None:
    found = interval(Refitted(1.02, np.linspace(0.9, 1.3, 101)), COUNTS[:101], support=(0, 1))
    assert found.high == 1.02
    assert found.low == pytest.approx(0.91)


def test_resamples_without_any_weight_count_against_both_ends() -> None:
    weight = np.zeros((12, 1))
    weight[0] = 1.0
    found = interval(Terms(weight * 0.5, weight), COUNTS, support=(0, 1))
    assert found.mean == 0.5
    assert found.degeneracy is Degeneracy.OPEN_END
    assert (found.low, found.high) == (0, 1)


def test_an_estimate_without_weight_has_no_value() -> None:
    found = interval(Terms(np.zeros((12, 1)), np.zeros((12, 1))), COUNTS, support=(0, 1))
    assert np.isnan(found.mean)
    assert (found.low, found.high) == (0, 1)


@pytest.mark.parametrize("case", ["equal returns", "one rollout a task", "seven to one"])
def test_poor_logs_give_numbers_and_no_nan(case: str) -> None:
    data = random_log(4, tasks=8, rollouts=1 if case == "one rollout a task" else 4)
    if case == "equal returns":
        data = replace(data, returns=np.full(len(data.returns), 0.5))
    if case == "seven to one":
        data = replace(data, returns=(data.task > 0).astype(float))
    value = estimate_policy(logged(data, other_target(data, 4)), draws=200, value_range=(0, 1))
    for estimate in value.estimates:
        assert np.isfinite([estimate.value.mean, estimate.value.low, estimate.value.high]).all()
        assert estimate.value.low <= estimate.value.mean <= estimate.value.high
        assert np.isfinite([estimate.gain.mean, estimate.gain.low, estimate.gain.high]).all()
    wis = next(each for each in value.estimates if each.estimator == "wis")
    if case == "equal returns":
        assert wis.value.mean == pytest.approx(0.5)
