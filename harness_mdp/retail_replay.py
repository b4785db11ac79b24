"""How many expected final states of the retail database are met by replaying the reference actions.

`python -m harness_mdp.retail_replay path=DIR` reads the upstream files and `expected_final_state.json` in DIR,
prints the count for each tasks file and every miss, and ends with 0 if all are met, 1 if not, 2 for a wrong call
or a damaged file. `path=DIR/tasks_dev.json` replays one tasks file. Every reference action that a tool refuses is
printed with its task, number (from 0) and reason; it changes no exit code, since some are refused on purpose
upstream. `out=FILE` also writes the digest of every task of those files, in the same shape.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_mdp.errors import ConfigError, HarnessError, InputError
from harness_mdp.hashing import Json
from harness_mdp.settings.tau_retail.data import Database, Shop
from harness_mdp.settings.tau_retail.draft import Ran, play
from harness_mdp.settings.tau_retail.policy import one_line
from harness_mdp.settings.tau_retail.tasks import (
    Spec,
    folder_of,
    read_database,
    read_json,
    read_specs,
    require_users,
)

__all__ = ["FinalState", "final_state", "main", "replay_report", "run"]

_USAGE = "usage: python -m harness_mdp.retail_replay path=DIR|TASKS_FILE [out=FILE]"
EXPECTED = "expected_final_state.json"

FinalState = Mapping[str, Json]
"""`index`, `digest` (64 hex digits), `changed`, `tool_errors`."""
_REASON_CHARS = 160


def final_state(base: Database, spec: Spec, index: int) -> FinalState:
    """The state after the reference actions of task `index` on fresh data."""
    return _replayed(base, spec, index)[0]


def _replayed(base: Database, spec: Spec, index: int) -> tuple[FinalState, list[str]]:
    """The final state of a task, and a line for each of its actions that a tool refuses."""
    shop = Shop(base)
    ran = play(shop, spec.actions, ends_at_transfer=False)
    digest = shop.digest()
    errors = sum(not entry.outcome.ok for entry in ran)
    state: FinalState = {"index": index, "digest": digest, "changed": digest != base.digest, "tool_errors": errors}
    return state, [_refusal(number, entry) for number, entry in enumerate(ran) if not entry.outcome.ok]


def _refusal(number: int, entry: Ran) -> str:
    """`action 2, get_order_details: there is no order #W1`, on one line."""
    reason = one_line(entry.outcome.text.removeprefix("Error: "), _REASON_CHARS)
    what = "" if entry.outcome.valid else "arguments that do not fit: "
    return f"action {number}, {entry.call.name}: {what}{reason}"


def replay_report(path: Path) -> tuple[list[str], int, dict[str, list[FinalState]]]:
    """Lines to print, the number of misses, and the final state of every task by file stem.

    Args:
        path: the folder with the upstream files, or one of its tasks files.

    Raises:
        InputError: a file is missing or damaged, or names a task that is not there.
    """
    folder = folder_of(path)
    expected: Json = read_json(folder / EXPECTED)
    rows = expected if isinstance(expected, dict) else {}
    files = [name for name, listed in rows.items() if name.startswith("tasks_") and isinstance(listed, list)]
    if path != folder:
        files = [name for name in files if name == path.stem]
    if not files:
        key = "keys such as tasks_test" if path == folder else f"the key {path.stem}"
        raise InputError("no expected states", file=folder / EXPECTED, expected=f"a list under {key}")
    base = read_database(folder)
    lines: list[str] = []
    missed = 0
    states: dict[str, list[FinalState]] = {}
    for name in files:
        file = path if path != folder else folder / f"{name}.json"
        specs = read_specs(file)
        require_users(base, specs, file)
        replayed = [_replayed(base, spec, index) for index, spec in enumerate(specs)]
        states[name] = [state for state, _ in replayed]
        listed = [_expected_row(row, len(specs), folder / EXPECTED, name) for row in rows[name]]
        misses = [_difference(row, states[name][row["index"]]) for row in listed]
        lines.append(f"{name}: {misses.count('')} of {len(listed)} expected final states reproduced")
        lines += [f"  {name} {row['index']}: {miss}" for row, miss in zip(listed, misses, strict=True) if miss]
        missed += len(misses) - misses.count("")
        lines += _refused(name, [refusals for _, refusals in replayed])
    return lines, missed, states


def _refused(name: str, refusals: Sequence[Sequence[str]]) -> list[str]:
    """What the tools refused in a tasks file, task by task; nothing if they took everything."""
    tasks = sum(bool(each) for each in refusals)
    if not tasks:
        return []
    count = sum(map(len, refusals))
    listed = [f"  {name} {index}, {refusal}" for index, each in enumerate(refusals) for refusal in each]
    return [f"{name}: {count} reference actions in {tasks} tasks are refused (which may be meant):", *listed]


def _expected_row(row: Json, n: int, file: Path, field: str) -> Mapping[str, Json]:
    index = row.get("index") if isinstance(row, dict) else None
    if not isinstance(index, int) or not 0 <= index < n or not isinstance(row.get("digest"), str):
        raise InputError(f"row {row!r}", file=file, field=field, expected=f"an index below {n} and a digest")
    return row


def _difference(expected: Mapping[str, Json], found: FinalState) -> str:
    differing = [key for key in ("digest", "changed", "tool_errors") if key in expected and expected[key] != found[key]]
    return "; ".join(f"{key} is {found[key]}, expected {expected[key]}" for key in differing)


def _options(arguments: Sequence[str]) -> Mapping[str, Path]:
    given = {key: value for key, _, value in (argument.partition("=") for argument in arguments)}
    unknown = sorted(set(given) - {"path", "out"})
    if unknown or not given.get("path"):
        what = f"unknown option {unknown[0]!r}" if unknown else "no path"
        raise ConfigError(f"{what}; {_USAGE}")
    return {name: Path(value) for name, value in given.items()}


def run(arguments: Sequence[str]) -> int:
    """The command; its exit code."""
    if set(arguments) & {"-h", "--help"}:
        sys.stdout.write(f"{_USAGE}\n")
        return 0
    try:
        options = _options(arguments)
        lines, missed, states = replay_report(options["path"])
        if "out" in options:
            options["out"].write_text(json.dumps(states, indent=1) + "\n", encoding="utf-8")
    except HarnessError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    except OSError as problem:
        sys.stderr.write(f"{problem.filename}: {problem.strerror}\n")
        return 2
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if missed else 0


def main() -> None:
    """Run with the process's arguments and exit."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
