"""What a learner maximises: quality, quality less cost, or quality that success gates; costs side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buffers import ReplayBuffer, TrainingArrays
from controllers.returns import CostUnit, ReturnKind, ReturnsConfig, cost_scale, returns, side_by_side, with_returns
from experiments import returns_config as configured
from experiments.returns_config import returns_config
from harness_mdp.errors import ConfigError, UnusableBuffer
from tests.episodes import episodes


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> TrainingArrays:
    """12 tasks x 3 rollouts; each episode has its own price."""
    buffer = ReplayBuffer(tmp_path_factory.mktemp("returns") / "buffer")
    made = episodes(36, tasks=12)
    buffer.append([replace(each, cost_usd=0.001 * (1 + index)) for index, each in enumerate(made)])
    return buffer.tensors("made_up")


def priced(arrays: TrainingArrays, quality: list[float], steps: list[int]) -> TrainingArrays:
    """The first episodes, with this quality and so many steps of a horizon of 10."""
    n = len(quality)
    return replace(
        arrays, returns=np.array(quality), lengths=np.array(steps), horizon=np.full(n, 10), cost_usd=arrays.cost_usd[:n]
    )


def test_quality_is_the_default_and_stays_as_it_is(arrays: TrainingArrays) -> None:
    assert np.array_equal(with_returns(arrays, ReturnsConfig()).returns, arrays.returns)


def test_quality_less_cost_takes_its_share_of_the_horizon(arrays: TrainingArrays) -> None:
    three = priced(arrays, [1.0, 0.5, 0.0], [10, 4, 2])
    found = returns(three, ReturnsConfig(ReturnKind.COST, weight=0.2))
    assert found == pytest.approx([1.0 - 0.2, 0.5 - 0.08, -0.04])


def test_efficiency_pays_only_success_and_never_more_than_quality(arrays: TrainingArrays) -> None:
    three = priced(arrays, [1.0, 0.6, 0.4], [10, 5, 1])
    found = returns(three, ReturnsConfig(ReturnKind.EFFICIENCY, weight=0.5, threshold=0.5))
    assert found == pytest.approx([0.5, 0.6 * 0.75, 0.0])


def test_a_cheap_failure_beats_a_dear_one_under_cost_and_not_under_efficiency(arrays: TrainingArrays) -> None:
    two = priced(arrays, [0.0, 0.0], [1, 10])
    cost = returns(two, ReturnsConfig(ReturnKind.COST, weight=0.3))
    gated = returns(two, ReturnsConfig(ReturnKind.EFFICIENCY, weight=0.3))
    assert cost[0] > cost[1]
    assert gated[0] == gated[1] == 0.0


@given(
    kind=st.sampled_from(ReturnKind),
    unit=st.sampled_from([CostUnit.STEPS, CostUnit.TOKENS, CostUnit.USD]),
    weight=st.floats(0, 1),
    threshold=st.floats(0, 1),
)
def test_no_return_is_above_quality_and_at_no_weight_it_is_quality(
    arrays: TrainingArrays, kind: ReturnKind, unit: CostUnit, weight: float, threshold: float
) -> None:
    found = returns(arrays, ReturnsConfig(kind, unit, weight, threshold=threshold))
    assert (found <= arrays.returns).all()
    assert (found >= arrays.returns - weight - (arrays.returns < threshold)).all()
    free = returns(arrays, ReturnsConfig(kind, unit, 0.0, threshold=0.0))
    assert np.array_equal(free, arrays.returns)


@pytest.mark.parametrize("unit", list(CostUnit))
def test_the_scale_is_the_horizon_the_dearest_episode_or_what_is_stated(arrays: TrainingArrays, unit: CostUnit) -> None:
    dearest = {
        CostUnit.STEPS: 10.0,
        CostUnit.TOKENS: float(arrays.tokens.max()),
        CostUnit.USD: 0.036,
        CostUnit.SECONDS: float(arrays.seconds.max()),
    }
    assert cost_scale(arrays, ReturnsConfig(ReturnKind.COST, unit)) == pytest.approx(dearest[unit])
    assert cost_scale(arrays, ReturnsConfig(ReturnKind.COST, unit, scale=3.5)) == 3.5


def test_the_formula_says_its_numbers(arrays: TrainingArrays) -> None:
    config = ReturnsConfig(ReturnKind.COST, CostUnit.TOKENS, 0.25, scale=4000)
    assert config.formula(cost_scale(arrays, config)) == "quality - 0.25·tokens/4000"


def test_the_rest_of_the_arrays_is_shared_and_the_original_keeps_quality(arrays: TrainingArrays) -> None:
    before = arrays.returns.copy()
    changed = with_returns(arrays, ReturnsConfig(ReturnKind.COST))
    assert changed.features is arrays.features
    assert not np.array_equal(changed.returns, before)
    assert np.array_equal(arrays.returns, before)


def test_costs_stand_side_by_side_with_quality_and_unknown_money_is_no_zero(arrays: TrainingArrays) -> None:
    found = side_by_side(arrays)
    assert list(found) == ["quality", "steps", "tokens", "usd", "seconds"]
    assert found["quality"] == pytest.approx(arrays.returns.mean())
    assert found["steps"] == pytest.approx(arrays.n_steps / arrays.n_episodes)
    unknown = replace(arrays, cost_usd=np.where(arrays.cost_usd > 0.03, np.nan, arrays.cost_usd))
    assert side_by_side(unknown)["usd"] is None


def test_an_unknown_price_is_refused_by_episode_and_only_where_money_is_weighed(arrays: TrainingArrays) -> None:
    unknown = replace(arrays, cost_usd=np.where(np.arange(36) == 7, np.nan, arrays.cost_usd))
    with pytest.raises(UnusableBuffer, match=rf"usd of 1 of 36 episodes is unknown.*{arrays.episode_ids[7]}"):
        returns(unknown, ReturnsConfig(ReturnKind.COST, CostUnit.USD))
    with pytest.raises(UnusableBuffer, match="unknown"):
        returns(unknown, ReturnsConfig(ReturnKind.EFFICIENCY, CostUnit.USD, scale=1.0))
    assert np.isfinite(returns(unknown, ReturnsConfig(ReturnKind.COST, CostUnit.TOKENS))).all()
    assert np.array_equal(returns(unknown, ReturnsConfig(cost=CostUnit.USD)), arrays.returns)


def test_a_free_executor_has_no_money_to_weigh(arrays: TrainingArrays) -> None:
    free = replace(arrays, cost_usd=np.zeros(36))
    with pytest.raises(UnusableBuffer, match="cost 0 usd"):
        returns(free, ReturnsConfig(ReturnKind.COST, CostUnit.USD))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"kind": "profit"}, "profit.*quality, cost, efficiency"),
        ({"cost": "joules"}, "joules.*steps, tokens, usd, seconds"),
        ({"weight": -0.1}, "weight is -0.1"),
        ({"weight": float("nan")}, "weight is nan"),
        ({"kind": "efficiency", "weight": 1.5}, "at most 1"),
        ({"scale": 0.0}, "scale is 0"),
        ({"threshold": 2.0}, "threshold is 2"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_by_name(changes: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ReturnsConfig(**changes)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cost": "usd"}, r"returns\.cost was given and changes nothing with returns=quality"),
        ({"weight": 0.5}, r"returns\.weight was given and changes nothing with returns=quality"),
        ({"kind": "cost", "threshold": 0.9}, r"returns\.threshold was given and changes nothing with returns=cost"),
    ],
)
def test_what_the_return_does_not_read_is_refused(changes: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        returns_config(configured.ReturnsConfig(**changes))
    assert returns_config(configured.ReturnsConfig(kind="efficiency", weight=0.5, threshold=0.9)).threshold == 0.9
    assert returns_config(configured.ReturnsConfig(kind="cost", cost="tokens", scale=9.0)).scale == 9.0
