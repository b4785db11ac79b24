"""The exact law of `tabular`, its sampler, and the real runner with the simulated executor are one.

Draws are fixed by their seeds, so a figure is the same in every run.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest

from controllers.data import check_steps
from harness_mdp.mdp import ACTIONS, Action, Episode
from harness_mdp.settings.tabular import (
    TabularSample,
    check_before_submit,
    exact_value,
    expected_statistic,
    final_probabilities,
    optimal_policy,
    sample_buffer,
    tabular_mdp,
    visit_probabilities,
)
from harness_mdp.settings.tabular.world import LEVELS
from tests.runs import opened, run, simulated
from tests.tabular import policy, walk

MOST = 4.0
"""Standard errors; beyond them by chance one time in 16,000."""


@cache
def collected(name: str, profile: str) -> list[Episode]:
    """The 100 tasks by the real runner; oftener where checks and revisions are."""
    setting, store = opened("tabular")
    executor = simulated(store, profile)
    pi = optimal_policy(tabular_mdp()) if name == "optimal" else policy(name)
    return run(setting, store.tasks, pi, executor, store.sealed, rollouts=12 if name == "check_revise" else 4)


def errors(found: np.ndarray, expected: float) -> float:
    """How many standard errors of the mean lie between."""
    return float((found.mean() - expected) / (found.std() / math.sqrt(len(found))))


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("base", "medium"),
        ("check_revise", "weak"),
        ("random", "medium"),
        ("portfolio", "strong"),
        ("optimal", "medium"),
    ],
)
def test_the_real_runner_has_the_exact_mean_whatever_the_profile(name: str, profile: str) -> None:
    mdp = tabular_mdp()
    pi = optimal_policy(mdp) if name == "optimal" else policy(name)
    episodes = collected(name, profile)
    returns = np.array([episode.return_ for episode in episodes])
    assert abs(errors(returns, exact_value(mdp, pi))) < MOST
    checked = np.array(
        [any(s.action is Action.CHECK for s in e.steps) and e.steps[-1].action is Action.SUBMIT for e in episodes]
    )
    expected = expected_statistic(mdp, pi, check_before_submit)
    assert abs(checked.mean() - expected) <= MOST * math.sqrt(expected * (1 - expected) / len(checked)) + 1e-12


def test_every_step_of_the_real_runner_is_a_step_of_the_mdp_with_its_chance() -> None:
    """Features, masks, base actions and endings are equal; outcomes come as often as stated, action by action."""
    mdp = tabular_mdp()
    seen, stated, spread = (Counter[tuple[str, str, int]]() for _ in range(3))
    for name, profile in (("random", "medium"), ("portfolio", "strong"), ("check_revise", "weak")):
        for episode in collected(name, profile):
            for level, at, action, outcome in walk(mdp, episode):
                for place, chance in enumerate(mdp.chance[level, at, action].tolist()):
                    for key in ((LEVELS[level], action.label, place), ("all", action.label, place)):
                        seen[key] += place == outcome
                        stated[key] += chance
                        spread[key] += chance * (1 - chance)
    uncertain = [key for key, variance in spread.items() if variance > 5]
    assert {action for _, action, _ in uncertain} == {"draft", "check", "revise"}
    assert {level for level, _, _ in uncertain} == {"all", *LEVELS}
    for key in uncertain:
        assert abs(seen[key] - stated[key]) <= MOST * math.sqrt(spread[key]), (key, seen[key], stated[key])
    assert all(seen[key] == pytest.approx(stated[key]) for key in spread if spread[key] == 0)


@pytest.mark.parametrize("name", ["base", "check_revise", "random", "portfolio"])
def test_many_sampled_episodes_have_the_exact_mean_and_course(name: str) -> None:
    mdp = tabular_mdp()
    table = mdp.table(policy(name))
    sample = sample_buffer(mdp, table, n_tasks=100, rollouts=200, seed=1)
    assert abs(errors(sample.returns, exact_value(mdp, table))) < MOST
    for level, label in enumerate(LEVELS):
        own = sample.returns[sample.level == level]
        assert abs(errors(own, exact_value(mdp, table, [label]))) < MOST
    shares = np.array([0.2, 0.6, 0.2])
    for found, expected in (
        (np.bincount(sample.state, minlength=mdp.n_states), shares @ visit_probabilities(mdp, table)),
        (np.bincount(sample.final, minlength=mdp.n_final), shares @ final_probabilities(mdp, table)),
    ):
        m = sample.n_episodes
        assert (found[expected == 0.0] == 0).all()
        common = expected * m > 20  # enough of them for the normal approximation
        score = (found - expected * m)[common] / np.sqrt(expected * m * (1 - expected) + 1e-9)[common]
        assert np.abs(score).max() < 5.0, "the largest of hundreds"


def episodes_of(sample: TabularSample) -> list[np.ndarray]:
    return np.split(np.arange(sample.n_steps), np.cumsum(sample.lengths)[:-1])


def test_a_sample_is_a_buffer_that_learners_read() -> None:
    mdp = tabular_mdp()
    table = mdp.table(policy("portfolio"))
    sample = sample_buffer(mdp, table, n_tasks=20, rollouts=10, seed=2)
    check_steps(sample)
    assert sample.n_episodes == 200
    assert np.array_equal(np.bincount(sample.task), np.full(20, 10))
    assert np.array_equal(np.bincount(sample.level), [40, 120, 40])
    assert sample.horizons == (6,)
    level = sample.level[sample.episode]
    assert np.array_equal(sample.features, mdp.features[level, sample.state])
    assert np.array_equal(sample.propensities, table[level, sample.state])
    assert (sample.propensity > 0.0).all()
    for steps in episodes_of(sample):
        assert sample.t[steps].tolist() == list(range(1, len(steps) + 1))
        early = len(steps) < mdp.horizon
        assert (sample.action[steps[-1]] == Action.SUBMIT) or not early
        assert (sample.action[steps[:-1]] != Action.SUBMIT).all()
    of = sample.final
    assert np.array_equal(sample.returns, mdp.quality[of])
    counts = np.array([mdp.final_states[final].counts for final in of])
    taken = np.zeros_like(counts)
    np.add.at(taken, (sample.episode, sample.action), 1)
    assert np.array_equal(counts, taken), f"steps of each of {len(ACTIONS)} kinds"


def test_buffers_of_different_seeds_are_independent_draws_and_of_the_same_seed_the_same() -> None:
    mdp = tabular_mdp()
    table = mdp.table(policy("random"))
    one, again, two = (sample_buffer(mdp, table, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.action, again.action)
    assert np.array_equal(one.returns, again.returns)
    assert not np.array_equal(one.returns, two.returns)
    means = np.array([sample_buffer(mdp, table, seed=seed).returns.mean() for seed in range(300)])
    assert abs(errors(means, exact_value(mdp, table))) < MOST
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < MOST / math.sqrt(len(means))
    with pytest.raises(ValueError, match="rollouts"):
        sample_buffer(mdp, table, rollouts=0)
