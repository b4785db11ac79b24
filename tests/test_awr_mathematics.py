"""AWR against numbers worked out by hand, against autograd, and on random masks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from controllers.awr import awr_gradient, awr_loss, awr_weights, effective_sample_size, masked_log_softmax
from harness_mdp.mdp import Action

# Two steps. The first: observe, draft, submit are legal with odds 1 : 2 : 3, draft was taken. The second: draft
# and check are legal with equal odds, check was taken. Illegal logits are large, to show that they do not matter.
LEGAL_1, LEGAL_2 = [Action.OBSERVE, Action.DRAFT, Action.SUBMIT], [Action.DRAFT, Action.CHECK]
LOGITS = torch.full((2, 7), 50.0)
LOGITS[0, LEGAL_1] = torch.tensor([0.0, math.log(2), math.log(3)])
LOGITS[1, LEGAL_2] = 0.0
MASK = torch.zeros(2, 7, dtype=torch.bool)
MASK[0, LEGAL_1] = True
MASK[1, LEGAL_2] = True
ACTION = torch.tensor([int(Action.DRAFT), int(Action.CHECK)])
WEIGHT = torch.tensor([4.0, 0.5])
ENTROPY = 0.1

# π = (1/6, 1/3, 1/2), H = 1.011404;  π = (1/2, 1/2), H = 0.693147
# L = ½ [4·ln 3 - 0.1·1.011404 + 0.5·ln 2 - 0.1·0.693147] = ½ [4.293309 + 0.277259]
LOSS = 2.285284
# ½ [4·(1/6, 1/3 - 1, 1/2) + 0.1·(1/6·(ln 1/6 + H), 1/3·(ln 1/3 + H), 1/2·(ln 1/2 + H))]
#  = ½ [(0.666667, -2.666667, 2) + (-0.013006, -0.002907, 0.015913)]
GRADIENT_1 = [0.326830, -1.334787, 1.007957]
# ½ [0.5·(1/2, 1/2 - 1) + 0.1·(0, 0)]
GRADIENT_2 = [0.125, -0.125]


def closed_form(logits, mask, action, weight, entropy):
    """`awr_gradient` of one batch: loss () and gradient (B, 7)."""
    n = len(logits)
    losses, gradient = awr_gradient(
        logits[None].clone(),
        ~mask[None],
        action[None, :, None],
        (weight / n)[None, :, None],
        torch.full((1, n, 1), entropy / n, dtype=logits.dtype),
    )
    return losses[0], gradient[0]


def test_weights_by_hand():
    advantages = 0.2 * np.array([math.log(4), math.log(0.5), 0.0, 5.0, -5.0, 1e9])
    np.testing.assert_allclose(awr_weights(advantages, 0.2, 0.1, 10.0), [4.0, 0.5, 1.0, 10.0, 0.1, 10.0], rtol=1e-12)


def test_effective_sample_size_by_hand():
    assert effective_sample_size(np.ones(5)) == 5.0
    assert effective_sample_size(np.array([4.0, 0.5])) == pytest.approx(4.5**2 / 16.25)
    assert effective_sample_size(np.array([0.0, 3.0])) == 1.0


def test_masked_loss_by_hand():
    assert awr_loss(LOGITS, MASK, ACTION, WEIGHT, ENTROPY).item() == pytest.approx(LOSS, abs=2e-6)
    loss, _ = closed_form(LOGITS, MASK, ACTION, WEIGHT, ENTROPY)
    assert loss.item() == pytest.approx(LOSS, abs=2e-6)


def test_gradient_by_hand():
    expected = torch.zeros(2, 7)
    expected[0, LEGAL_1] = torch.tensor(GRADIENT_1)
    expected[1, LEGAL_2] = torch.tensor(GRADIENT_2)
    logits = LOGITS.clone().requires_grad_()
    awr_loss(logits, MASK, ACTION, WEIGHT, ENTROPY).backward()
    torch.testing.assert_close(logits.grad, expected, atol=2e-6, rtol=0)
    _, gradient = closed_form(LOGITS, MASK, ACTION, WEIGHT, ENTROPY)
    torch.testing.assert_close(gradient, expected, atol=2e-6, rtol=0)


def test_unit_weights_and_no_entropy_bonus_are_cross_entropy_over_the_legal_actions():
    ones = torch.ones(2)
    expected = torch.nn.functional.cross_entropy(LOGITS.masked_fill(~MASK, -torch.inf), ACTION)
    torch.testing.assert_close(awr_loss(LOGITS, MASK, ACTION, ones, 0.0), expected)


@st.composite
def batches(draw):
    """Random masks with logits up to ±30 and weights up to 10."""
    mask = draw(hnp.arrays(np.bool_, st.tuples(st.integers(1, 5), st.just(7))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = len(mask)
    action = rng.integers(0, 7, n)
    mask[np.arange(n), action] = True
    logits, weight = rng.uniform(-30, 30, (n, 7)), rng.uniform(0, 10, n)
    return [torch.from_numpy(array) for array in (logits, mask, action, weight)]


@settings(max_examples=100, deadline=None)
@given(batch=batches(), entropy=st.floats(0, 1))
def test_closed_form_is_the_gradient_that_autograd_finds(batch, entropy):
    logits, mask, action, weight = batch
    leaf = logits.clone().requires_grad_()
    expected = awr_loss(leaf, mask, action, weight, entropy)
    expected.backward()
    loss, gradient = closed_form(logits, mask, action, weight, entropy)
    torch.testing.assert_close(loss, expected.detach(), atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(gradient, leaf.grad, atol=1e-10, rtol=1e-10)


@settings(max_examples=100, deadline=None)
@given(batch=batches(), entropy=st.floats(0, 1))
def test_illegal_actions_have_probability_and_gradient_exactly_zero_in_training(batch, entropy):
    logits, mask, action, weight = batch
    probs = masked_log_softmax(logits, mask).exp()
    assert (probs[~mask] == 0.0).all()
    torch.testing.assert_close(probs.sum(dim=1), torch.ones(len(probs), dtype=torch.float64))
    for dtype in (torch.float32, torch.float64):
        loss, gradient = closed_form(logits.to(dtype), mask, action, weight.to(dtype), entropy)
        assert (gradient[~mask] == 0.0).all()
        assert torch.isfinite(gradient).all()
        assert torch.isfinite(loss)


def test_no_legal_action_raises():
    none = MASK.clone()
    none[1] = False
    with pytest.raises(ValueError, match="no action is legal"):
        masked_log_softmax(LOGITS, none)
    with pytest.raises(ValueError, match="no action is legal"):
        awr_loss(LOGITS, none, ACTION, WEIGHT, ENTROPY)
