"""DB-Bench's tasks: records, from the files or the generator, taken apart into public, sealed and simulator's part."""

from __future__ import annotations

from pathlib import Path

from harness_mdp.hashing import Json
from harness_mdp.settings.dbbench.answers import LazyAnswers
from harness_mdp.settings.dbbench.files import Record, read_file, record_of
from harness_mdp.settings.dbbench.generate import generate
from harness_mdp.settings.dbbench.sql_worker import SqlPool, Table
from harness_mdp.settings.tasks import Sealed, Task, TaskStore

__all__ = ["generated_records", "store", "table_of"]


def generated_records(seed: int, n: int) -> list[Record]:
    """`n` generated tasks, read by the same code as the files."""
    return [
        record_of(value, f"generated-{seed}-{number}", file="generator", row=number)
        for number, value in enumerate(generate(seed, n), start=1)
    ]


def store(*, seed: int, n: int, path: Path | None, pool: SqlPool) -> TaskStore:
    """The tasks of `path` (all of them; `n` and `seed` are the generator's), or `n` generated ones.

    Raises:
        InputError: see `files.read_file`.
    """
    records = read_file(path) if path is not None else generated_records(seed, n)
    licence = {} if path is None else {"licence": "Apache-2.0 (THUDM/AgentBench)"}
    return TaskStore(
        tasks=tuple(Task(each.id, each.template, each.difficulty, _public(each)) for each in records),
        sealed={each.id: Sealed({"label": list(each.label), "digest": each.digest}) for each in records},
        answers=LazyAnswers(records, pool),
        **licence,
    )


def table_of(task: Task) -> Table:
    """The table in a task's public part."""
    public = task.public
    return Table(public["table"], tuple(public["columns"]), tuple(map(tuple, public["rows"])))


def _public(record: Record) -> dict[str, Json]:
    return {
        "question": record.question,
        "description": record.description,
        "kind": record.kind,
        "table": record.table.name,
        "columns": list(record.table.columns),
        "rows": [list(row) for row in record.table.rows],
    }
