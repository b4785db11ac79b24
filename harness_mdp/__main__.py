"""`harness-mdp`: lists the commands, or runs one: `harness-mdp collect KEY=VALUE ...`."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "collect": ("harness_mdp.collect", "log episodes of the frozen executor into a buffer"),
    "train": ("harness_mdp.train", "learn a controller from a buffer and save it"),
    "evaluate": ("harness_mdp.evaluate", "compare policies on identical tasks, rollouts and draws"),
    "ope": ("harness_mdp.ope", "estimate policies from a buffer, and whether it supports that"),
    "explain": ("harness_mdp.explain", "what a controller learned: a small tree, and where it differs from base"),
    "support": ("harness_mdp.support", "which sensible state-action pairs lack data, and what would bring it"),
    "verify": ("harness_mdp.verify", "fold every stored episode again, report what does not replay"),
    "score": ("harness_mdp.score", "score the maturity of stored episodes again, under other thresholds"),
    "export": ("harness_mdp.export", "write episodes as Parquet tables, a Minari dataset or ATIF trajectories"),
    "report": ("harness_mdp.report", "a buffer as one page: did it help, where, at what cost, can I believe it"),
    "study": ("experiments.study", "collect, train, evaluate: a sweep over cells, ending in tables"),
    "paper-table": ("experiments.paper_table", "every setting at the paper's size, beside the paper's figures"),
    "local-server": ("experiments.local_server", "serve SmolLM2-135M-Instruct on loopback (extra `local`)"),
    "dbbench-digests": ("harness_mdp.dbbench_digests", "replay the reference SQL of DB-Bench files, count digests met"),
    "retail-replay": (
        "harness_mdp.retail_replay",
        "replay the reference actions of tau-bench retail, count states met",
    ),
}
"""Name -> (module with `main()`, what it does)."""


def main() -> None:
    """Dispatch on the first argument."""
    arguments = sys.argv[1:]
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does, so that a setting of one's own is found
    if arguments and arguments[0] in COMMANDS:
        sys.argv = [f"harness-mdp {arguments[0]}", *arguments[1:]]
        import_module(COMMANDS[arguments[0]][0]).main()
        return
    wanted_help = not arguments or arguments[0] in ("-h", "--help", "help")
    out = sys.stdout if wanted_help else sys.stderr
    if not wanted_help:
        out.write(f"harness-mdp: unknown command {arguments[0]!r}\n")
    text = "usage: harness-mdp COMMAND [KEY=VALUE ...]   (COMMAND --help lists its keys)\n\n" + "".join(
        f"  {name:<16} {what}\n{'':<18} = python -m {module}\n" for name, (module, what) in COMMANDS.items()
    )
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:  # `harness-mdp | head -1`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    sys.exit(0 if wanted_help else 2)


if __name__ == "__main__":
    main()
