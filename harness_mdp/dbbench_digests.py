"""How many table digests of a DB-Bench file the reference SQL reproduces on the setting's database.

`python -m harness_mdp.dbbench_digests path=FILE` (or a folder of files) runs the reference SQL of every INSERT,
UPDATE and DELETE task, prints the count and each miss with its reason. Exit code 0 if at least `share` (default
0.975, which is 195 of 200) are met, else 1; 2 for a wrong call or a damaged file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_mdp.errors import ConfigError, HarnessError
from harness_mdp.settings.dbbench.files import Record, read_file
from harness_mdp.settings.dbbench.scoring import digest_after
from harness_mdp.settings.dbbench.sql_worker import SqlPool, SqlResult, sql_pool

__all__ = ["Miss", "main", "misses", "run"]

_USAGE = "usage: python -m harness_mdp.dbbench_digests path=FILE [share=0.975]"


@dataclass(frozen=True, slots=True)
class Miss:
    """A task whose digest the reference SQL does not reproduce."""

    task_id: str
    reason: str
    sql: str


def misses(records: Sequence[Record], pool: SqlPool) -> tuple[int, list[Miss]]:
    """How many of `records` change the table, and those of them whose digest is missed."""
    changing = [record for record in records if record.kind != "select"]
    found: list[Miss] = []
    for record in changing:
        result = pool.run(record.table, [record.sql])[0]
        digest = digest_after(record.table, result)
        if digest != record.digest:
            found.append(Miss(record.id, _reason(record, result, digest), record.sql))
    return len(changing), found


def _reason(record: Record, result: SqlResult, digest: str) -> str:
    if result.error is not None:
        return f"the SQL fails in SQLite: {result.error}"
    if not result.added and not result.removed:
        return "the SQL changes no row in SQLite"
    changed = f"{len(result.added)} rows added, {len(result.removed)} removed"
    return f"the SQL runs ({changed}) but gives {digest}, the file has {record.digest}"


def run(arguments: Sequence[str]) -> int:
    """The command; its exit code."""
    if set(arguments) & {"-h", "--help"}:
        sys.stdout.write(f"{_USAGE}\n")
        return 0
    try:
        path, share = _options(arguments)
        n, found = misses(read_file(path), sql_pool())
        if not n:
            raise ConfigError(f"{path} holds no INSERT, UPDATE or DELETE task, so there is no digest to reproduce")
    except HarnessError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    met = n - len(found)
    lines = [f"{path.name}: {met} of {n} table digests reproduced by the reference SQL"]
    lines += [f"  {miss.task_id}: {miss.reason}\n    {' '.join(miss.sql.split())}" for miss in found]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if met >= share * n else 1


def _options(arguments: Sequence[str]) -> tuple[Path, float]:
    given = {name: value for name, _, value in (argument.partition("=") for argument in arguments)}
    unknown = sorted(set(given) - {"path", "share"})
    if unknown or not given.get("path"):
        what = f"unknown option {unknown[0]!r}" if unknown else "no path"
        raise ConfigError(f"{what}; {_USAGE}")
    try:
        share = float(given.get("share", "0.975"))
    except ValueError:
        raise ConfigError(f"share is {given['share']!r}; expected a number from 0 to 1; {_USAGE}") from None
    return Path(given["path"]), share


def main() -> None:
    """Run with the process's arguments and exit."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
