"""Collect -> train -> evaluate several learners of one setting under one root, each step resumable.

The command is a sweep over cells instead (`experiments.cells`, `experiments.study_sweep`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.collection import Collection, collect
from experiments.config import CollectConfig, EvaluateConfig, SettingConfig, StudyConfig, TrainConfig
from experiments.evaluation import Evaluation, evaluate
from experiments.method_config import method_config
from experiments.training import Training, train
from harness_mdp.errors import ConfigError, HarnessError
from harness_mdp.hashing import canonical_json

__all__ = ["Study", "main", "run_study"]


@dataclass(frozen=True)
class Study:
    """Everything one cell made."""

    buffer: Path
    collection: Collection
    trainings: tuple[Training, ...]
    evaluation: Evaluation


def run_study(config: StudyConfig, *, quiet: bool = False) -> Study:
    """Run one cell under `config.root`: `buffer/`, `controllers/<method>-<seed>/`.

    Raises:
        HarnessError: a step failed or stopped at a spending limit; what is finished is kept.
    """
    root = Path(config.root)
    _claim(root, config)
    buffer = root / "buffer"
    collection = collect(
        CollectConfig(
            setting=config.setting,
            executor=config.executor,
            policy=config.policy,
            buffer=str(buffer),
            rollouts=config.rollouts,
            seed=config.seed,
            split_by=config.split_by,
            concurrency=config.concurrency,
            limits=config.limits,
        ),
        quiet=quiet,
    )
    _require_whole(collection.outcome.stopped)
    trainings = tuple(
        train(
            TrainConfig(
                setting=SettingConfig(name=config.setting.name),  # the buffer says which tasks
                method=method_config(method),
                buffer=str(buffer),
                out=str(root / "controllers" / f"{method}-{seed}"),
                seed=seed,
                device=config.device,
                from_executor=collection.executor,
            )
        )
        for method in config.methods
        for seed in config.train_seeds
    )
    evaluation = evaluate(
        EvaluateConfig(
            setting=config.setting,
            executor=config.executor,
            buffer=str(buffer),
            policies=[*config.scripts, *(str(training.out) for training in trainings)],
            rollouts=config.eval_rollouts,
            seed=config.eval_seed,
            split_by=config.split_by,
            concurrency=config.concurrency,
            limits=config.limits,
        ),
        quiet=quiet,
    )
    _require_whole(evaluation.outcome.stopped)
    return Study(buffer, collection, trainings, evaluation)


def _claim(root: Path, config: StudyConfig) -> None:
    """Marks `root` as this study's, so that two cells of a grid never share controllers.

    Raises:
        ConfigError: it is another's.
    """
    mark = root / "study.json"
    # How much is run may grow, and where and how fast changes nothing; all else is another study.
    free = ("root", "device", "concurrency", "limits", "rollouts", "eval_rollouts", "train_seeds", "methods", "scripts")
    mine = canonical_json({key: value for key, value in asdict(config).items() if key not in free})
    if not mark.exists():
        root.mkdir(parents=True, exist_ok=True)
        mark.write_text(mine + "\n")
    elif mark.read_text().strip() != mine:
        raise ConfigError(f"{root} holds another study (see {mark}); choose another root, one for each study")


def _require_whole(stopped: str | None) -> None:
    if stopped is not None:
        raise HarnessError(f"{stopped}; raise the limit and run the same study again to go on")


def main() -> None:
    """Run the command: a sweep over cells (`experiments.cells`), be it one."""
    import sys

    from experiments.hydra_app import run_command
    from experiments.study_sweep import SweepStart, expect_shown, finish_sweep, refuse_cell, sweep_cell, sweep_words

    SweepStart.config = None
    if not {"--help", "-h"} & set(sys.argv[1:]):
        try:
            sys.argv[1:] = sweep_words(sys.argv[1:])
            expect_shown(sys.argv[1:])
        except HarnessError as problem:
            sys.stderr.write(f"harness-mdp study: {problem}\n")
            sys.exit(problem.exit_code)
    run_command("study", sweep_cell, refused=refuse_cell, after=finish_sweep)


if __name__ == "__main__":
    main()
