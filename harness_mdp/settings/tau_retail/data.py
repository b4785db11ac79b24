"""The retail shop's database and a copy-on-write view of it (setting `tau_retail`).

A database is read once and never changed. A `Shop` is what tools run on: it keeps changed copies of the few
records that they touch, so a dry run costs a few records, never a copy of the whole database. Two states of one
database are equal exactly when the records that differ from it are.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness_mdp.hashing import Json, canonical_json

__all__ = ["TABLES", "Database", "Record", "Shop", "database", "remember"]

Record = dict[str, Any]
"""One user, order or product, in the shape of the upstream JSON files."""

Key = tuple[str, str]
"""(table, record id)"""

TABLES = ("orders", "products", "users")


@dataclass(frozen=True, eq=False)
class Database:
    """Orders, products and users by id; to be read only."""

    orders: Mapping[str, Record]
    products: Mapping[str, Record]
    users: Mapping[str, Record]

    def table(self, name: str) -> Mapping[str, Record]:
        """One of `TABLES`."""
        return {"orders": self.orders, "products": self.products, "users": self.users}[name]

    @cached_property
    def texts(self) -> Mapping[str, Mapping[str, str]]:
        """Canonical JSON by table and record id; made once, so that a digest costs only what changed."""
        return {name: {key: canonical_json(row) for key, row in self.table(name).items()} for name in TABLES}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of `{orders, products, users}`, 64 hex digits."""
        return self.state_digest({})

    def state_digest(self, changes: Mapping[Key, Record]) -> str:
        """The same digest with `changes` applied."""
        sha = hashlib.sha256()
        for number, name in enumerate(TABLES):
            texts = dict(self.texts[name])
            texts.update((key, canonical_json(row)) for (table, key), row in changes.items() if table == name)
            body = ",".join(f"{canonical_json(key)}:{texts[key]}" for key in sorted(texts))
            sha.update(f'{"," if number else "{"}"{name}":{{{body}}}'.encode())
        sha.update(b"}")
        return sha.hexdigest()

    @cached_property
    def by_email(self) -> Mapping[str, str]:
        """User id by lower-case email; the first user of the file where several share one."""
        found: dict[str, str] = {}
        for user_id, user in self.users.items():
            found.setdefault(str(user["email"]).lower(), user_id)
        return found

    @cached_property
    def by_name(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """User ids by lower-case first and last name, in file order."""
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for user_id, user in self.users.items():
            name = (str(user["name"]["first_name"]).lower(), str(user["name"]["last_name"]).lower())
            found[name] = (*found.get(name, ()), user_id)
        return found

    @cached_property
    def by_zip(self) -> Mapping[str, tuple[str, ...]]:
        """User ids by the zip code of their default address, in file order."""
        found: dict[str, tuple[str, ...]] = {}
        for user_id, user in self.users.items():
            code = str(user["address"]["zip"])
            found[code] = (*found.get(code, ()), user_id)
        return found


@dataclass
class Shop:
    """A view of a database that tools read and change; the database itself stays as it is."""

    base: Database
    _changed: dict[Key, Record] = field(default_factory=dict[Key, Record])

    def read(self, table: str, key: str) -> Record | None:
        """The record as it is now, not to be changed; None if there is none."""
        return self._changed.get((table, key)) or self.base.table(table).get(key)

    def edit(self, table: str, key: str) -> Record:
        """The record as it is now, to be changed in place.

        Raises:
            KeyError: there is no such record.
        """
        if (table, key) not in self._changed:
            self._changed[table, key] = copy.deepcopy(self.base.table(table)[key])
        return self._changed[table, key]

    def trial(self) -> Shop:
        """A view of the same state whose changes do not reach this one until `adopt`."""
        return Shop(self.base, copy.deepcopy(self._changed))

    def adopt(self, trial: Shop) -> None:
        """Take over the state of a trial."""
        self._changed = trial._changed

    def changes(self) -> dict[Key, Record]:
        """The records that differ from the database."""
        texts = self.base.texts
        return {key: row for key, row in self._changed.items() if canonical_json(row) != texts[key[0]][key[1]]}

    def fingerprint(self) -> str:
        """Canonical JSON of the differing records: equal exactly when two states of one database are."""
        return canonical_json({f"{table}/{key}": row for (table, key), row in self.changes().items()})

    def digest(self) -> str:
        """SHA-256 of the whole state, as `Database.digest`."""
        return self.base.state_digest(self.changes())


_LOADED: dict[str, Database] = {}
"""Databases of this process by content; a task names the one that it belongs to."""


def remember(loaded: Database) -> str:
    """Make a database available to the tasks that name it; the name, 16 hex digits of its digest."""
    name = loaded.digest[:16]
    _LOADED.setdefault(name, loaded)
    return name


def database(public: Mapping[str, Json]) -> Database:
    """The database that a task's public part names.

    Raises:
        ValueError: it has not been loaded in this process (`TauRetail.tasks` loads it).
    """
    name = str(public["database"])
    if name not in _LOADED:
        raise ValueError(f"database {name} is not loaded; ask the setting for its tasks first (same path or seed)")
    return _LOADED[name]
