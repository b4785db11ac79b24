"""`python -m harness_mdp.collect`: log episodes of the frozen executor into a buffer."""

from __future__ import annotations

from experiments.config import CollectConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _collect(config: CollectConfig) -> int:
    from experiments.collection import collect, dry_run
    from experiments.printing import print_collection, print_dry_run

    if config.dry_run:
        print_dry_run(config, dry_run(config))
        return 0
    collection = collect(config)
    print_collection(config.buffer, collection)
    return 1 if collection.outcome.infra_missing else 0


def main() -> None:
    """Run the command."""
    run_command("collect", _collect)


if __name__ == "__main__":
    main()
