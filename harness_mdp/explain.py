"""`python -m harness_mdp.explain`: what a controller learned, as a small tree and as its differences from base."""

from __future__ import annotations

import sys

from experiments.explain_config import ExplainConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _explain(config: ExplainConfig) -> int:
    from experiments.explain import explain_policies
    from experiments.explain_printing import print_explanations

    print_explanations(config, explain_policies(config))
    return 0


def main() -> None:
    """Run the command."""
    # `policy` is a group of configurations elsewhere, and here the name of one.
    sys.argv[1:] = [
        f"policies=[{word.removeprefix('policy=')}]" if word.startswith("policy=") else word for word in sys.argv[1:]
    ]
    run_command("explain", _explain)


if __name__ == "__main__":
    main()
