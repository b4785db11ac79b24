"""`python -m harness_mdp.explain`: what a controller learned, as a small tree and as its differences from base."""

from __future__ import annotations

import sys

from experiments.explain_config import ExplainConfig
from experiments.hydra_app import policy_among_policies, run_command

__all__ = ["main"]


def _explain(config: ExplainConfig) -> int:
    from experiments.explain import explain_policies
    from experiments.explain_printing import print_explanations

    print_explanations(config, explain_policies(config))
    return 0


def main() -> None:
    """Run the command."""
    sys.argv[1:] = policy_among_policies(sys.argv[1:])
    run_command("explain", _explain)


if __name__ == "__main__":
    main()
