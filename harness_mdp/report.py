"""`python -m harness_mdp.report`: a buffer as one page: did it help, where, at what cost, can I believe it."""

from __future__ import annotations

from experiments.hydra_app import run_command
from experiments.report_config import ReportConfig

__all__ = ["main"]


def _report(config: ReportConfig) -> int:
    from experiments.printing import print_report
    from experiments.report import report

    print_report(config, report(config))
    return 0


def main() -> None:
    """Run the command."""
    run_command("report", _report)


if __name__ == "__main__":
    main()
