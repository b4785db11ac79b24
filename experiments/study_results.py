"""The cells of a sweep put together: their states, and their evaluations as one frame with an arm a learner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from analysis.frame import INFRA_MISSING
from experiments.cell_status import CellState, CellStatus, read_status
from experiments.cells import EVALUATION_FILE, cell_folder

__all__ = ["Results", "SweptCell", "results", "swept_cells", "varying"]

_CONDITIONS = ("executor", "executor@evaluate_on", "evaluate_on", "evaluate", "setting", "split_by")
"""Keys of what an evaluation was made under; what else is swept tells learners apart."""
_NAMED_ANYWAY = ("setting", "train.seed", "method", "experiment")


@dataclass(frozen=True)
class SweptCell:
    """A cell as one sweep met it."""

    words: dict[str, str]
    """Key -> value of its command line."""
    before: bool
    """It was finished before this sweep came to it."""
    status: CellStatus
    folder: Path

    @property
    def has_results(self) -> bool:
        """Its evaluation went through."""
        return bool(self.status.facts) and (self.folder / EVALUATION_FILE).exists()


@dataclass(frozen=True)
class Results:
    """Cells that were evaluated alike and can share a table."""

    heading: str
    """What they have in common that other cells of the sweep do not; may be empty."""
    episodes: pl.DataFrame
    """As `Evaluation.episodes`, every episode once; `arm` names a learner with what is swept about it, `member` is the
    training seed, `trained_on` the executor a learner learned from (null for scripts)."""
    reference: str
    as_published: dict[str, str]
    """Arm -> script or method that the paper has figures of, from the paper's behaviour."""


def swept_cells(root: Path, notes: Path) -> list[SweptCell]:
    """The cells that a sweep left notes of, in its order."""
    found: list[SweptCell] = []
    for file in sorted(notes.glob("*.json")):
        note = json.loads(file.read_text())
        words = dict(word.lstrip("+").split("=", 1) for word in note["words"] if "=" in word)
        if note["cell"] is None:
            status = CellStatus("", CellState.FAILED, note["message"])
            found.append(SweptCell(words, before=False, status=status, folder=root))
            continue
        folder = cell_folder(root, note["cell"])
        status = read_status(folder) or CellStatus(note["cell"], CellState.INTERRUPTED)
        found.append(SweptCell(words, note["before"], status, folder))
    return found


def varying(cells: Sequence[SweptCell]) -> list[str]:
    """Keys that the sweep gave more than one value, in order of appearance."""
    keys = dict.fromkeys(key for cell in cells for key in cell.words)
    return [key for key in keys if len({cell.words.get(key) for cell in cells}) > 1]


def results(cells: Sequence[SweptCell], *, apart: bool = True) -> list[Results]:
    """The evaluations of `cells`, those made under like conditions together; none where no cell went through.

    Args:
        cells: of one sweep.
        apart: one for each executor and other condition; else all together, for the transfer table.
    """
    done = [cell for cell in cells if cell.has_results]
    keys = varying(done)
    alike: dict[tuple[str, ...], list[SweptCell]] = {}
    for cell in done:
        own = [key for key in keys if key != "setting" and _is_condition(key)]
        context = _told(cell, own) if apart else ()
        alike.setdefault(context, []).append(cell)
    return [_together(", ".join(context), group, keys) for context, group in alike.items()]


def _together(heading: str, cells: Sequence[SweptCell], keys: Sequence[str]) -> Results:
    frames: list[pl.DataFrame] = []
    published: dict[str, str] = {"base": "base", "forced_check": "forced_check"}
    for cell in cells:
        facts = cell.status.facts
        label = _label(cell, keys)
        learned = pl.col("arm").cast(pl.String) == facts["learner"]
        frames.append(
            pl.read_parquet(cell.folder / EVALUATION_FILE).with_columns(
                arm=pl.when(learned).then(pl.lit(label)).otherwise(pl.col("arm").cast(pl.String)),
                member=pl.lit(facts["seed"], pl.Int64),
                trained_on=pl.when(learned).then(pl.lit(facts["executor"])).otherwise(pl.lit(None, pl.String)),
            )
        )
        if facts["paper_behaviour"]:
            published[label] = facts["method"]
    joined = pl.concat(frames, how="diagonal_relaxed")
    # Scripts were evaluated by every cell of a seed: the same episodes, and a finished one counts before a missing one.
    finished_first = joined.sort(pl.col("eval_status") == INFRA_MISSING, maintain_order=True)
    episodes = finished_first.unique(["arm", "episode_id"], keep="first", maintain_order=True)
    scripts = [arm for arm in cells[0].status.facts["arms"] if arm != cells[0].status.facts["learner"]]
    order = {arm: at for at, arm in enumerate([*scripts, *dict.fromkeys(_label(cell, keys) for cell in cells)])}
    episodes = episodes.sort(pl.col("arm").replace_strict(order, return_dtype=pl.Int64), maintain_order=True)
    settings = {name: at for at, name in enumerate(dict.fromkeys(cell.status.facts["setting"] for cell in cells))}
    episodes = episodes.sort(pl.col("setting").replace_strict(settings, return_dtype=pl.Int64), maintain_order=True)
    return Results(heading, episodes, scripts[0], published)


def _label(cell: SweptCell, keys: Iterable[str]) -> str:
    """`aw`, or `aw (policy=portfolio)` where the sweep varies what it learned from or how."""
    told = _told(cell, [key for key in keys if key not in _NAMED_ANYWAY and not _is_condition(key)])
    learner = str(cell.status.facts["learner"])
    return f"{learner} ({', '.join(told)})" if told else learner


def _told(cell: SweptCell, keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{key}={cell.words[key]}" for key in keys if key in cell.words)


def _is_condition(key: str) -> bool:
    return any(key == group or key.startswith(f"{group}.") for group in _CONDITIONS)
