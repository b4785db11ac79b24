"""`python -m harness_mdp.support`: which sensible state-action pairs lack data, and what would bring it."""

from __future__ import annotations

import sys

from experiments.hydra_app import policy_among_policies, run_command
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
    sys.argv[1:] = policy_among_policies(sys.argv[1:])
    run_command("support", _support)


if __name__ == "__main__":
    main()
