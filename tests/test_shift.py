"""The shift of the process: the covariance identity, what is predicted from a buffer, what an evaluation realised."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as drawn
from rich.console import Console

from analysis.comparison import compare
from analysis.realised_shift import BEHAVIOUR, behaviour_episodes, beside_predicted, realised_shifts
from analysis.shift import (
    BY_POLICY,
    BY_WEIGHTS,
    STATISTICS,
    episode_weights,
    held_out_probs,
    learner_weights,
    policy_weights,
    predicted_shifts,
    shift_records,
    weighted_shift,
)
from analysis.shift_tables import render_predicted, render_realised
from buffers import ReplayBuffer
from controllers.config import AWConfig, Method, PlanConfig
from controllers.learners import learn
from controllers.training import step_weights
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.hashing import canonical_json, generator
from harness_mdp.mdp import Episode
from tests.episodes import Behaviour, episode
from tests.ope_logs import other_target, random_log

EVENT, SOMETIMES, NEVER = "CheckBeforeSubmit", "ValidToolUse", "TestBeforeSubmit"


def judged(index: int, **changes) -> Episode:
    """A made-up episode with verdicts of preset strict; SOMETIMES is applicable in two of three, NEVER in none."""
    made, rng = episode(index, **changes), generator("verdicts", index, changes.get("phase", ""))
    told = {EVENT: True, SOMETIMES: index % 3 != 0, NEVER: False}
    events = tuple(("strict", name, can, can and bool(rng.random() < 0.5)) for name, can in told.items())
    return replace(made, maturity={"strict": float(rng.uniform(-1, 1))}, maturity_events=events)


@pytest.fixture(scope="module")
def buffer(tmp_path_factory: pytest.TempPathFactory) -> ReplayBuffer:
    """20 tasks x 6 rollouts, committed in no order."""
    made = ReplayBuffer(tmp_path_factory.mktemp("shift") / "buffer")
    order = generator("order").permutation(120).tolist()
    made.append([judged(index, tasks=20) for index in order[:50]])
    made.append([judged(index, tasks=20) for index in order[50:]])
    return made


finite = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(
    st.integers(1, 40).flatmap(
        lambda m: st.tuples(drawn(float, m, elements=finite), drawn(float, m, elements=st.floats(0.01, 100)))
    )
)
def test_the_covariance_is_the_difference_of_the_weighted_and_the_plain_mean(case: tuple) -> None:
    statistic, weights = case
    scale = max(1.0, float(np.abs(statistic).max()))
    expected = np.average(statistic, weights=weights) - statistic.mean()
    assert weighted_shift(weights, statistic) == pytest.approx(expected, abs=1e-9 * scale)


@given(drawn(float, 25, elements=st.floats(0, 1)), drawn(float, 25, elements=st.floats(0.1, 10)))
def test_no_reweighting_leaves_the_range_of_the_buffer(returns: np.ndarray, weights: np.ndarray) -> None:
    weighted = returns.mean() + weighted_shift(weights, returns)
    assert returns.min() - 1e-12 <= weighted <= returns.max() + 1e-12


def test_an_episode_weighs_what_its_steps_do_and_one_without_steps_nothing() -> None:
    log = random_log(1)
    own = generator("own weights").uniform(0.1, 10, len(log.returns))
    assert episode_weights(log, own[log.episode]) == pytest.approx(own)
    kept = replace(log, returns=np.append(log.returns, 0.0), task=np.append(log.task, 0))
    assert np.isnan(episode_weights(kept, np.ones(len(log.action)))[-1])


def test_the_behaviour_policy_itself_moves_nothing() -> None:
    log = random_log(2)
    assert policy_weights(log, log.propensities) == pytest.approx(np.ones(len(log.returns)))


def test_a_policy_weighs_an_episode_by_the_product_of_its_ratios() -> None:
    log, target = random_log(3), other_target(random_log(3), 3)
    rows = np.arange(len(log.action))
    ratio = target[rows, log.action] / log.propensities[rows, log.action]
    by_hand = [np.prod(ratio[log.episode == index]) for index in range(len(log.returns))]
    assert policy_weights(log, target) == pytest.approx(by_hand)


def test_predictions_are_the_weighted_rates_among_applicable_episodes(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up")
    weights, _ = step_weights(arrays, AWConfig())
    shifts = predicted_shifts(buffer, arrays, {BY_WEIGHTS: episode_weights(arrays, weights)}, draws=200)
    assert list(shifts["statistic"]) == list(STATISTICS)
    by_id = {each.episode_id: each for each in buffer.episodes()}
    first = np.flatnonzero(arrays.t == 1)
    for name in (EVENT, SOMETIMES):
        told = []
        for index, identity in enumerate(arrays.episode_ids):
            verdicts = {event: (can, did) for _, event, can, did in by_id[identity].maturity_events}
            if verdicts[name][0]:
                told.append((weights[first[index]], verdicts[name][1]))
        row = shifts.set_index("statistic").loc[name]
        assert row["n_applicable"] == len(told)
        plain, weighted = (
            np.mean([did for _, did in told]),
            np.average([d for _, d in told], weights=[w for w, _ in told]),
        )
        assert row["buffer"] == pytest.approx(plain, abs=1e-9)
        assert row["weighted"] == pytest.approx(weighted, abs=1e-9)
        assert row["predicted"] == pytest.approx(weighted - plain, abs=1e-9)
        assert row["low"] < row["predicted"] < row["high"]
    quality = shifts.set_index("statistic").loc["quality"]
    assert quality["predicted"] > 0  # weights grow with the return above its task's mean
    assert quality["weighted"] <= arrays.returns.max()
    assert shifts["simulated"].all()


def test_an_event_that_never_applies_and_equal_weights_are_said(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up")
    shifts = predicted_shifts(buffer, arrays, {BY_WEIGHTS: np.ones(120)}, draws=200).set_index("statistic")
    assert shifts.loc[NEVER, "note"] == "never applicable"
    assert np.isnan(shifts.loc[NEVER, "predicted"])
    assert tuple(shifts.loc[EVENT, ["predicted", "low", "high", "note"]]) == (0.0, 0.0, 0.0, "equal weights")


def test_a_policy_with_few_effective_episodes_gets_no_number(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up")
    few = np.where(np.arange(120) < 5, 1.0, 1e-6)
    shifts = predicted_shifts(buffer, arrays, {BY_WEIGHTS: few, BY_POLICY: few}, draws=200)
    table = shifts.set_index(["by", "statistic"])
    assert table.loc[(BY_POLICY, EVENT), "note"] == "insufficient support"
    assert np.isnan(table.loc[(BY_POLICY, EVENT), "predicted"])
    assert not np.isnan(table.loc[(BY_WEIGHTS, EVENT), "predicted"])  # the identity holds whatever the weights


def test_one_task_has_a_shift_and_no_interval(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up", task_id="task-003")
    weights = np.arange(1.0, 7.0)
    row = predicted_shifts(buffer, arrays, {BY_WEIGHTS: weights}, draws=200).set_index("statistic").loc["quality"]
    assert row["predicted"] == pytest.approx(np.average(arrays.returns, weights=weights) - arrays.returns.mean())
    assert np.isnan(row["low"])
    assert row["note"] == "one task: no interval"


def test_a_buffer_without_the_episodes_and_weights_that_do_not_fit_are_refused(buffer: ReplayBuffer, tmp_path) -> None:
    arrays = buffer.tensors("made_up")
    other = ReplayBuffer(tmp_path / "other")
    other.append([judged(0, tasks=20)])
    with pytest.raises(UnusableBuffer, match="lacks 119 of the 120"):
        predicted_shifts(other, arrays, {BY_WEIGHTS: np.ones(120)})
    for wrong in (np.ones(119), -np.ones(120), np.full(120, np.inf)):
        with pytest.raises(ValueError, match="weights"):
            predicted_shifts(buffer, arrays, {BY_WEIGHTS: wrong})


def test_every_learner_has_a_prediction_and_its_folds_answer_for_tasks_they_never_saw(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up")
    imitation = learn(arrays, AWConfig(method=Method.BC, epochs=1), folds=2)
    planned = learn(arrays, PlanConfig(members=1, rounds=0, min_visits=2, min_tasks=1), folds=2)
    assert list(learner_weights(arrays, imitation)) == [BY_WEIGHTS, BY_POLICY]
    assert list(learner_weights(arrays, planned)) == [BY_POLICY]
    assert held_out_probs(arrays, planned).sum(axis=1) == pytest.approx(np.ones(arrays.n_steps))
    with pytest.raises(ValueError, match="0 fold controllers"):
        held_out_probs(arrays, replace(imitation, folds=()))


def evaluation(*arms: str, tasks: int = 12, rollouts: int = 3) -> pl.DataFrame:
    """Episodes of arms on the same tasks, as an evaluation has them."""
    rows = []
    for number, arm in enumerate(arms):
        for index in range(tasks * rollouts):
            policy = Behaviour(0.1 + 0.2 * number, arm)
            made = judged(index, tasks=tasks, policy=policy, phase=f"eval {number}", split="eval")
            rows.append(
                {
                    "arm": arm,
                    "policy": arm,
                    "setting": made.setting,
                    "task_id": made.task_id,
                    "task_hash": made.task_hash,
                    "rollout": made.rollout,
                    "seed": made.seed,
                    "executor": made.executor,
                    "eval_status": made.eval_status.value,
                    "return": made.return_,
                    "maturity_strict": made.maturity["strict"],
                    "maturity_events": [
                        dict(zip(("preset", "event", "applicable", "fired"), row, strict=True))
                        for row in made.maturity_events
                    ],
                }
            )
    return pl.DataFrame(rows)


def test_against_an_arm_the_realised_shifts_are_those_of_the_comparison() -> None:
    episodes = evaluation("base", "learned")
    told = compare(episodes, "base", preset="strict", draws=500)
    events = told.events.query("arm == 'learned'").set_index("event")
    shifts = realised_shifts(episodes, "base", draws=500).set_index("statistic")
    for name in (EVENT, SOMETIMES):
        pairs = (("realised", "delta"), ("low", "ci_low"), ("high", "ci_high"), ("rate", "rate"))
        assert [shifts.loc[name, a] for a, _ in pairs] == pytest.approx([events.loc[name, b] for _, b in pairs])
    quality = told.rows.query("arm == 'learned' and outcome == 'quality'").iloc[0]
    assert shifts.loc["quality", ["realised", "low", "high"]].tolist() == pytest.approx(
        quality[["delta", "ci_low", "ci_high"]].tolist()
    )
    assert shifts.loc[NEVER, "note"] == "never applicable"


def test_against_the_behaviour_on_other_tasks_the_difference_is_that_of_the_two_rates() -> None:
    own, other = evaluation("learned"), evaluation("collector", tasks=15)
    other = other.with_columns(task_hash=pl.col("task_hash") + "-other")
    row = realised_shifts(own, other, draws=500).set_index("statistic").loc[EVENT]
    rates = [
        frame["maturity_events"].explode().struct.unnest().filter(pl.col("event") == EVENT)["fired"].mean()
        for frame in (own, other)
    ]
    assert row["realised"] == pytest.approx(rates[0] - rates[1])
    assert row["low"] < row["realised"] < row["high"]
    assert (row["reference"], row["n_tasks"]) == (BEHAVIOUR, 27)


def test_missing_episodes_are_left_out() -> None:
    episodes = evaluation("base", "learned")
    gone = pl.when(pl.int_range(pl.len()) == 40)
    missing = episodes.with_columns(
        gone.then(pl.lit("infra_missing")).otherwise("eval_status").alias("eval_status"),
        gone.then(None).otherwise("return").alias("return"),
    )
    shifts = realised_shifts(missing, "base", draws=200).set_index("statistic")
    assert shifts.loc["quality", "n_applicable"] == 35
    assert shifts.loc["quality", "n_applicable_reference"] == 36


def test_the_collected_episodes_of_the_same_tasks_come_first(buffer: ReplayBuffer) -> None:
    same, remark = behaviour_episodes(buffer, evaluation("learned"))
    assert remark == ""
    assert same is not None
    assert same["task_hash"].n_unique() == 12
    moved = evaluation("learned").with_columns(task_hash=pl.col("task_hash") + "-other")
    everything, remark = behaviour_episodes(buffer, moved)
    assert everything is not None
    assert len(everything) == 120
    assert "not run on all evaluated tasks" in remark
    nothing, remark = behaviour_episodes(buffer, moved.with_columns(executor=pl.lit("another")))
    assert nothing is None
    assert "no collected episodes of this executor" in remark


def test_an_unknown_reference_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="nope"):
        realised_shifts(evaluation("base", "learned"), "nope")


def test_tables_say_predicted_beside_realised_and_that_it_is_simulated(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up")
    few = np.where(np.arange(120) < 5, 1.0, 1e-6)
    weightings = {BY_WEIGHTS: np.linspace(0.1, 2, 120), BY_POLICY: few}
    shifts = predicted_shifts(buffer, arrays, weightings, draws=200)
    both = beside_predicted(realised_shifts(evaluation("base", "[b]"), "base", draws=200), shifts.assign(arm="[b]"))
    console = Console(file=io.StringIO(), width=200)
    console.print(render_predicted(shifts, plain=True))
    console.print(render_realised(both, plain=True))
    out = console.file.getvalue()
    for word in ("predicted shift, simulated", "insufficient support", "realised shift against base", "[b]", EVENT):
        assert word in out
    told = both.set_index("statistic")["predicted_weights"]
    assert told[EVENT] == pytest.approx(shifts["predicted"][STATISTICS.index(EVENT)])
    assert f"{told[EVENT]:+.3f}" in out


def test_records_fit_into_a_manifest_and_read_back(buffer: ReplayBuffer) -> None:
    arrays = buffer.tensors("made_up")
    shifts = predicted_shifts(buffer, arrays, {BY_WEIGHTS: np.linspace(0.1, 2, 120)}, draws=200)
    records = shift_records(shifts)
    canonical_json(records)  # refuses NaN
    assert records[STATISTICS.index(NEVER)]["predicted"] is None
    pd.testing.assert_frame_equal(pd.DataFrame(records), shifts, check_dtype=False)
