"""What a sweep prints at its end. Nothing is computed here."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from experiments.cell_status import CellState
from experiments.study_results import SweptCell, varying

__all__ = ["print_cells", "print_tables"]

_STYLE = {CellState.DONE: "", CellState.FAILED: "red", CellState.INTERRUPTED: "yellow"}


def print_cells(cells: Sequence[SweptCell], *, not_begun: int | None = None) -> None:
    """Every cell with what is swept about it, how it came out and, unless it is done, why.

    Args:
        cells: that the sweep came to.
        not_begun: of a sweep that was stopped, how many more it has.
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=220, color_system=None, force_terminal=False)
    keys = varying(cells)
    table = Table(box=None, pad_edge=False)
    for key in (*keys, "state", "seconds", "cell", "why"):
        table.add_column(key, overflow="fold", justify="right" if key == "seconds" else "left")
    for cell in cells:
        status = cell.status
        state = f"{status.state.value}, before" if cell.before else status.state.value
        seconds = "" if status.seconds is None else f"{status.seconds:.1f}"
        values = [cell.words.get(key, "") for key in keys]
        table.add_row(*values, state, seconds, status.cell, status.message, style=_STYLE[status.state])
    console.print(table, highlight=False, markup=False)
    counts = {state: sum(cell.status.state is state for cell in cells) for state in CellState}
    said = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    before = sum(cell.before for cell in cells)
    print(f"\n{len(cells)} cell{'s' if len(cells) != 1 else ''}: {said}; {before} of them before, without new work")  # noqa: T201
    if counts[CellState.FAILED]:
        print("status.json of a failed cell holds its traceback; the same command runs what is not done")  # noqa: T201
    if not_begun is not None:
        more = f", {not_begun} more not begun" if not_begun > 0 else ""
        print(f"stopped{more}; the same command goes on with the cells that are not done")  # noqa: T201


def print_tables(text: str, where: str) -> None:
    """The tables as they were written."""
    sys.stdout.write(f"\n{text}\nwritten  {where}\n")
