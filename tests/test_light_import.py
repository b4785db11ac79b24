"""`import harness_mdp` is quiet and light; every command lists itself."""

from __future__ import annotations

import subprocess
import sys

from harness_mdp.__main__ import COMMANDS
from tests.commands import command

HEAVY = ("torch", "d3rlpy", "matplotlib", "sklearn", "pandas", "hydra", "openai", "polars")


def test_import_prints_nothing_and_loads_no_heavy_library() -> None:
    code = (
        "import sys, harness_mdp, harness_mdp.runner, harness_mdp.executors.simulated, harness_mdp.scoring.maturity\n"
        f"print([name for name in {HEAVY} if name in sys.modules], end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]", "")


def test_the_console_script_lists_the_commands() -> None:
    out, _ = command("harness_mdp")
    for name, (module, _) in COMMANDS.items():
        assert name in out
        assert f"python -m {module}" in out


def test_every_command_explains_itself() -> None:
    for module, _ in COMMANDS.values():
        out, _ = command(module, "--help")
        assert out.strip()
