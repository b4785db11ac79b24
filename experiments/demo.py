"""`make demo`: the main job on the embedded default: collect, train, evaluate, report, with no key and no network."""

from __future__ import annotations

from pathlib import Path

from experiments.config import DemoConfig, PortfolioPolicyConfig, SettingConfig, SimulatedConfig, StudyConfig
from experiments.evaluation import Evaluation
from experiments.study import run_study

__all__ = ["main"]


def _demo(config: DemoConfig) -> int:
    from experiments.printing import print_collection, print_demo, print_headline

    evaluations: list[Evaluation] = []
    for name in config.settings:
        print_headline(f"{name}: collect, train, evaluate with the simulated executor ({config.profile})")
        study = StudyConfig(
            setting=SettingConfig(name=name),
            executor=SimulatedConfig(profile=config.profile),
            policy=PortfolioPolicyConfig(),
            root=str(Path(config.root) / name),
            rollouts=config.rollouts,
            methods=["bc", "aw", "aw_linear"],
            eval_rollouts=config.eval_rollouts,
        )
        done = run_study(study)
        print_collection(str(done.buffer), done.collection)
        evaluations.append(done.evaluation)
    print_demo(config, evaluations)
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("demo", _demo)


if __name__ == "__main__":
    main()
