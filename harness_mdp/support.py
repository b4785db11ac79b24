"""`python -m harness_mdp.support`: which sensible state-action pairs lack data, and what would bring it."""

from __future__ import annotations

import sys

from experiments.hydra_app import run_command
from experiments.support_config import SupportConfig

__all__ = ["main"]


def _support(config: SupportConfig) -> int:
    from experiments.support import support, write_pairs
    from experiments.support_printing import print_support

    result = support(config)
    if config.out is not None:
        write_pairs(result, config.out)
    print_support(config, result)
    return 0


def main() -> None:
    """Run the command."""
    # `policy` is a group of configurations elsewhere, and here the name of one.
    sys.argv[1:] = [
        f"policies=[{word.removeprefix('policy=')}]" if word.startswith("policy=") else word for word in sys.argv[1:]
    ]
    run_command("support", _support)


if __name__ == "__main__":
    main()
