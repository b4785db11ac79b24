"""`_harness/` beside the episodes: attempts, run manifests, dataset card, completion cache, re-scores of maturity.

Names with a leading underscore survive Delta's vacuum.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version

from buffers.card_text import card_text
from buffers.location import named_errors
from buffers.rescores import Rescores
from harness_mdp.errors import InputError
from harness_mdp.hashing import Json

__all__ = ["Attempt", "HarnessFolder", "installed_versions"]

_VERSIONS = ("harness-mdp", "d3rlpy", "deltalake", "numpy", "openai", "polars", "pyarrow", "torch")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at an episode that failed for reasons outside the agent: it has no return, never 0."""

    episode_id: str
    run: str
    setting: str
    task_id: str
    rollout: int
    policy: str
    kind: str
    """Type of the error, e.g. `APITimeoutError`."""
    message: str
    time: str
    """When, ISO 8601 in UTC."""


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that a figure depends on."""
    found = {"python": python_version()}
    for name in _VERSIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class HarnessFolder:
    """The folder `_harness/`; made when something is first written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def completions(self) -> Path:
        """SQLite file of the completion cache."""
        return self.path / "completions.sqlite"

    @property
    def rescores(self) -> Rescores:
        """Maturity scored again under other thresholds and weights."""
        return Rescores(self.path / "rescores")

    # -- attempts ----------------------------------------------------------------------------------------------

    def add_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Records failed attempts; safe from several processes, and whole or not at all."""
        if not attempts:
            return
        names = [field.name for field in fields(Attempt)]
        with named_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with self._attempts("be written") as db, db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS attempts (episode_id TEXT, run TEXT, setting TEXT, task_id TEXT, "
                "rollout INTEGER, policy TEXT, kind TEXT, message TEXT, time TEXT)"
            )
            db.executemany(
                f"INSERT INTO attempts ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",  # noqa: S608
                [tuple(_storable(value) for value in astuple(attempt)) for attempt in attempts],
            )

    def attempts(self) -> list[Attempt]:
        """All failed attempts, oldest first."""
        with named_errors(self.path, "be read"):
            if not self._attempts_file.exists():
                return []
        names = ", ".join(field.name for field in fields(Attempt))
        with self._attempts("be read") as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'attempts'").fetchone():
                return []
            return [Attempt(*row) for row in db.execute(f"SELECT {names} FROM attempts ORDER BY rowid")]  # noqa: S608

    def attempted_ids(self) -> frozenset[str]:
        """Episode ids with at least one failed attempt."""
        return frozenset(attempt.episode_id for attempt in self.attempts())

    @property
    def _attempts_file(self) -> Path:
        return self.path / "attempts.sqlite"

    @contextmanager
    def _attempts(self, doing: str) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._attempts_file, timeout=60.0)) as db:
                yield db
        except sqlite3.OperationalError as error:  # no permission, no space, or locked for a minute
            raise InputError(
                f"the record of failed attempts cannot {doing} ({error})",
                file=self._attempts_file,
                remedy="Check its permissions and the space that is left",
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"the record of failed attempts cannot {doing} ({error})",
                file=self._attempts_file,
                remedy="Restore it, or delete it: episodes are not affected, only the count of failures",
            ) from error

    # -- run manifests -----------------------------------------------------------------------------------------

    def write_run(self, run: str, *, passed: Sequence[str], resolved: Mapping[str, Json]) -> Path:
        """Writes the manifest of a run: configuration as passed and as resolved, and versions."""
        manifest = {
            "run": run,
            "passed": list(passed),
            "resolved": dict(resolved),
            "versions": installed_versions(),
        }
        return _write_json(self.path / "runs" / f"{run}.json", manifest)

    def runs(self) -> dict[str, Mapping[str, Json]]:
        """Manifest by run.

        Raises:
            InputError: a manifest that is no JSON object.
        """
        return {path.stem: _read_json(path) for path in sorted((self.path / "runs").glob("*.json"))}

    # -- dataset card ------------------------------------------------------------------------------------------

    def write_card(self, card: Mapping[str, Json]) -> Path:
        """Writes `card.json` and a README that says the same to a person (`ReplayBuffer.write_card` makes the card)."""
        _write_text(self.path / "README.md", card_text(card))
        return _write_json(self.path / "card.json", card)

    def card(self) -> Mapping[str, Json] | None:
        """The card, or None before one was written."""
        path = self.path / "card.json"
        with named_errors(path, "be read"):
            there = path.exists()
        return _read_json(path) if there else None


def _storable(value: str | int) -> str | int:
    """SQLite text is UTF-8; an error message may quote unpaired surrogates of a model's reply."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _write_json(path: Path, value: Json) -> Path:
    return _write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n")


def _write_text(path: Path, text: str) -> Path:
    """Whole or not at all: a reader never sees half a file. What is there already is left alone, on read-only too."""
    with named_errors(path):
        if path.is_file() and path.read_bytes() == text.encode():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    return path


def _read_json(path: Path) -> Mapping[str, Json]:
    try:
        value: Json = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", file=path, expected="JSON") from error
    if not isinstance(value, dict):
        raise InputError(f"holds a {type(value).__name__}", file=path, expected="a JSON object")
    return value
