"""`python -m harness_mdp.train`: learn a controller from a buffer and save it."""

from __future__ import annotations

from experiments.config import TrainConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _train(config: TrainConfig) -> int:
    from experiments.printing import print_training
    from experiments.training import train

    print_training(config, train(config))
    return 0


def main() -> None:
    """Run the command."""
    run_command("train", _train)


if __name__ == "__main__":
    main()
