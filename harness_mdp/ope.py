"""`python -m harness_mdp.ope`: estimate policies from a buffer, and say whether it supports that."""

from __future__ import annotations

import sys

from experiments.hydra_app import policy_among_policies, run_command
from experiments.ope_config import OpeConfig

__all__ = ["UNSUPPORTED", "main"]

UNSUPPORTED = 3
"""Exit code of `require_support=true` where a policy has insufficient support."""


def _ope(config: OpeConfig) -> int:
    from analysis.ope import SupportVerdict
    from experiments.ope import ope, write_values
    from experiments.ope_printing import print_ope

    result = ope(config)
    if config.out is not None:
        write_values(result, config.out)
    print_ope(config, result)
    refused = any(target.value.support.verdict is SupportVerdict.INSUFFICIENT for target in result.targets)
    return UNSUPPORTED if config.require_support and refused else 0


def main() -> None:
    """Run the command."""
    sys.argv[1:] = policy_among_policies(sys.argv[1:])
    run_command("ope", _ope)


if __name__ == "__main__":
    main()
