"""`COMMAND --help`: every key with its default and what it means, from the docstrings of the configuration classes."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import Field, fields, is_dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.register import SCHEMAS

__all__ = ["print_help"]

_MODULES = ("experiments.config", "experiments.maturity_keys", "experiments.study_config")


def print_help(command: str, words: Sequence[str]) -> None:
    """Print the keys of `command`; groups in `words`, such as `executor=openai`, choose whose keys are shown."""
    chosen = dict(word.split("=", 1) for word in words if "=" in word)
    schema = SCHEMAS[f"{command}_schema"]
    console = Console(width=max(100, Console().width) if not sys.stdout.isatty() else None)
    console.print(f"{inspect.getdoc(schema)}\nusage: KEY=VALUE ...\n", markup=False, highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True)
    table.add_column("default", overflow="fold", max_width=24)
    table.add_column("what")
    for key, default, what in _rows(schema, "", command, chosen):
        table.add_row(key, default, what)
    console.print(table, markup=False, highlight=False)
    console.print(
        "\nGroups: GROUP=OPTION chooses, GROUP.KEY=VALUE changes; `GROUP=OPTION --help` shows that option's keys.\n"
        "--cfg job shows the configuration, -m KEY=A,B runs once for each value.",
        markup=False,
        highlight=False,
    )


def _rows(schema: type, prefix: str, command: str, chosen: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for item in fields(schema):
        if item.name == "kind":  # what the option itself sets
            continue
        key, what = f"{prefix}{item.name}", _docs(schema).get(item.name, "")
        options = _options(item.name) if not prefix else []
        if options:
            option = chosen.get(item.name) or _default_option(command, item.name)
            yield key, option, f"one of {', '.join(options)}"
            inner = SCHEMAS.get(f"{item.name}/{_schema_of(item.name, option)}")
            if inner is not None:
                yield from _rows(inner, f"{key}.", command, chosen)
        elif nested := _nested(item):
            yield from _rows(nested, f"{key}.", command, chosen)
        else:
            yield key, _shown(item), what


def _shown(item: Field[Any]) -> str:
    if item.default_factory is not NO_DEFAULT:
        return str(item.default_factory())
    return "required" if item.default == "???" else str(item.default)


@cache
def _docs(schema: type) -> dict[str, str]:
    """Field -> the docstring under it, of the class and its bases."""
    found: dict[str, str] = {}
    for each in reversed(schema.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def _nested(item: Field[Any]) -> type | None:
    """The configuration class of a field that is one."""
    for module in map(import_module, _MODULES):
        found = getattr(module, item.type, None) if isinstance(item.type, str) else None
        if isinstance(found, type) and is_dataclass(found):
            return found
    return None


def _options(group: str) -> list[str]:
    folder = resources.files("experiments.conf").joinpath(group)
    if not folder.is_dir():
        return []
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def _yaml(*path: str) -> str:
    return resources.files("experiments.conf").joinpath(*path).read_text()


def _default_option(command: str, group: str) -> str:
    lines = [line.strip() for line in _yaml(f"{command}.yaml").splitlines()]
    return next((line.split(":")[1].strip() for line in lines if line.startswith(f"- {group}:")), "")


def _schema_of(group: str, option: str) -> str:
    if option not in _options(group):
        return ""
    lines = (line.strip() for line in _yaml(group, f"{option}.yaml").splitlines())
    return next((line.removeprefix("- ") for line in lines if line.endswith("schema")), "")
