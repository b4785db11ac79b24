"""Small buffers for the tests of the report: collected and evaluated ones, and ones of made-up episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analysis.report import MadeBy, Page, build_page
from buffers import ReplayBuffer
from controllers.network import initial_weights
from controllers.policy import ControllerPolicy
from controllers.saved import save_controller
from experiments.collection import collect
from experiments.config import (
    CollectConfig,
    EvaluateConfig,
    PortfolioPolicyConfig,
    SettingConfig,
    SimulatedConfig,
)
from experiments.evaluation import Evaluation, evaluate
from harness_mdp.mdp import Episode
from harness_mdp.settings import open_setting
from tests.episodes import Behaviour, episode
from tests.saved_controllers import manifest

SETTING = SettingConfig(name="multi_tool", tasks=30)
SCRIPTS = ("base", "forced_check", "check_revise")

MADE_BY = MadeBy(
    passed=["buffer=here"], resolved={"buffer": "here"}, versions={"harness-mdp": "0"}, git_commit="c0ffee"
)

WICKED = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
"""What a model may write to make a page do its will."""


def page(path: Path | str, **changes) -> Page:
    return build_page(str(path), made_by=MADE_BY, **changes)


def controllers(folder: Path, name: str = "aw", seeds: int = 2) -> list[str]:
    """Untrained controllers of one learner, one a training seed."""
    setting = open_setting(SETTING.name)
    schema = setting.schema
    made: list[str] = []
    for seed in range(seeds):
        about = manifest(
            name=name,
            method=name,
            seed=seed,
            feature_schema_id=schema.id,
            feature_names=schema.names,
            settings={schema.setting: schema.setting_version},
        )
        save_controller(folder / f"{name}-{seed}", ControllerPolicy(initial_weights(len(schema), 8, seed=seed)), about)
        made.append(str(folder / f"{name}-{seed}"))
    return made


def collected(path: Path) -> None:
    collect(
        CollectConfig(
            setting=SETTING,
            executor=SimulatedConfig(),
            policy=PortfolioPolicyConfig(),
            buffer=str(path),
            rollouts=2,
        ),
        quiet=True,
    )


def evaluated(path: Path, policies: list[str], rollouts: int = 1) -> Evaluation:
    config = EvaluateConfig(
        setting=SETTING, executor=SimulatedConfig(), buffer=str(path), policies=policies, rollouts=rollouts
    )
    return evaluate(config, quiet=True)


def made_up(path: Path, *, arms=("base", "check_revise"), tasks: int = 4, rollouts: int = 2, without=(), **changes):
    """Evaluation episodes of a setting that is not installed, without a manifest; arms are paired but for `without`."""
    buffer = ReplayBuffer(path)
    rows: list[Episode] = []
    for number, arm in enumerate(arms):
        policy = Behaviour(epsilon=0.2 + 0.1 * number, name=arm)
        for index in range(tasks * rollouts):
            made = episode(index, tasks=tasks, policy=policy, phase="eval", split="eval", run="eval-1", **changes)
            if (arm, made.task_id, made.rollout) not in without:
                rows.append(replace(made, cost_usd=0.001))
    buffer.append(rows)
    return buffer
