"""What users run into at the edges of the commands: prices, limits, mixtures, leaks, places that cannot be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from buffers import ReplayBuffer
from experiments.config import PortfolioPolicyConfig, SettingConfig, SimulatedConfig, StudyConfig
from experiments.evaluation import evaluation_arms
from experiments.study import run_study
from experiments.tasks import load_tasks
from harness_mdp.errors import ConfigError
from tests.commands import command
from tests.loopback import Loopback, failure
from tests.test_bad_input import refused

SETTING = ("setting=planning", "setting.tasks=20")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A buffer of `planning` with two executors, and a controller learned from one of them."""
    root = tmp_path_factory.mktemp("edges")
    for profile in ("medium", "weak"):
        command(
            "harness_mdp.collect",
            *SETTING,
            f"executor.profile={profile}",
            "rollouts=2",
            f"buffer={root}/buffer",
        )
    executor = sorted(ReplayBuffer(root / "buffer").episodes_df()["executor"].unique())[0]
    command(
        "harness_mdp.train",
        "setting=planning",
        f"buffer={root}/buffer",
        f"from_executor={executor}",
        "method=bc",
        f"out={root}/bc",
    )
    return root


def test_prices_and_extra_fields_are_given_as_the_readme_says() -> None:
    out, _ = command(
        "harness_mdp.collect",
        *SETTING,
        "rollouts=1",
        "buffer=none",
        "dry_run=true",
        "executor=openai",
        "executor.model=NAME",
        "executor.prices={NAME: [0.4, 1.6]}",
        "executor.extra={top_k: 1}",
        "executor.extra.min_p=0.1",
        env={"OPENAI_API_KEY": "sk-test"},
    )
    assert "at most $" in out


def test_portfolio_weights_replace_the_default(tmp_path: Path) -> None:
    weights = "policy.weights={base: 0.5, check_revise: 0.4}"
    command("harness_mdp.collect", *SETTING, "rollouts=1", weights, f"buffer={tmp_path}/buffer")
    assert "weights" in refused(
        "harness_mdp.collect", *SETTING, "policy.weights={base: 0.5}", f"buffer={tmp_path}/other"
    )


def test_two_executors_are_not_mixed_unasked_and_either_can_be_chosen(place: Path, tmp_path: Path) -> None:
    arguments = ("setting=planning", f"buffer={place}/buffer", "method=bc", f"out={tmp_path}/bc")
    err = refused("harness_mdp.train", *arguments)
    assert "from_executor=" in err
    assert "mix_executors=true" in err
    command("harness_mdp.train", *arguments, "mix_executors=true")


def test_a_controller_is_not_evaluated_on_tasks_it_learned_from_unless_asked(place: Path) -> None:
    arguments = (*SETTING, f"buffer={place}/buffer", f"policies=[base,{place}/bc]", "rollouts=1", "split=train")
    err = refused("harness_mdp.evaluate", *arguments)
    assert "learned from 16 of the 16 tasks" in err
    out, _ = command("harness_mdp.evaluate", *arguments, "on_learned_tasks=true")
    assert "may have learned from" in out


def test_two_copies_of_a_controller_are_not_two_training_seeds(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "bc", tmp_path / "copy")
    err = refused(
        "harness_mdp.evaluate", *SETTING, f"buffer={place}/buffer", f"policies=[base,{place}/bc,{tmp_path}/copy]"
    )
    assert "same training seed" in err


def test_learners_whose_folders_share_a_name_stay_apart(place: Path, tmp_path: Path) -> None:
    folders: list[str] = []
    for beta in (0.1, 0.2, 0.3):
        folders.append(f"{tmp_path}/{beta}/aw")
        command(
            "harness_mdp.train",
            "setting=planning",
            f"buffer={place}/buffer",
            "mix_executors=true",
            f"method.beta={beta}",
            f"out={folders[-1]}",
        )
    tasks = load_tasks(SettingConfig(name="planning", tasks=20))
    arms = evaluation_arms(["base", *folders], tasks)
    assert [arm.name for arm in arms] == ["base", "aw", "aw (aw)", f"aw ({folders[2]})"]


def test_a_limit_in_an_evaluation_ends_it_cleanly_without_a_table(place: Path, tmp_path: Path) -> None:
    out, _ = command(
        "harness_mdp.evaluate",
        *SETTING,
        f"buffer={tmp_path}/buffer",
        "policies=[base,check_revise]",
        "limits.tokens=500",
        "concurrency=1",
    )
    assert "limits.tokens=500 is spent" in out
    assert "quality" not in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("seed=99999999999999999999999",), "seed="),
        (("setting.tokens=0",), "setting.tokens"),
        (("setting.usd=-1",), "setting.usd"),
        (("limits.tokens=-5",), "limits.tokens"),
        (("setting.difficulties=[odd]",), "odd"),
        (("setting.templates=[odd]",), "odd"),
        (("setting=custom", "setting.name=os:path"), "os:path"),
        (("policies=base",), "policies"),
        (("setting.tasks=5",), "one task"),
        (("out=table.csv",), ".parquet or .json"),
        (("out=/proc/x/table.json",), "/proc/x"),
    ],
)
def test_values_that_cannot_be_are_refused_before_anything_runs(
    tmp_path: Path, arguments: tuple[str, ...], named: str
) -> None:
    err = refused("harness_mdp.evaluate", *SETTING, f"buffer={tmp_path}/buffer", *arguments)
    assert named in err
    assert not (tmp_path / "buffer").exists()


def test_training_refuses_filters_that_it_would_ignore(place: Path, tmp_path: Path) -> None:
    err = refused(
        "harness_mdp.train", "setting=planning", "setting.tasks=3", f"buffer={place}/buffer", f"out={tmp_path}/x"
    )
    assert "setting.tasks" in err


def test_a_value_that_needs_quotes_is_told_so(tmp_path: Path) -> None:
    assert "quote" in refused("harness_mdp.collect", *SETTING, f"buffer={tmp_path}/übung")
    command("harness_mdp.collect", *SETTING, "rollouts=1", f"buffer='{tmp_path}/übung (1)'")
    assert ReplayBuffer(tmp_path / "übung (1)").stats.episodes == 16


def test_missing_episodes_come_with_their_reason(tmp_path: Path) -> None:
    with Loopback(lambda body, call: failure(500, "the model is on fire")) as server:
        out, _ = command(
            "harness_mdp.collect",
            *SETTING,
            "rollouts=1",
            f"buffer={tmp_path}/buffer",
            "executor=openai",
            "executor.model=m",
            "executor.max_retries=0",
            f"executor.base_url={server.base_url}",
            env={"OPENAI_API_KEY": "sk-test"},
            expect=1,
        )
    assert "missing because" in out
    assert "500" in out


def test_a_multirun_leaves_no_file_behind(tmp_path: Path) -> None:
    command(
        "harness_mdp.collect",
        "-m",
        *SETTING,
        "rollouts=1",
        "seed=0,1",
        f"buffer={tmp_path}/buffer",
        env={"PYTHONPATH": str(Path(__file__).parent.parent)},
        cwd=tmp_path,
    )
    assert {path.name for path in tmp_path.iterdir()} == {"buffer"}
    assert ReplayBuffer(tmp_path / "buffer").stats.episodes == 32


def test_two_studies_do_not_share_a_root(tmp_path: Path) -> None:
    def study(profile: str) -> StudyConfig:
        return StudyConfig(
            setting=SettingConfig(name="planning", tasks=10),
            executor=SimulatedConfig(profile=profile),
            policy=PortfolioPolicyConfig(),
            root=str(tmp_path),
            rollouts=2,
            eval_rollouts=1,
            train_seeds=[0],
        )

    first = run_study(study("medium"), quiet=True)
    assert run_study(study("medium"), quiet=True).evaluation.outcome.run == 0
    assert json.loads((tmp_path / "study.json").read_text())["executor"]["profile"] == "medium"
    with pytest.raises(ConfigError, match="another study"):
        run_study(study("weak"), quiet=True)
    assert first.evaluation.arms == ("base", "forced_check", "check_revise", "bc", "aw")
