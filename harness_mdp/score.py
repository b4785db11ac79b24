"""`python -m harness_mdp.score`: score the maturity of stored episodes again, beside the scores there are."""

from __future__ import annotations

from experiments.config import ScoreConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _score(config: ScoreConfig) -> int:
    from experiments.printing import print_scoring
    from experiments.scoring import score

    print_scoring(config, score(config))
    return 0


def main() -> None:
    """Run the command."""
    run_command("score", _score)


if __name__ == "__main__":
    main()
