"""How a cell of a study came out: `status.json` in its folder.

A cell counts as interrupted from its first moment until it says otherwise, so that one that was killed needs nobody
to say so.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from harness_mdp.errors import InputError
from harness_mdp.hashing import Json

__all__ = ["STATUS_FILE", "CellState", "CellStatus", "read_status", "write_status", "write_whole"]

STATUS_FILE = "status.json"


class CellState(StrEnum):
    """Where a cell stands."""

    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Begun and not ended: stopped, killed, or still at work."""


@dataclass(frozen=True)
class CellStatus:
    """What `status.json` holds."""

    cell: str
    state: CellState
    message: str = ""
    """Why it failed, in a sentence."""
    traceback: str = ""
    """Where it failed; empty unless it did."""
    seconds: float | None = None
    """Wall time of the run that ended it."""
    facts: dict[str, Json] = field(default_factory=dict[str, Json])
    """Of a finished cell: see `experiments.cells.run_cell`."""


def read_status(folder: Path) -> CellStatus | None:
    """None where the cell was never begun.

    Raises:
        InputError: the file is there and cannot be read.
    """
    file = folder / STATUS_FILE
    try:
        value: dict[str, Json] = json.loads(file.read_text())
        state = CellState(value.pop("state"))
        return CellStatus(state=state, **value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(
            f"cannot be read ({problem})", file=file, remedy="Delete it, and the next run does the cell again"
        ) from problem


def write_status(folder: Path, status: CellStatus) -> None:
    """Write it whole or not at all; the folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / STATUS_FILE, json.dumps(asdict(status), indent=1, ensure_ascii=False) + "\n")


def write_whole(file: Path, text: str) -> None:
    """Write a small file so that a reader, or a kill, finds the old text or the new one."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_text(text)
    draft.replace(file)
