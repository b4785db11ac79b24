"""Exact values of `tabular`: against enumeration by hand, bounds that any optimum keeps, features that say all."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.hashing import generator
from harness_mdp.mdp import ACTIONS, Action, Policy, State, ended, start
from harness_mdp.settings.scripts import decision_point
from harness_mdp.settings.tabular import (
    FeatureTable,
    check_before_submit,
    exact_q,
    exact_value,
    expected_statistic,
    final_probabilities,
    one_step_improvement,
    optimal_policy,
    optimal_q,
    optimal_value,
    state_values,
    statistic_distribution,
    submitted,
    tabular_mdp,
    visit_probabilities,
)
from harness_mdp.settings.tabular.setting import missing_figures
from harness_mdp.settings.tabular.transitions import as_level, following, outcomes
from harness_mdp.settings.tabular.world import LEVELS
from tests.commands import ROOT
from tests.tabular import BEHAVIOURS, SCRIPTS, SETTING, policy, random_table

SHARES = {"easy": 0.2, "standard": 0.6, "hard": 0.2}


def enumerated(pi: Policy, state: State, level: str) -> tuple[float, float]:
    """(V, E[check before submit]) by visiting every history one by one: no arrays, no merging of states."""
    if ended(state) is not None:
        quality = 0.0 if state.artifact is None else 1.0 - missing_figures(state) / 2
        return quality, check_before_submit(state)
    probs = pi.probs(decision_point(SETTING, as_level(state, level)))
    value, checked = 0.0, 0.0
    for action in ACTIONS:
        for outcome in outcomes(state, action) if probs[action] > 0.0 else ():
            weight = probs[action] * outcome.chance[LEVELS.index(level)]
            later = enumerated(pi, following(state, outcome.event), level)
            value, checked = value + weight * later[0], checked + weight * later[1]
    return value, checked


@pytest.mark.parametrize("name", [*SCRIPTS, *BEHAVIOURS])
def test_values_and_process_are_those_of_an_enumeration_of_all_histories(name: str) -> None:
    mdp, pi = tabular_mdp(4), policy(name)
    for level in LEVELS:
        value, checked = enumerated(pi, start(4), level)
        assert exact_value(mdp, pi, [level]) == pytest.approx(value, abs=1e-12)
        assert expected_statistic(mdp, pi, check_before_submit, [level]) == pytest.approx(checked, abs=1e-12)


def test_the_optimum_is_that_of_an_enumeration_of_all_policies() -> None:
    mdp = tabular_mdp(3)

    def best(level_chances: dict[str, float], state: State) -> float:
        """Expected quality of the best course, known to be at one of `level_chances`' difficulties."""
        if ended(state) is not None:
            return 0.0 if state.artifact is None else 1.0 - missing_figures(state) / 2
        found = []
        for action in ACTIONS:
            if not decision_point(SETTING, state).mask[action]:
                continue
            total = 0.0
            for outcome in outcomes(state, action):
                after = following(state, outcome.event)
                joint = {level: share * outcome.chance[LEVELS.index(level)] for level, share in level_chances.items()}
                if len(joint) > 1 and after.evidence:  # the evidence tells the difficulty
                    total += sum(joint[level] * best({level: 1.0}, after) for level in joint)
                elif (chance := sum(joint.values())) > 0.0:
                    total += chance * best({level: each / chance for level, each in joint.items()}, after)
            found.append(total)
        return max(found)

    assert optimal_value(mdp) == pytest.approx(best(SHARES, start(3)), abs=1e-12)


@pytest.mark.parametrize("name", [*SCRIPTS, *BEHAVIOURS])
def test_no_policy_beats_the_optimum_and_one_step_improves(name: str) -> None:
    mdp = tabular_mdp()
    table = mdp.table(policy(name))
    value, improved = exact_value(mdp, table), exact_value(mdp, one_step_improvement(mdp, table))
    assert value <= improved + 1e-12
    assert improved <= optimal_value(mdp) + 1e-12


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_values_of_any_policy_agree_forwards_and_backwards(seed: int) -> None:
    mdp = tabular_mdp(4)
    table = random_table(mdp, generator("any policy", seed))
    shares = np.array(list(SHARES.values()))
    value, q = exact_value(mdp, table), exact_q(mdp, table)
    ends = final_probabilities(mdp, table)
    assert np.allclose(ends.sum(axis=1), 1.0, atol=1e-12)
    assert shares @ ends @ mdp.quality == pytest.approx(value, abs=1e-12)
    assert value == pytest.approx(float((table[0, 0] * q[0, 0]).sum()), abs=1e-12)
    best = np.where(mdp.mask, optimal_q(mdp), -1.0).max(axis=2)
    assert ((table * q).sum(axis=2) <= best + 1e-12).all(), "in every state"
    # Performance difference: V^π' - V^π = Σ_s d^π'(s) Σ_a π'(a|s) (Q^π(s,a) - V^π(s)) (Kakade and Langford, 2002).
    other = random_table(mdp, generator("another policy", seed))
    advantage = (other * q).sum(axis=2) - (table * q).sum(axis=2)
    shift = float((shares[:, None] * visit_probabilities(mdp, other) * advantage).sum())
    assert exact_value(mdp, other) - value == pytest.approx(shift, abs=1e-12)


def test_the_world_is_as_documented() -> None:
    mdp = tabular_mdp()
    value = {name: exact_value(mdp, policy(name)) for name in (*SCRIPTS, *BEHAVIOURS)}
    optimum = optimal_value(mdp)
    assert value["base"] + 0.3 < value["check_revise"] < optimum - 0.1
    assert max(value.values()) == value["check_revise"], "the optimum needs something that no script does"
    best = mdp.table(optimal_policy(mdp))
    assert best[0, 0, Action.OBSERVE] == 1.0
    visits = visit_probabilities(mdp, best)
    # Where the difficulty leads: the tool on easy and standard tasks, straight to the draft on hard ones.
    second = {
        level: ACTIONS[int(best[i, np.flatnonzero(visits[i, mdp.layers[1]])[0] + 1].argmax())]
        for i, level in enumerate(LEVELS)
    }
    assert second == {"easy": Action.CALL_TOOL, "standard": Action.CALL_TOOL, "hard": Action.DRAFT}


def test_the_portfolio_goes_the_optimums_way_far_oftener_than_exploration_around_base() -> None:
    """Share of episodes that used the tool, checked and revised, as the optimum does with most tasks."""
    mdp = tabular_mdp()

    def mended(state: State) -> float:
        return float(state.count(Action.CALL_TOOL) > 0 and state.count(Action.CHECK) > 0 and state.revisions > 0)

    paper, portfolio = (expected_statistic(mdp, policy(name), mended) for name in ("paper", "portfolio"))
    assert 0.0 < 5 * paper < portfolio


def test_forced_check_always_checks_and_base_never_does() -> None:
    mdp = tabular_mdp()
    assert statistic_distribution(mdp, policy("forced_check"), check_before_submit) == {1.0: pytest.approx(1.0)}
    assert statistic_distribution(mdp, policy("base"), check_before_submit) == {0.0: pytest.approx(1.0)}
    assert statistic_distribution(mdp, policy("base"), submitted) == {1.0: pytest.approx(1.0)}
    spread = statistic_distribution(mdp, policy("random"), lambda state: float(state.steps))
    assert list(spread) == sorted(spread)
    assert sum(spread.values()) == pytest.approx(1.0)


def test_features_say_all_that_the_future_depends_on() -> None:
    """States that look the same lead to ones that look the same, with the same chances, and are worth the same."""
    mdp = tabular_mdp()
    q = optimal_q(mdp)
    shares = np.array(list(SHARES.values()))
    following_of: dict[bytes, tuple[dict[tuple[int, bytes], float], np.ndarray]] = {}
    for level in range(len(LEVELS)):
        for row in range(mdp.n_states):
            law: dict[tuple[int, bytes], float] = {}
            # Before any evidence, what is seen does not tell the difficulty: the law is the mean over tasks.
            weights = np.eye(3)[level] if mdp.told[row] else shares
            for action in np.flatnonzero(mdp.mask[row]).tolist():
                for place in range(3):
                    after = int(mdp.successor[row, action, place])
                    for of, weight in enumerate(weights.tolist()):
                        chance = weight * float(mdp.chance[of, row, action, place])
                        if chance > 0.0:
                            final = after >= mdp.n_states
                            looks = (
                                mdp.quality[after - mdp.n_states].tobytes()
                                if final
                                else mdp.features[of, after].tobytes()
                            )
                            law[action, looks] = law.get((action, looks), 0.0) + chance
            known_law, known_q = following_of.setdefault(mdp.features[level, row].tobytes(), (law, q[level, row]))
            assert known_law.keys() == law.keys()
            assert all(abs(known_law[key] - chance) < 1e-12 for key, chance in law.items())
            assert np.allclose(known_q, q[level, row], atol=1e-12)


def test_a_policy_that_differs_where_features_do_not_is_refused() -> None:
    mdp = tabular_mdp(3)
    table = mdp.table(policy("random")).copy()
    table[2, 0] = np.eye(7)[Action.DRAFT]  # hard tasks alone, before anything tells that they are
    with pytest.raises(ValueError, match="same features"):
        FeatureTable("clairvoyant", mdp, table)
    table[:, 0] = np.eye(7)[Action.SUBMIT]
    with pytest.raises(ValueError, match="legal"):
        exact_value(mdp, table)
    with pytest.raises(ValueError, match="levels"):
        exact_value(mdp, policy("base"), ["tricky"])
    with pytest.raises(ValueError, match="horizon 3"):
        optimal_policy(mdp).probs_batch(tabular_mdp(4).batch(0))


def test_values_of_tasks_of_one_difficulty_make_up_the_mean() -> None:
    mdp = tabular_mdp()
    values = state_values(mdp, policy("check_revise"))[:, 0]
    assert [exact_value(mdp, policy("check_revise"), [level]) for level in LEVELS] == values.tolist()
    assert exact_value(mdp, policy("check_revise")) == pytest.approx(float(values @ [0.2, 0.6, 0.2]))
    assert optimal_value(mdp, ["hard"]) >= exact_value(mdp, optimal_policy(mdp), ["hard"]) - 1e-12


DIGEST = """
import hashlib, json
from harness_mdp.settings.tabular import optimal_policy, sample_buffer, tabular_mdp
from tests.tabular import policy
mdp = tabular_mdp(4)
sample = sample_buffer(mdp, policy("portfolio"), seed=3)
parts = (mdp.features, mdp.chance, mdp.successor, mdp.quality, sample.features, sample.action, sample.returns)
told = [hashlib.sha256(part.tobytes()).hexdigest() for part in parts]
print(json.dumps([*told, optimal_policy(mdp).fingerprint]))
"""


def test_the_same_arrays_draws_and_optimum_in_another_process() -> None:
    told = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", DIGEST],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
