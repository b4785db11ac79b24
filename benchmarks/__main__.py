"""All benchmarks, or those named: `python -m benchmarks [NAME ...] [--write FILE]`.

Every line is ours beside a peer, measured in turn in the same run; ratios say something, lone times do not. With
`--write`, the table also replaces what stands between the two marks in FILE (docs/performance.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from benchmarks.table import Report, machine, markdown, text

NAMES = ("training", "decision", "collection", "buffer", "bootstrap")
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def main(arguments: Sequence[str]) -> int:
    """Run, print, perhaps write; 0 also where a goal is missed, since this measures and does not judge."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--write", type=Path, metavar="FILE", help="fill in the table between the marks of FILE")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; expected one of {', '.join(NAMES)}")
    if options.write is not None:
        split_at_marks(options.write)  # before minutes of measuring, not after
    print(machine(), flush=True)
    reports: list[Report] = []
    for name in options.names or NAMES:
        measure: Callable[[], Report] = import_module(f"benchmarks.{name}").measure
        reports.append(measure())
        print("\n" + text(reports[-1]), end="", flush=True)
    missed = [f"{report.title}: {line.name}" for report in reports for line in report.lines if line.met is False]
    print(f"\nGoals missed: {'; '.join(missed) or 'none'}")
    if options.write is not None:
        before, after = split_at_marks(options.write)
        command = " ".join(["python -m benchmarks", *options.names])
        head = f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, on {machine()}."
        options.write.write_text(f"{before}{BEGIN}\n\n{head}\n\n{markdown(reports)}\n\n{END}{after}", encoding="utf-8")
    return 0


def split_at_marks(file: Path) -> tuple[str, str]:
    """What stands before and after the marks of `file`; a message and exit code 1 where they are missing."""
    content = file.read_text(encoding="utf-8") if file.exists() else ""
    before, begin, rest = content.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{file}: expected the lines {BEGIN} and {END}, between which the table goes")
    return before, after


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
