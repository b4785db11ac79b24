"""One cell of a study: collect -> train -> evaluate, each step resumable, so the same study again does what is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from experiments.collection import Collection, collect
from experiments.config import CollectConfig, EvaluateConfig, MethodConfig, StudyConfig, TrainConfig
from experiments.evaluation import Evaluation, evaluate
from experiments.training import Training, train
from harness_mdp.errors import HarnessError

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
                setting=config.setting,
                method=MethodConfig(method=method),
                buffer=str(buffer),
                out=str(root / "controllers" / f"{method}-{seed}"),
                seed=seed,
                device=config.device,
                executor=collection.executor,
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


def _require_whole(stopped: str | None) -> None:
    if stopped is not None:
        raise HarnessError(f"{stopped}; raise the limit and run the same study again to go on")


def _study(config: StudyConfig) -> int:
    from experiments.printing import print_study

    study = run_study(config)
    print_study(config, study.evaluation)
    missing = study.collection.outcome.infra_missing + study.evaluation.outcome.infra_missing
    return 1 if missing else 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("study", _study)


if __name__ == "__main__":
    main()
