"""`python -m harness_mdp.export`: write episodes as Parquet tables, a Minari dataset or ATIF trajectories."""

from __future__ import annotations

from experiments.export_config import ExportConfig
from experiments.hydra_app import run_command

__all__ = ["main"]


def _export(config: ExportConfig) -> int:
    from experiments.export import export
    from experiments.printing import print_export

    print_export(config, export(config))
    return 0


def main() -> None:
    """Run the command."""
    run_command("export", _export)


if __name__ == "__main__":
    main()
