"""A sweep over cells: what each job of Hydra's does, and what is said at the end, whatever launched the jobs.

A job may run in another process or on another machine, so it leaves a note under `ROOT/sweeps/<sweep>/`; the process
that began the sweep reads them when all is over. A sweep is named by its command line, so the same command has the
same notes.
"""

from __future__ import annotations

import json
import re
import sys
from math import prod
from pathlib import Path
from typing import Any, cast

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf

from experiments.cell_names import cell_name
from experiments.cell_status import CellState, write_whole
from experiments.command_words import group_options
from experiments.study_config import CellConfig
from harness_mdp.errors import ConfigError, HarnessError
from harness_mdp.hashing import Json, digest

__all__ = ["SweepStart", "expect_shown", "finish_sweep", "refuse_cell", "sweep_cell", "sweep_words"]

LEFT_OUT = {"setting": ("custom", "tabular"), "policy": ("controller",)}
"""Options that a glob does not mean: they name no setting (policy) by themselves, or are for proofs. `setting=tabular`
still chooses it."""

_NOT_THE_SWEEP = ("paths.", "hydra.", "hydra/", "out=", "reference=", "concurrency=", "device=", "limits.", "tables=")


class SweepStart(Callback):
    """Hydra calls it once, where the sweep begins: the notes of an earlier run are cleared away."""

    config: DictConfig | None = None
    """What the cells have in common."""
    cells: int = 0
    """How many the sweep has."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002  Hydra's signature
        """Remember the configuration for the end."""
        SweepStart.config = config
        SweepStart.cells = _cells_of(config)
        for note in _notes(config).glob("*.json"):
            note.unlink()


def _cells_of(config: DictConfig) -> int:
    """The product of what is swept, where the command line wins over the preset, as in Hydra's sweeper."""
    presets = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    parser = OverridesParser.create()
    swept = {o.get_key_element(): o for o in parser.parse_overrides([*presets, *config.hydra.overrides.task])}
    return prod(sum(1 for _ in o.sweep_iterator()) for o in swept.values() if o.is_sweep_override())


def sweep_words(words: list[str]) -> list[str]:
    """The command line as Hydra gets it: globs as lists without what they do not mean, and the sweep's name.

    Raises:
        ConfigError: a glob that means nothing.
    """
    if any(word.startswith("-") and word not in ("-m", "--multirun") for word in words):
        return words  # --cfg and its like
    found = [_listed(word) for word in words if word not in ("-m", "--multirun")]
    if not any(word.startswith("paths.sweep=") for word in found):
        named = sorted(word for word in found if not word.startswith(_NOT_THE_SWEEP))
        found.append(f"paths.sweep={digest(named, 12)}")
    return ["--multirun", *found]


def _listed(word: str) -> str:
    """`setting=glob(*)` as `setting=coding,dbbench,...`; any other word as it is."""
    if not re.match(r"^[\w@/]+=glob\(.*\)$", word):
        return word
    override = OverridesParser.create().parse_override(word)
    group = override.key_or_group
    value: Any = override.value()
    if not isinstance(value, Glob):
        return word
    options = [name for name in group_options(group) if name not in LEFT_OUT.get(group, ())]
    if chosen := value.filter(options):
        return f"{override.get_key_element()}={','.join(chosen)}"
    raise ConfigError(f"{word} means nothing; expected a pattern of some of {', '.join(options) or 'the options'}")


def expect_shown(words: list[str]) -> None:
    """Refuse `tables`, `reference` and `out` that cannot be, before any work is done for them.

    Raises:
        HarnessError: an unknown table, a file that cannot be read, a page without a place for the tables.
    """
    from experiments.markdown import expect_place
    from experiments.paper_table import published_figures
    from experiments.study_tables import expect_tables

    for word in words:
        if not re.match(r"^(tables|reference|out)=", word):
            continue
        try:
            override = OverridesParser.create().parse_override(word)
        except HydraException:
            continue  # Hydra says it better
        value: Any = override.value()
        if override.key_or_group == "tables" and isinstance(value, list):
            expect_tables([str(name) for name in cast("list[object]", value)])
        elif override.key_or_group == "reference" and isinstance(value, str):
            published_figures(value)
        elif override.key_or_group == "out" and isinstance(value, str):
            expect_place(Path(value), "study")


def sweep_cell(config: CellConfig) -> int:
    """One job: run the cell unless it is finished, and leave a note."""
    from experiments.cells import finished_cell, run_cell, say
    from experiments.paper_table import published_figures
    from experiments.study_tables import expect_tables

    expect_tables(config.tables)
    published_figures(config.reference)
    if not config.evaluate.scripts:
        raise ConfigError("evaluate.scripts is empty; expected scripts, first the one that differences are taken to")
    job = HydraConfig.get()
    name = cell_name(config)
    before = finished_cell(config.paths.root, name) is not None
    _leave_note(_folder(config.paths.root, config.paths.sweep), job.job.num, _words(job.overrides.task), name, before)
    status = run_cell(config, quiet=not sys.stderr.isatty())
    if not before:
        took = "" if status.seconds is None else f" in {status.seconds:.1f} s"
        say(f"{name}: {status.state.value}{took}{f', {status.message}' if status.message else ''}")
    return 0 if status.state is CellState.DONE else 1


def refuse_cell(config: DictConfig, error: HarnessError) -> int:
    """A job whose configuration is no cell's: a failed cell without a name."""
    from experiments.cells import say

    job = HydraConfig.get()
    words = _words(job.overrides.task)
    _leave_note(_notes(config), job.job.num, words, None, before=False, message=str(error))
    say(f"{' '.join(words)}: failed, {error}")
    return 1


def _leave_note(folder: Path, job: int, words: list[str], cell: str | None, before: bool, message: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    note: dict[str, Json] = {"cell": cell, "words": words, "before": before, "message": message}
    write_whole(folder / f"{int(job):05d}.json", json.dumps(note, ensure_ascii=False) + "\n")


def _words(task: Any) -> list[str]:  # a ListConfig
    return [str(word) for word in task if not str(word).startswith("paths.sweep=")]


def _notes(config: DictConfig) -> Path:
    return _folder(config.paths.root, config.paths.sweep)


def _folder(root: str, sweep: str) -> Path:
    return Path(root) / "sweeps" / (sweep or "unnamed")


def finish_sweep(code: int) -> int:
    """Print the cells and their tables, write the tables; returns the exit code.

    0 when every cell is done, 1 when one is not, 130 when the sweep was stopped.
    """
    from experiments.study_printing import print_cells
    from experiments.study_results import swept_cells

    config = SweepStart.config
    if config is None:
        return code
    try:
        root = Path(config.paths.root)
        cells = swept_cells(root, _notes(config))
        if not cells:
            return code
        print_cells(cells, not_begun=SweepStart.cells - len(cells) if code == 130 else None)
        _tables(config, root, cells)
    except HarnessError as problem:
        sys.stderr.write(f"harness-mdp study: {problem}\n")
        return problem.exit_code
    if code == 130:
        return code
    return max(code, 0 if all(cell.status.state is CellState.DONE for cell in cells) else 1)


def _tables(config: DictConfig, root: Path, cells: list[Any]) -> None:
    from experiments.markdown import replace_between
    from experiments.paper_table import published_figures
    from experiments.scoring import stored_preset
    from experiments.study_printing import print_tables
    from experiments.study_tables import TableWishes, study_tables

    wishes = TableWishes(
        list(config.tables),
        stored_preset(OmegaConf.to_object(config.maturity)),  # pyright: ignore[reportArgumentType]  a dataclass of ours
        published_figures(config.reference),
    )
    text = study_tables(cells, root, wishes)
    if not text:
        return
    file = _notes(config).with_suffix(".md")
    write_whole(file, text)
    if config.out is not None:
        replace_between(Path(config.out), "study", text)
    print_tables(text, str(config.out or file))
