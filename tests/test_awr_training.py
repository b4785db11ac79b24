"""The trainer: the same as plain torch, BC is AWR with weights 1, and a stack changes nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from controllers.awr import awr_loss
from controllers.config import AWConfig, DecisionRule, Method
from controllers.data import StepArrays
from controllers.network import TENSOR_NAMES, initial_weights
from controllers.policy import ControllerPolicy
from controllers.training import ModelPlan, open_device, step_weights, train, train_many
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.hashing import generator
from harness_mdp.mdp import DecisionBatch

SMALL = AWConfig(hidden=8, batch_size=32, epochs=3)


@pytest.fixture(autouse=True)
def one_thread():
    """For the plain loops here; the trainer sets its own."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def made_up(tasks: int = 10, rollouts: int = 4, length: int = 3, d: int = 5, seed: int = 0) -> StepArrays:
    rng = np.random.default_rng(seed)
    m = tasks * rollouts
    n = m * length
    mask = rng.random((n, 7)) < 0.6
    action, base = rng.integers(0, 7, n), rng.integers(0, 7, n)
    mask[np.arange(n), action] = mask[np.arange(n), base] = True
    return StepArrays(
        features=rng.random((n, d)).astype(np.float32),
        mask=mask,
        action=action,
        base_action=base,
        propensities=mask / mask.sum(axis=1, keepdims=True),
        t=np.tile(np.arange(1, length + 1), m),
        episode=np.repeat(np.arange(m), length),
        returns=rng.random(m),
        task=np.repeat(np.arange(tasks), rollouts),
    )


def assert_same_weights(one, other, atol=0.0):
    for name in TENSOR_NAMES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=atol, err_msg=name)


def plain_torch(data: StepArrays, weights, config: AWConfig, seed: int):
    """The textbook loop: autograd, torch.optim.Adam, one model, one minibatch at a time."""
    start = initial_weights(data.features.shape[1], config.hidden, seed)
    p = {name: torch.tensor(array, requires_grad=True) for name, array in start.tensors().items()}
    optimiser = torch.optim.Adam(p.values(), lr=config.learning_rate)
    order = generator("controller", "minibatch order", seed)
    x, mask, action = (torch.from_numpy(a) for a in (data.features, data.mask, data.action))
    w = torch.from_numpy(weights.astype(np.float32))
    curve = []
    for _ in range(config.epochs):
        shuffled = torch.from_numpy(order.permutation(len(action)))
        total = 0.0
        for rows in shuffled.split(config.batch_size):
            logits = torch.relu(x[rows] @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
            loss = awr_loss(logits, mask[rows], action[rows], w[rows], config.entropy)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(rows)
        curve.append(total / len(action))
    return {name: tensor.detach().numpy() for name, tensor in p.items()}, curve


def test_trains_as_autograd_and_torch_adam_would():
    data = made_up()  # 120 steps: three minibatches of 32 and one of 24
    config = replace(SMALL, epochs=10, learning_rate=0.01)
    weights, _ = step_weights(data, config)
    expected, curve = plain_torch(data, weights, config, seed=3)
    result = train(data, config, seed=3)
    for name in TENSOR_NAMES:
        np.testing.assert_allclose(getattr(result.weights, name), expected[name], rtol=0, atol=2e-5, err_msg=name)
    np.testing.assert_allclose(result.metrics.loss, curve, rtol=1e-5)


def test_bc_is_awr_with_weights_one():
    data = made_up()
    bc = train(data, replace(SMALL, method=Method.BC), seed=1)
    ones = train_many(data, [ModelPlan(1, np.ones(len(data.action)))], SMALL)[0]
    assert_same_weights(bc.weights, ones.weights)
    level = replace(data, returns=np.full(len(data.returns), 0.5))  # no advantage anywhere: every weight is 1
    assert_same_weights(bc.weights, train(level, SMALL, seed=1).weights)
    assert np.array_equal(bc.step_weights, np.ones(len(data.action)))


def test_a_model_is_the_same_alone_and_in_a_stack():
    data = made_up()
    n = len(data.action)
    aw, _ = step_weights(data, SMALL)
    plans = [
        ModelPlan(0, aw, rows=np.arange(0, 70)),
        ModelPlan(1, aw),
        ModelPlan(1, np.ones(n)),
        ModelPlan(2, aw, rows=np.arange(50, n)),
        ModelPlan(3, np.ones(n), rows=np.arange(5)),
    ]
    stacked = train_many(data, plans, SMALL)
    for plan, together in zip(plans, stacked, strict=True):
        alone = train_many(data, [plan], SMALL)[0]
        assert_same_weights(alone.weights, together.weights, atol=1e-5)
        np.testing.assert_allclose(alone.metrics.loss, together.metrics.loss, rtol=1e-5)


def test_a_plan_with_rows_learns_from_those_alone():
    data = made_up()
    rows = np.arange(0, 120, 2)
    part = StepArrays(
        **{
            name: getattr(data, name)[rows] if len(getattr(data, name)) == 120 else getattr(data, name)
            for name in StepArrays.__dataclass_fields__
        }
    )
    chosen = train_many(data, [ModelPlan(1, np.full(120, 2.0), rows)], SMALL)[0]
    assert_same_weights(chosen.weights, train_many(part, [ModelPlan(1, np.full(60, 2.0))], SMALL)[0].weights)
    assert chosen.metrics.n_steps == 60
    assert chosen.step_weights[rows].tolist() == [2.0] * 60
    assert chosen.step_weights.sum() == 120.0


def test_large_data_are_gathered_in_pieces_without_a_difference(monkeypatch):
    data = made_up()
    whole = train(data, SMALL, seed=1)
    monkeypatch.setattr("controllers.training.CHUNK_ROWS", 64)  # two minibatches at a time
    assert_same_weights(whole.weights, train(data, SMALL, seed=1).weights)


def test_the_seed_decides_everything_and_global_generators_are_left_alone():
    data = made_up()
    torch.set_num_threads(2)
    state = torch.random.get_rng_state()
    first = train(data, SMALL, seed=1)
    torch.manual_seed(99)
    again = train(data, SMALL, seed=1)
    assert first.weights.digest == again.weights.digest
    assert first.metrics == again.metrics
    assert train(data, SMALL, seed=2).weights.digest != first.weights.digest
    torch.random.set_rng_state(state)
    train(data, SMALL, seed=1)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == 2


def one_state(returns_of_check: float, returns_of_draft: float) -> StepArrays:
    """One state; in every task, half of the episodes check (3) and half draft (4), with these returns."""
    m = 40
    action = np.tile([3, 4], m // 2)
    mask = np.zeros((m, 7), dtype=bool)
    mask[:, [0, 3, 4]] = True
    return StepArrays(
        features=np.ones((m, 1), np.float32),
        mask=mask,
        action=action,
        base_action=np.full(m, 4),
        propensities=mask / 3.0,
        t=np.ones(m, np.int64),
        episode=np.arange(m),
        returns=np.where(action == 3, returns_of_check, returns_of_draft),
        task=np.repeat(np.arange(10), 4),
    )


def test_awr_moves_to_the_better_action_by_exactly_its_weight():
    # In one state the optimum without entropy bonus is the weighted frequency: e^(0.1/0.2) against e^(-0.1/0.2).
    data = one_state(0.7, 0.5)
    config = AWConfig(hidden=8, batch_size=40, epochs=1500, learning_rate=0.02, entropy=0.0)
    learned = train(data, config, seed=0)
    probs = ControllerPolicy(learned.weights).probs_batch(
        DecisionBatch(data.features[:1], data.mask[:1], data.base_action[:1])
    )[0]
    assert probs[3] / probs[4] == pytest.approx(np.exp(1.0), rel=0.01)
    assert probs[0] < 1e-3
    assert probs[[1, 2, 5, 6]].tolist() == [0.0] * 4


def test_metrics_describe_weights_and_policy():
    data = one_state(0.7, 0.5)
    config = AWConfig(hidden=8, batch_size=40, epochs=300, learning_rate=0.02, decision=DecisionRule.GREEDY)
    metrics = train(data, config, seed=0).metrics
    assert (metrics.weight_min, metrics.weight_max) == pytest.approx((np.exp(-0.5), np.exp(0.5)))
    weights = np.array([np.exp(-0.5), np.exp(0.5)])
    assert metrics.ess == pytest.approx(20 * weights.sum() ** 2 / (weights**2).sum())
    assert metrics.agreement_with_base == 0.0  # base drafts, the greedy controller checks
    assert metrics.loss[-1] < metrics.loss[0]
    assert 0.0 < metrics.entropy < np.log(3)
    assert metrics.as_json()["loss"] == list(metrics.loss)


def test_a_step_without_legal_action_raises():
    data = made_up()
    data.mask[17] = False
    with pytest.raises(ValueError, match="no action is legal in row 17 of 120"):
        train(data, SMALL, seed=0)


def test_data_that_cannot_be_learned_from_are_refused_with_the_place():
    data = made_up()
    illegal = replace(data, mask=data.mask.copy())
    illegal.mask[9, illegal.action[9]] = False
    illegal.mask[9, (illegal.action[9] + 1) % 7] = True
    with pytest.raises(UnusableBuffer, match=r"1 of 120 steps took .* the first is step 9 \(t = 1\)"):
        train(illegal, SMALL, seed=0)
    broken = replace(data, features=data.features.copy())
    broken.features[4, 2] = np.nan
    with pytest.raises(UnusableBuffer, match="features of step 4 of 120"):
        train(broken, SMALL, seed=0)
    unknown = replace(data, returns=np.where(np.arange(40) == 6, np.nan, data.returns))
    with pytest.raises(UnusableBuffer, match="return of episode 6 of 40 is nan"):
        train(unknown, SMALL, seed=0)
    with pytest.raises(UnusableBuffer, match="no step with a weight above 0"):
        train_many(data, [ModelPlan(0, np.zeros(120))], SMALL)


def test_one_rollout_per_task_stops_awr_and_not_bc():
    data = made_up(tasks=10, rollouts=1)
    with pytest.raises(UnusableBuffer, match="10 tasks with one rollout each"):
        train(data, SMALL, seed=0)
    assert train(data, replace(SMALL, method=Method.BC), seed=0).metrics.n_steps == 30


def test_divergence_is_an_error_and_never_a_controller():
    with pytest.raises(ConfigError, match="training diverged with seed 0"):
        train(made_up(), replace(SMALL, learning_rate=1e30), seed=0)


def test_unknown_devices_are_refused():
    with pytest.raises(ConfigError, match="expected auto, cpu or cuda"):
        open_device("tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_device_is_refused_and_auto_takes_the_cpu():
    with pytest.raises(ConfigError, match="finds no CUDA device"):
        open_device("cuda")
    assert open_device("auto").type == "cpu"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_trains_the_same_model():
    data = made_up()
    assert_same_weights(train(data, SMALL, 1, "cpu").weights, train(data, SMALL, 1, "cuda").weights, atol=1e-4)
