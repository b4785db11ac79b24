"""A learned controller never gives an illegal action any probability, and says so when nothing is legal."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from controllers.config import DecisionRule
from controllers.network import MLPWeights, initial_weights
from controllers.policy import ControllerPolicy
from harness_mdp.mdp import Action, DecisionBatch, DecisionPoint, start

D = 5
finite = st.floats(-1e3, 1e3, width=32)
masks = hnp.arrays(np.bool_, 7).filter(lambda mask: mask.any())


def point(features, mask) -> DecisionPoint:
    return DecisionPoint(start(10), features, mask, Action.DRAFT)


@settings(max_examples=150, deadline=None)
@given(
    features=hnp.arrays(np.float32, D, elements=finite),
    mask=masks,
    scale=st.floats(0.01, 1e4),
    seed=st.integers(0, 50),
    decision=st.sampled_from(DecisionRule),
)
def test_illegal_actions_have_probability_exactly_zero(features, mask, scale, seed, decision):
    drawn = initial_weights(D, 6, seed)
    weights = MLPWeights(*(np.float32(scale) * array for array in drawn.tensors().values()))
    policy = ControllerPolicy(weights, decision)
    probs = policy.probs(point(features, mask))
    assert (probs[~mask] == 0.0).all()
    assert probs.sum() == pytest.approx(1.0, abs=1e-12)
    both = DecisionBatch(np.stack([features, features]), np.stack([mask, mask]), np.zeros(2, np.int64))
    np.testing.assert_allclose(policy.probs_batch(both), [probs, probs], rtol=0, atol=1e-12)


def test_probabilities_are_the_masked_softmax_of_the_network():
    zero = np.zeros
    weights = MLPWeights(
        zero((1, 1), np.float32),
        zero(1, np.float32),
        zero((1, 7), np.float32),
        np.log(np.arange(1, 8, dtype=np.float32)),
    )
    mask = np.array([1, 0, 1, 0, 0, 0, 1], dtype=bool)  # odds 1, 3, 7
    probs = ControllerPolicy(weights).probs(point(zero(1, np.float32), mask))
    np.testing.assert_allclose(probs, np.array([1, 0, 3, 0, 0, 0, 7]) / 11, atol=1e-7)


def test_hidden_units_are_rectified():
    one = np.ones
    w2 = np.zeros((2, 7), np.float32)
    w2[0, Action.DRAFT], w2[1, Action.CHECK] = 1.0, 1.0
    weights = MLPWeights(np.array([[1, -1]], np.float32), np.zeros(2, np.float32), w2, np.zeros(7, np.float32))
    probs = ControllerPolicy(weights).probs(point(2 * one(1, np.float32), one(7, np.bool_)))
    expected = np.where(np.arange(7) == Action.DRAFT, np.exp(2.0), 1.0)  # the second unit is at 0, not at -2
    np.testing.assert_allclose(probs, expected / expected.sum(), atol=1e-12)


def test_greedy_takes_the_lowest_index_among_equals_and_never_an_illegal_best():
    zero = np.zeros
    biases = np.array([0, 2, 2, 1, 9, 2, 0], np.float32)
    weights = MLPWeights(zero((1, 1), np.float32), zero(1, np.float32), zero((1, 7), np.float32), biases)
    greedy = ControllerPolicy(weights, DecisionRule.GREEDY)
    mask = np.array([1, 0, 1, 1, 0, 1, 1], dtype=bool)
    expected = np.eye(7)[Action.CALL_TOOL]
    features = zero(1, np.float32)
    np.testing.assert_array_equal(greedy.probs(point(features, mask)), expected)
    stored = DecisionBatch(features[None], mask[None], zero(1, np.int64))
    np.testing.assert_array_equal(greedy.probs_batch(stored), expected[None])


@pytest.mark.parametrize("decision", DecisionRule)
def test_no_legal_action_raises(decision):
    policy = ControllerPolicy(initial_weights(D, 6, 0), decision)
    features, none, some = np.zeros(D, np.float32), np.zeros(7, bool), np.ones(7, bool)
    with pytest.raises(ValueError, match="no action is legal in row 0 of 1"):
        policy.probs(point(features, none))
    with pytest.raises(ValueError, match="no action is legal in row 1 of 2"):
        policy.probs_batch(DecisionBatch(np.stack([features, features]), np.stack([some, none]), np.zeros(2, np.int64)))


def test_features_that_do_not_fit_are_refused():
    policy = ControllerPolicy(initial_weights(D, 6, 0), name="aw")
    with pytest.raises(ValueError, match="controller aw reads 5 features; the state has 4"):
        policy.probs(point(np.zeros(4, np.float32), np.ones(7, bool)))
    with pytest.raises(ValueError, match="features of row 0 of 1 are not finite"):
        policy.probs(point(np.array([0, np.nan, 0, 0, 0], np.float32), np.ones(7, bool)))


def test_an_empty_batch_gives_no_rows():
    empty = DecisionBatch(np.zeros((0, D), np.float32), np.zeros((0, 7), bool), np.zeros(0, np.int64))
    assert ControllerPolicy(initial_weights(D, 6, 0)).probs_batch(empty).shape == (0, 7)


def test_deciding_and_loading_do_not_import_torch():
    code = "import sys, controllers.policy, controllers.saved, controllers.exploration; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
