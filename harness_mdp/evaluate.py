"""`python -m harness_mdp.evaluate`: compare policies on identical tasks, rollouts and executor draws."""

from __future__ import annotations

from experiments.config import EvaluateConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _evaluate(config: EvaluateConfig) -> int:
    from experiments.evaluation import dry_run, evaluate
    from experiments.printing import print_dry_run, print_evaluation
    from experiments.scoring import stored_preset

    preset = stored_preset(config.maturity)
    if config.dry_run:
        print_dry_run(config, dry_run(config))
        return 0
    evaluation = evaluate(config)
    print_evaluation(config, evaluation, preset)
    return 1 if evaluation.outcome.infra_missing else 0


def main() -> None:
    """Run the command."""
    run_command("evaluate", _evaluate)


if __name__ == "__main__":
    main()
