"""Intervals over tasks, sign flips, Holm: known answers, identities, and coverage on simulated tasks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analysis.statistics import (
    Degeneracy,
    bootstrap_t,
    bootstrap_t_rows,
    holm,
    ratio_task_values,
    resample_counts,
    sign_flip_p,
    task_means,
)

COUNTS = resample_counts(20, 2000, seed=0)


def test_tasks_weigh_equally_whatever_their_number_of_episodes():
    means = task_means(np.array([1.0, 1.0, 1.0, 0.0]), np.array([0, 0, 0, 1]), 2)
    assert means.tolist() == [1.0, 0.0]


def test_a_task_without_a_value_is_refused():
    with pytest.raises(ValueError, match="1 of 3 tasks"):
        task_means(np.array([1.0, 0.0]), np.array([0, 2]), 3)


def test_resamples_draw_n_tasks_each_uniformly_and_reproducibly():
    assert (COUNTS.sum(axis=1) == 20).all()
    assert np.abs(COUNTS.mean(axis=0) - 1).max() < 0.1
    assert COUNTS.var() == pytest.approx(0.95, abs=0.02)  # multinomial: 1 - 1/n
    assert (resample_counts(20, 2000, seed=0) == COUNTS).all()
    assert not (resample_counts(20, 2000, seed=1) == COUNTS).all()


def test_matrix_form_is_the_textbook_bootstrap_t():
    values = np.random.default_rng(3).normal(0.1, 0.2, 20)
    t = []
    for row in COUNTS:
        drawn = np.repeat(values, row.astype(int))
        t.append((drawn.mean() - values.mean()) / (drawn.std(ddof=1) / np.sqrt(20)))
    size = np.quantile(np.abs(t), 0.95, method="inverted_cdf")
    error = values.std(ddof=1) / np.sqrt(20)
    interval = bootstrap_t(values, COUNTS)
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - size * error)
    assert interval.high == pytest.approx(values.mean() + size * error)
    assert not interval.degeneracy


@settings(max_examples=60, deadline=None)
@given(
    values=arrays(np.float64, 20, elements=st.floats(-1, 1).map(lambda x: round(x, 3))),
    scale=st.sampled_from([-1.0, 0.5, 1e-6, 1e6]),
    shift=st.sampled_from([0.0, 0.25, -10.0]),
)
def test_interval_contains_the_mean_and_follows_scale_and_shift(values, scale, shift):
    interval = bootstrap_t(values, COUNTS)
    assert interval.low <= interval.mean <= interval.high
    if interval.degeneracy:
        return
    # A reflection swaps the ends; order statistics of 2000 draws are not exactly symmetric.
    moved = bootstrap_t(values * abs(scale) + shift * abs(scale), COUNTS)
    assert moved.low == pytest.approx((interval.low + shift) * abs(scale), rel=1e-6, abs=1e-9 * abs(scale))
    assert moved.high == pytest.approx((interval.high + shift) * abs(scale), rel=1e-6, abs=1e-9 * abs(scale))


# Clopper-Pearson at 97.5 %, none and one of 20: tables of the binomial
NONE_OF_20, ONE_OF_20 = 0.1684, 0.2487


@pytest.mark.parametrize("value", [0.0, 0.1, -1.0])
def test_equal_values_bound_how_often_others_could_differ_and_say_so(value: float):
    interval = bootstrap_t(np.full(20, value), COUNTS, support=(-1, 1))
    assert interval.mean == pytest.approx(value)
    assert interval.low == pytest.approx(value - NONE_OF_20 * (value + 1), abs=1e-4)
    assert interval.high == pytest.approx(value + NONE_OF_20 * (1 - value), abs=1e-4)
    assert interval.degeneracy is Degeneracy.ZERO_VARIANCE


def test_equal_values_of_no_known_range_bound_nothing():
    interval = bootstrap_t(np.full(20, 0.1), COUNTS)
    assert (interval.low, interval.high) == (-np.inf, np.inf)


def test_one_gain_in_twenty_bounds_how_often_others_could_gain_and_says_so():
    values = np.zeros(20)
    values[7] = 0.5
    interval = bootstrap_t(values, COUNTS, support=(-1, 1))
    # A third of the resamples are all zeros: the spread does not bound how large the mean may be.
    assert interval.degeneracy is Degeneracy.OPEN_END
    assert interval.high == pytest.approx(ONE_OF_20, abs=1e-4)
    assert -0.2 < interval.low < 0.025
    mirrored = bootstrap_t(-values, COUNTS, support=(-1, 1))
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low))


def test_many_rows_at_once_are_the_rows_one_by_one():
    rng = np.random.default_rng(5)
    rows = np.concatenate([rng.normal(0, 1, (70, 20)), rng.binomial(1, 0.05, (70, 20)), np.zeros((2, 20))])
    together = bootstrap_t_rows(rows, COUNTS, support=(-4, 4))
    for row, interval in zip(rows, together, strict=True):
        alone = bootstrap_t(row, COUNTS, support=(-4, 4))
        assert (interval.low, interval.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
        assert interval.degeneracy is alone.degeneracy


def test_an_interval_stays_within_what_a_mean_can_be():
    values = np.array([0.0] * 3 + [1.0] * 17)
    interval = bootstrap_t(values, COUNTS, support=(0, 1))
    assert 0 <= interval.low < interval.high <= 1


def test_fewer_than_two_tasks_and_foreign_counts_are_refused():
    with pytest.raises(ValueError, match="n >= 2"):
        bootstrap_t(np.array([1.0]), resample_counts(1, 10, 0))
    with pytest.raises(ValueError, match="19 task values"):
        bootstrap_t(np.zeros(19), COUNTS)


@pytest.mark.parametrize(
    ("draw", "mean", "most"),
    [
        pytest.param(lambda rng: rng.normal(0.1, 0.2, 20), 0.1, 0.985, id="normal"),
        pytest.param(
            lambda rng: rng.binomial(9, 0.1, 20) / 9 - rng.binomial(9, 0.05, 20) / 9, 0.05, 0.985, id="paired"
        ),
        pytest.param(lambda rng: rng.binomial(9, 0.02, 20) / 9, 0.02, 1.0, id="rare gains: wide, never short"),
    ],
)
def test_coverage_at_twenty_tasks(draw, mean: float, most: float):
    rng = np.random.default_rng(11)
    counts = resample_counts(20, 999, seed=5)
    found = bootstrap_t_rows(np.array([draw(rng) for _ in range(500)]), counts, support=(-1, 1))
    covered = np.mean([interval.low <= mean <= interval.high for interval in found])
    assert 0.915 <= covered <= most  # 0.95 with a standard error of 0.01


def brute_force_p(values: np.ndarray) -> float:
    sums = [
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=len(values))
    ]
    return float(np.mean([total >= abs(values.sum()) - 1e-12 for total in sums]))


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(1, 9), elements=st.sampled_from([-0.5, -0.3, -0.1, 0.0, 0.1, 0.2, 0.3])))
def test_p_is_the_share_of_sign_patterns_at_least_as_extreme(values):
    assert sign_flip_p(values) == pytest.approx(brute_force_p(values))


def test_p_of_known_cases():
    assert sign_flip_p(np.zeros(20)) == 1.0
    assert sign_flip_p(np.full(5, 0.1)) == 2 / 2**5
    assert sign_flip_p(np.full(20, 0.1)) == 2 / 2**20
    assert sign_flip_p(np.array([0.3, -0.3])) == 1.0


def test_many_tasks_are_sampled_and_p_is_never_zero():
    assert sign_flip_p(np.full(60, 0.1), draws=999) == 1 / 1000
    values = np.random.default_rng(2).normal(0.05, 0.2, 60)
    first = sign_flip_p(values, draws=20_000, seed=1)
    assert first == sign_flip_p(values, draws=20_000, seed=1)
    # close to the t test, which agrees with the permutation test at n = 60
    from scipy.stats import ttest_1samp

    assert first == pytest.approx(ttest_1samp(values, 0).pvalue, abs=0.015)


def test_sampled_p_agrees_with_the_exact_one():
    values = np.random.default_rng(4).normal(0.08, 0.2, 20)
    padded = np.concatenate([values, np.full(1, 1e-12)])  # a 21st task that changes nothing
    assert sign_flip_p(padded, draws=40_000) == pytest.approx(sign_flip_p(values), abs=0.01)


def test_holm_of_a_textbook_family():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]


def test_holm_leaves_out_what_was_not_tested():
    adjusted = holm(np.array([np.nan, 0.02, 0.5]))
    assert np.isnan(adjusted[0])
    assert adjusted[1:].tolist() == [0.04, 0.5]
    assert np.isnan(holm(np.array([np.nan]))).all()


@settings(max_examples=50, deadline=None)
@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 1)))
def test_holm_never_lowers_a_p_and_keeps_the_order(p):
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()


def test_rates_pool_applicable_episodes():
    fired, applicable = np.array([2.0, 0.0, 1.0, 0.0]), np.array([3.0, 0.0, 3.0, 2.0])
    assert ratio_task_values(fired, applicable).mean() == pytest.approx(3 / 8)
    assert np.isnan(ratio_task_values(np.zeros(3), np.zeros(3))).all()


def test_rate_is_a_task_mean_when_every_task_has_as_many_applicable_episodes():
    fired = np.array([3.0, 1.0, 0.0, 2.0])
    assert ratio_task_values(fired, np.full(4, 3.0)) == pytest.approx(fired / 3)


def test_error_of_a_rate_is_that_of_resampled_ratios():
    rng = np.random.default_rng(8)
    applicable = rng.integers(0, 10, 20).astype(float)
    fired = rng.binomial(applicable.astype(int), 0.3).astype(float)
    resampled = (COUNTS @ fired) / (COUNTS @ applicable)
    error = ratio_task_values(fired, applicable).std(ddof=1) / np.sqrt(20)
    assert error == pytest.approx(resampled.std(), rel=0.15)
