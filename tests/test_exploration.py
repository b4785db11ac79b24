"""Exploration policies: exact propensities, never illegal, and the frequencies they promise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from controllers.exploration import Epsilon, Explore, Portfolio, Uniform
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import generator
from harness_mdp.mdp import (
    Action,
    Artifact,
    Budgets,
    CheckResult,
    DecisionBatch,
    DecisionPoint,
    Event,
    LegalRules,
    Needs,
    ToolResult,
    fold,
    legal_mask,
    start,
)
from harness_mdp.runner import draw_action
from harness_mdp.settings.scripts import SCRIPTS, ScriptPolicy

RULES = LegalRules(offers_retrieve=True, tool_needs=Needs.ARTIFACT)
DRAWS = 20_000

V1, V2 = Artifact(1, "a" * 64, 400), Artifact(2, "b" * 64, 420)
HISTORY = (
    Event(Action.OBSERVE, evidence=("e1",)),
    Event(Action.RETRIEVE, evidence=("e2", "e3")),
    Event(Action.DRAFT, artifact=V1),
    Event(Action.CHECK, check=CheckResult(0.5, 1, 1, 2, ("a figure is wrong",))),
    Event(Action.REVISE, artifact=V2),
    Event(Action.CALL_TOOL, tool=ToolResult("tests", True, True, 2, 3, 4, ("case 2 fails",))),
)


def script(name: str) -> ScriptPolicy:
    return ScriptPolicy(name, "made up", 1, RULES, SCRIPTS[name])


def points() -> list[DecisionPoint]:
    """The decision points of an episode that drafts, checks, revises and runs a tool."""
    made = []
    for state in fold(HISTORY, start(10, Budgets())):
        mask = legal_mask(RULES, state)
        made.append(DecisionPoint(state, np.zeros(3, np.float32), mask, SCRIPTS["base"](state, RULES)))
    return made


def batch(of: list[DecisionPoint]) -> DecisionBatch:
    return DecisionBatch(
        np.stack([p.features for p in of]),
        np.stack([p.mask for p in of]),
        np.array([int(p.base_action) for p in of]),
        [p.state for p in of],
    )


def portfolio(epsilon: float = 0.1, explore: Explore = Explore.LEGAL_NO_SUBMIT) -> Portfolio:
    weights = {"base": 0.45, "check_revise": 0.25, "tool_first": 0.1}
    members = [(script(name), weight) for name, weight in weights.items()]
    return Portfolio([*members, (script("more_evidence"), 0.2 - epsilon)], epsilon, explore)


POLICIES = [
    Uniform(),
    Epsilon(script("base"), 0.25),
    Epsilon(script("base"), 0.25, Explore.LEGAL),
    Epsilon(script("check_revise"), 1.0),
    Epsilon(script("check_revise"), 0.0),
    portfolio(),
    portfolio(0.05, Explore.LEGAL),
    Epsilon(script("base"), 0.1, recheck=0.3),
    replace(portfolio(), recheck=0.25),
]
IDS = [f"{policy.name}-{index}" for index, policy in enumerate(POLICIES)]


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_propensities_sum_to_one_and_are_zero_on_illegal_actions(policy):
    for point in points():
        probs = policy.probs(point)
        assert probs.dtype == np.float64
        assert probs.sum() == pytest.approx(1.0, abs=1e-12)
        assert (probs[~point.mask] == 0.0).all()
        assert (probs >= 0.0).all()


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_a_batch_gives_the_rows_of_single_decisions(policy):
    made = points()
    np.testing.assert_allclose(
        policy.probs_batch(batch(made)), np.stack([policy.probs(p) for p in made]), rtol=0, atol=1e-15
    )


@pytest.mark.parametrize("policy", POLICIES, ids=IDS)
def test_frequencies_of_20000_draws_match_the_propensities_in_every_state(policy):
    # Pearson's chi-square per state; all policies and states share a false-alarm rate of 1e-4 by Bonferroni.
    made = points()
    for index, point in enumerate(made):
        probs = policy.probs(point)
        rng = generator("test draws", policy.name, policy.fingerprint, index)
        edges = np.cumsum(probs)
        drawn = np.searchsorted(edges, rng.random(DRAWS) * edges[-1], side="right")
        counts = np.bincount(drawn, minlength=7)
        assert (counts[probs == 0.0] == 0).all()
        again = generator("test draws", policy.name, policy.fingerprint, index)
        assert [draw_action(probs, again) for _ in range(100)] == drawn[:100].tolist()  # the runner's own draw
        possible = probs > 0.0
        expected = DRAWS * probs[possible]
        statistic = float(((counts[possible] - expected) ** 2 / expected).sum())
        freedom = int(possible.sum()) - 1
        if freedom:
            assert statistic < chi2.isf(1e-4 / (len(made) * len(POLICIES)), freedom)


def test_epsilon_gives_the_stated_mixture():
    drafted = points()[3]  # an artifact, unchecked: base submits; all seven actions are legal
    expected = np.full(7, 0.25 / 6)
    expected[Action.SUBMIT] = 0.75
    np.testing.assert_allclose(Epsilon(script("base"), 0.25).probs(drafted), expected, atol=1e-15)
    paper = np.full(7, 0.25 / 7)
    paper[Action.SUBMIT] += 0.75
    np.testing.assert_allclose(Epsilon(script("base"), 0.25, Explore.LEGAL).probs(drafted), paper, atol=1e-15)


def test_where_exploration_has_nothing_to_take_the_inner_policy_decides_alone():
    only_submit = replace(points()[3], mask=np.array([0, 0, 0, 0, 0, 0, 1], dtype=bool))
    expected = np.array([0, 0, 0, 0, 0, 0, 1.0])
    np.testing.assert_array_equal(Epsilon(script("base"), 0.25).probs(only_submit), expected)
    lone = Portfolio([(script("base"), 0.7)], epsilon=0.3)
    np.testing.assert_allclose(lone.probs(only_submit), expected, atol=1e-15)


def test_portfolio_mixes_scripts_by_their_weights():
    drafted = points()[3]  # base and more_evidence submit, check_revise checks, tool_first calls the tool
    expected = np.full(7, 0.1 / 6)
    expected[Action.SUBMIT] = 0.45 + 0.1
    expected[Action.CHECK] += 0.25
    expected[Action.CALL_TOOL] += 0.1
    np.testing.assert_allclose(portfolio().probs(drafted), expected, atol=1e-15)


def test_a_check_replaces_the_stated_share_of_submissions_where_one_is_legal():
    drafted = points()[3]  # base and more_evidence submit, check_revise checks, tool_first calls the tool
    expected = np.full(7, 0.1 / 6)
    expected[Action.SUBMIT] = 0.75 * 0.55
    expected[Action.CHECK] += 0.25 + 0.25 * 0.55
    expected[Action.CALL_TOOL] += 0.1
    np.testing.assert_allclose(replace(portfolio(), recheck=0.25).probs(drafted), expected, atol=1e-15)
    alone = Epsilon(script("base"), 0.0, recheck=1.0)
    np.testing.assert_array_equal(np.flatnonzero(alone.probs(drafted)), [Action.CHECK])
    checked_out = replace(drafted, mask=np.where(np.arange(7) == Action.CHECK, False, drafted.mask))
    np.testing.assert_array_equal(np.flatnonzero(alone.probs(checked_out)), [Action.SUBMIT])
    np.testing.assert_array_equal(drafted.mask, points()[3].mask)  # nothing is written into what was asked


def test_no_legal_action_is_an_error():
    nothing = replace(points()[0], mask=np.zeros(7, dtype=bool))
    with pytest.raises(ValueError, match="no action is legal"):
        Uniform().probs(nothing)
    with pytest.raises(ValueError, match="no action is legal in row 1 of 2"):
        Uniform().probs_batch(batch([points()[0], nothing]))


def test_fingerprints_change_with_whatever_changes_decisions_and_with_nothing_else():
    base, other = script("base"), script("check_revise")
    varied = [
        Uniform(),
        Epsilon(base, 0.25),
        Epsilon(base, 0.2),
        Epsilon(other, 0.25),
        Epsilon(base, 0.25, Explore.LEGAL),
        Portfolio([(base, 0.6), (other, 0.3)], 0.1),
        Portfolio([(base, 0.3), (other, 0.6)], 0.1),
        Portfolio([(base, 0.6), (other, 0.3)], 0.1, Explore.LEGAL),
        Portfolio([(base, 0.6), (other, 0.2)], 0.2),
        Epsilon(base, 0.25, recheck=0.2),
        Portfolio([(base, 0.6), (other, 0.2)], 0.2, recheck=0.2),
        Portfolio([(base, 0.6), (other, 0.2)], 0.2, recheck=0.3),
    ]
    assert len({policy.fingerprint for policy in varied}) == len(varied)
    before_recheck = "d048ab5f5bf8458e"  # of buffers that were collected before that key
    assert Portfolio([(base, 0.6), (other, 0.3)], 0.1).fingerprint == before_recheck
    assert Epsilon(script("base"), 0.25, name="again").fingerprint == Epsilon(base, 0.25).fingerprint
    assert Portfolio([(other, 0.3), (base, 0.6)]).fingerprint == Portfolio([(base, 0.6), (other, 0.3)]).fingerprint


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Epsilon(script("base"), 1.5), "epsilon is 1.5; expected a number from 0 to 1"),
        (lambda: Epsilon(script("base"), float("nan")), "epsilon is nan"),
        (lambda: Epsilon(script("base"), 0.1, "everything"), "legal_no_submit or legal"),  # type: ignore[arg-type]
        (lambda: Epsilon(script("base"), 0.1, recheck=1.1), "recheck is 1.1; expected a number from 0 to 1"),
        (lambda: Portfolio([(script("base"), 0.9)], 0.1, recheck=-0.1), "recheck is -0.1"),
        (lambda: Portfolio([(script("base"), 0.5)], 0.1), "sum to 0.6; expected 1"),
        (lambda: Portfolio([(script("base"), 1.1), (script("check_revise"), -0.2)], 0.1), "above 0"),
        (lambda: Portfolio([(script("base"), 0.5), (script("base"), 0.4)], 0.1), "each named once"),
        (lambda: Portfolio([], 1.0), "at least one policy"),
    ],
)
def test_impossible_mixtures_are_refused_by_name(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
