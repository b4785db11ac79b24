"""What a guard refused is counted in the evaluation and said after its table."""

from __future__ import annotations

import re

import pytest

from controllers.config import LinearQConfig
from experiments.collection import collect
from experiments.config import (
    CollectConfig,
    EvaluateConfig,
    PortfolioPolicyConfig,
    SettingConfig,
    SimulatedConfig,
    TrainConfig,
)
from experiments.evaluation import evaluate
from experiments.method_config import MethodConfig
from experiments.printing import print_evaluation
from experiments.training import train
from harness_mdp.errors import ConfigError

TASKS = SettingConfig(name="tau_retail", tasks=20)
SIMULATED = SimulatedConfig()


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    place = tmp_path_factory.mktemp("guard")
    collect(CollectConfig(TASKS, SIMULATED, PortfolioPolicyConfig(), str(place / "b"), rollouts=4), quiet=True)
    return place


def trained(where, guard: str, name: str) -> str:
    out = str(where / name)
    method = MethodConfig(method="bc", epochs=2)
    train(TrainConfig(SettingConfig(name="tau_retail"), method, str(where / "b"), out, guard=guard, folds=0))
    return out


def test_refusals_are_counted_by_reason_and_said(where, capsys):
    config = EvaluateConfig(TASKS, SIMULATED, str(where / "b"), ["base", trained(where, "advantage", "bc")], rollouts=2)
    found = evaluate(config, quiet=True)
    refusals = found.refusals["bc+guard"]
    steps = found.episodes.filter(arm="bc+guard")["n_steps"].sum()
    assert refusals.decisions == steps
    assert 0 < refusals.share <= 1
    print_evaluation(config, found, "paper")
    said = re.search(r"refused ([\d.]+)% of ([\d,]+) decisions \(support", capsys.readouterr().out)
    assert said is not None
    assert float(said[1]) == pytest.approx(100 * refusals.share, abs=0.06)


def test_an_arm_without_a_guard_has_no_refusals(where):
    config = EvaluateConfig(TASKS, SIMULATED, str(where / "b"), ["base", trained(where, "none", "free")], rollouts=2)
    assert evaluate(config, quiet=True).refusals == {}


def test_an_unknown_guard_is_refused_by_name(where):
    with pytest.raises(ConfigError, match=r"guard.*'maybe'.*advantage"):
        trained(where, "maybe", "never")


def test_a_guard_asks_what_the_learner_of_that_name_would_be():
    from controllers.guard import GuardConfig

    assert GuardConfig().linear == LinearQConfig()
