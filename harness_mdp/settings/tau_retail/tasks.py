"""Tasks of `tau_retail`: the reader of the upstream files, and the store that they and generated tasks end up in.

`path` is the folder with `users.json orders.json products.json tasks_*.json`, which gives the tasks of
`tasks_test.json`, or one of its `tasks_*.json` files. `policy.md` (or `wiki.md`) of the folder is used if present.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness_mdp.errors import InputError
from harness_mdp.hashing import Json
from harness_mdp.settings.tasks import Answer, Sealed, Task, TaskStore
from harness_mdp.settings.tau_retail.answers import answer
from harness_mdp.settings.tau_retail.data import Database, Record, Shop, database, remember
from harness_mdp.settings.tau_retail.draft import Call, play
from harness_mdp.settings.tau_retail.policy import OWN_POLICY, read_policy, request_evidence
from harness_mdp.settings.tau_retail.scoring import sealed_values
from harness_mdp.settings.tau_retail.tools import ADDRESS_FIELDS, TOOLS

__all__ = [
    "Spec",
    "folder_of",
    "read_database",
    "read_json",
    "read_specs",
    "require_users",
    "store",
    "upstream_tasks",
]

_USER = {"name": dict, "address": dict, "email": str, "payment_methods": dict, "orders": list}
_ORDER = {"order_id": str, "user_id": str, "address": dict, "items": list, "status": str, "payment_history": list}
_ITEM = {"name": str, "product_id": str, "item_id": str, "price": (int, float), "options": dict}
_PAYMENT = {"transaction_type": str, "amount": (int, float), "payment_method_id": str}
_PRODUCT = {"name": str, "product_id": str, "variants": dict}
_VARIANT = {"item_id": str, "options": dict, "available": bool, "price": (int, float)}
_METHOD = {"source": str, "id": str}

Shape = Mapping[str, type | tuple[type, ...]]


@dataclass(frozen=True)
class Spec:
    """A task as file or generator give it."""

    id: str
    template: str
    difficulty: str
    user_id: str
    instruction: str
    actions: tuple[Call, ...]
    outputs: tuple[str, ...]


def store(base: Database, specs: Sequence[Spec], policy: str) -> TaskStore:
    """The task store of `specs` on one database; `policy` is Markdown, the same for all."""
    name = remember(base)
    base = database({"database": name})  # the one that is loaded already, where it is the same
    rules = read_policy(policy)
    tasks: list[Task] = []
    sealed: dict[str, Sealed] = {}
    answers: dict[str, Answer] = {}
    for spec in specs:
        seen = request_evidence(rules, spec.instruction)
        public = {
            "instruction": spec.instruction,
            "database": name,
            "observe": [[[item.id, item.text] for item in items] for items in seen],
        }
        tasks.append(Task(spec.id, spec.template, spec.difficulty, public))
        sealed[spec.id] = Sealed(sealed_values(spec.actions, spec.outputs))
        answers[spec.id] = answer(
            base, spec.user_id, spec.instruction, spec.actions, spec.outputs, [item for part in seen for item in part]
        )
    return TaskStore(tuple(tasks), sealed, answers)


def upstream_tasks(path: Path) -> TaskStore:
    """Tasks of the upstream files at `path` (a folder: its `tasks_test.json`; or a tasks file).

    Raises:
        InputError: a file is missing or damaged.
    """
    folder = folder_of(path)
    file = path / "tasks_test.json" if path == folder else path
    base = read_database(folder)
    specs = read_specs(file)
    require_users(base, specs, file)
    policies = [folder / name for name in ("policy.md", "wiki.md") if (folder / name).is_file()]
    text = _read_text(policies[0]) if policies else OWN_POLICY
    read = store(base, [_labelled(base, spec) for spec in specs], text)
    return replace(read, licence="MIT (sierra-research/tau-bench)")


def folder_of(path: Path) -> Path:
    """The folder of the upstream files: `path` itself, or the one that the tasks file `path` lies in.

    Raises:
        InputError: there is nothing at `path`.
    """
    if not path.exists():
        raise InputError(
            "no such folder or file",
            file=path,
            expected="the folder with users.json, orders.json, products.json, tasks_test.json, or a tasks file in it",
        )
    return path if path.is_dir() else path.parent


def require_users(base: Database, specs: Sequence[Spec], file: Path) -> None:
    """Every task is asked by a user of `base`.

    Raises:
        InputError: one is not, by file and task.
    """
    for index, spec in enumerate(specs):
        if spec.user_id not in base.users:
            raise InputError(
                f"unknown user {spec.user_id!r}", file=file, field=f"[{index}].user_id", expected="a user of users.json"
            )


def _labelled(base: Database, spec: Spec) -> Spec:
    """Template by the kinds of change, difficulty by how many changes and outputs the reference has."""
    ran = play(Shop(base), spec.actions, ends_at_transfer=False)
    kinds = [entry.call.name for entry in ran if entry.outcome.ok and TOOLS[entry.call.name].writes]
    template = kinds[0] if len(set(kinds)) == 1 else ("several_kinds" if kinds else "no_change")
    units = len(kinds) + len(spec.outputs)
    difficulty = "easy" if units <= 1 else ("standard" if units <= 3 else "hard")
    return Spec(spec.id, template, difficulty, spec.user_id, spec.instruction, spec.actions, spec.outputs)


def read_specs(file: Path) -> list[Spec]:
    """The tasks of an upstream file, ids `test-0`, `test-1`, ...; template and difficulty are left empty.

    Raises:
        InputError: the file is missing or damaged, or a task lacks a field, names an unknown tool, or has
            arguments that are no object.
    """
    rows: Json = read_json(file)
    if not isinstance(rows, list) or not rows:
        raise InputError(
            "no list of tasks", file=file, expected="a non-empty JSON list of {user_id, instruction, actions, outputs}"
        )
    return [_spec(row, index, file) for index, row in enumerate(rows)]


def _spec(row: Json, index: int, file: Path) -> Spec:
    where = f"[{index}]"
    _expect(row, {"user_id": str, "instruction": str, "actions": list}, file, where)
    outputs: Json = row.get("outputs", [])
    if not isinstance(outputs, list) or not all(isinstance(output, str) for output in outputs):
        raise InputError(
            f"outputs are {outputs!r:.80}", file=file, field=f"{where}.outputs", expected="a list of texts"
        )
    if not row["instruction"].strip():
        raise InputError("the instruction is empty", file=file, field=f"{where}.instruction", expected="a text")
    actions = tuple(_action(value, file, f"{where}.actions[{number}]") for number, value in enumerate(row["actions"]))
    stem = file.stem.removeprefix("tasks_")
    return Spec(f"{stem}-{index}", "", "", row["user_id"], row["instruction"], actions, tuple(outputs))


def _action(value: Json, file: Path, where: str) -> Call:
    key = "arguments" if isinstance(value, dict) and "arguments" in value else "kwargs"
    _expect(value, {"name": str, key: dict}, file, where)
    if value["name"] not in TOOLS:
        raise InputError(
            f"unknown tool {value['name']!r}", file=file, field=f"{where}.name", expected=f"one of {', '.join(TOOLS)}"
        )
    return Call(value["name"], value[key])


def read_database(folder: Path) -> Database:
    """Orders, products and users of `folder`.

    Raises:
        InputError: a file is missing or damaged, or a record lacks what the tools need, by file and record.
    """
    orders = _table(folder / "orders.json", _ORDER)
    products = _table(folder / "products.json", _PRODUCT)
    users = _table(folder / "users.json", _USER)
    for key, order in orders.items():
        _expect_each(order["items"], _ITEM, folder / "orders.json", f"{key}.items")
        _expect_each(order["payment_history"], _PAYMENT, folder / "orders.json", f"{key}.payment_history")
        _expect(order["address"], dict.fromkeys(ADDRESS_FIELDS, str), folder / "orders.json", f"{key}.address")
        if order["user_id"] not in users or not order["payment_history"]:
            found = f"user {order['user_id']!r} is not in users.json" if order["payment_history"] else "no payment"
            raise InputError(found, file=folder / "orders.json", field=key, expected="a known user and one payment")
    for key, product in products.items():
        _expect_each(product["variants"].values(), _VARIANT, folder / "products.json", f"{key}.variants")
    for key, user in users.items():
        _expect(user["name"], {"first_name": str, "last_name": str}, folder / "users.json", f"{key}.name")
        _expect(user["address"], dict.fromkeys(ADDRESS_FIELDS, str), folder / "users.json", f"{key}.address")
        _expect_each(user["payment_methods"].values(), _METHOD, folder / "users.json", f"{key}.payment_methods")
    return Database(orders, products, users)


def _table(file: Path, shape: Shape) -> dict[str, Record]:
    rows: Json = read_json(file)
    if not isinstance(rows, dict) or not rows:
        raise InputError("no records", file=file, expected="a non-empty JSON object of records by id")
    for key, row in rows.items():
        _expect(row, shape, file, key)
    return rows


def _expect_each(rows: Json, shape: Shape, file: Path, where: str) -> None:
    for number, row in enumerate(rows):
        _expect(row, shape, file, f"{where}[{number}]")


def _expect(row: Json, shape: Shape, file: Path, where: str) -> None:
    if not isinstance(row, dict):
        raise InputError(f"{row!r:.80} is no object", file=file, field=where, expected=f"fields {', '.join(shape)}")
    for name, kind in shape.items():
        if not isinstance(row.get(name), kind):
            found = f"{row[name]!r:.80}" if name in row else "nothing"
            kinds = kind if isinstance(kind, tuple) else (kind,)
            expected = " or ".join(dict.fromkeys(_JSON_NAMES[kind] for kind in kinds))
            raise InputError(f"found {found}", file=file, field=f"{where}.{name}", expected=expected)


_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def read_json(file: Path) -> Json:
    """The JSON value in `file`.

    Raises:
        InputError: it is missing, unreadable, or no JSON.
    """
    try:
        return json.loads(_read_text(file), parse_constant=lambda name: _not_json(file, name))
    except json.JSONDecodeError as problem:
        raise InputError(
            f"no JSON ({problem.msg.removesuffix(' at')} at column {problem.colno})",
            file=file,
            row=problem.lineno,
            remedy="Fetch the file again; it may be cut off or a pointer to large-file storage.",
        ) from None


def _not_json(file: Path, name: str) -> Json:
    raise InputError(f"{name} is no JSON number", file=file, expected="finite numbers")


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("no such file", file=file, remedy="Give the folder that holds the upstream files.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot be read: {problem}", file=file, expected="a UTF-8 text file") from None
