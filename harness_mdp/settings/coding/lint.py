"""What can be said about a draft without running it: that it compiles, defines the function, and a few lints.

Only lints that point at a fault: names that nothing binds, results never returned, values never used, imports
and built-ins that the sandbox would refuse. Style is not judged.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator

from harness_mdp.sandbox import SAFE_MODULES, parse_python
from harness_mdp.settings.protocol import CheckItem

__all__ = ["check_source"]

ITEMS = ("compiles", "defines", "names", "returns", "allowed", "unused")
BUILTINS = frozenset(dir(builtins)) | {"__name__"}
FORBIDDEN = frozenset(("open", "exec", "eval", "compile", "input", "breakpoint", "exit", "quit", "__import__"))


def check_source(source: str, function: str, arity: int) -> list[CheckItem]:
    """One item per name in `ITEMS`, in order.

    Source that does not compile fails all of them, with the same problem: nothing else can be seen yet.
    """
    try:
        tree = parse_python(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "draft", "exec", dont_inherit=True)  # finds more than the parser, e.g. a stray return
            table = symtable.symtable(source, "draft", "exec")
    except (SyntaxError, RecursionError, MemoryError) as problem:
        where = f"line {problem.lineno}: " if isinstance(problem, SyntaxError) and problem.lineno else ""
        reason = problem.msg if isinstance(problem, SyntaxError) else "nested too deeply"
        return [CheckItem(name, False, f"{where}{reason}") for name in ITEMS]
    definition = _definition(tree, function)
    problems = {
        "compiles": "",
        "defines": _wrong_definition(definition, function, arity),
        "names": _undefined(table),
        "returns": _no_result(definition, function),
        "allowed": _forbidden(tree),
        "unused": _unused(table),
    }
    return [CheckItem(name, not problems[name], problems[name]) for name in ITEMS]


def _definition(tree: ast.Module, function: str) -> ast.FunctionDef | None:
    """The last top-level definition of `function`, the one that counts."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    return found[-1] if found else None


def _wrong_definition(definition: ast.FunctionDef | None, function: str, arity: int) -> str:
    if definition is None:
        return f"there is no function named {function}"
    arguments = definition.args
    count = len(arguments.posonlyargs) + len(arguments.args)
    required = count - len(arguments.defaults)
    if required > arity or (count < arity and arguments.vararg is None):
        return f"{function} takes {count} arguments, expected {arity}"
    return ""


def _undefined(table: symtable.SymbolTable) -> str:
    """Names that are read somewhere and bound nowhere."""
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    bound |= {
        symbol.get_name()
        for scope in _scopes(table)
        for symbol in scope.get_symbols()
        if symbol.is_declared_global() and symbol.is_assigned()
    }
    missing = {
        symbol.get_name()
        for scope in (table, *_scopes(table))
        for symbol in scope.get_symbols()
        if symbol.is_referenced() and (symbol.is_global() or scope is table)
    }
    names = sorted(missing - bound - BUILTINS)
    return f"undefined name: {', '.join(names)}" if names else ""


def _no_result(definition: ast.FunctionDef | None, function: str) -> str:
    if definition is None:
        return f"there is no function named {function}"
    results = (isinstance(node, ast.Return | ast.Yield) and node.value is not None for node in ast.walk(definition))
    return "" if any(results) else f"{function} never returns a value"


def _forbidden(tree: ast.Module) -> str:
    """Imports beyond `SAFE_MODULES`, and built-ins that reach outside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            relative = isinstance(node, ast.ImportFrom) and (node.level > 0 or not node.module)
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            refused = [module for module in modules if relative or module not in SAFE_MODULES]
            if refused:
                return f"line {node.lineno}: import of {refused[0] or '.'} is not allowed"
        if isinstance(node, ast.Name) and node.id in FORBIDDEN:
            return f"line {node.lineno}: use of {node.id} is not allowed"
    return ""


def _unused(table: symtable.SymbolTable) -> str:
    """Parameters and variables of functions that nothing reads."""
    for scope in _scopes(table):
        if not isinstance(scope, symtable.Function):
            continue
        read_inside = {name for inner in _scopes(scope) for name in _free(inner)}
        for symbol in sorted(scope.get_symbols(), key=lambda symbol: symbol.get_name()):
            name = symbol.get_name()
            owned = symbol.is_local() and not symbol.is_namespace() and not symbol.is_imported()
            if owned and not (symbol.is_referenced() or name in read_inside or name.startswith(("_", "."))):
                kind = "parameter" if symbol.is_parameter() else "variable"
                return f"{kind} {name} of {scope.get_name()} is never used"
    return ""


def _free(scope: symtable.SymbolTable) -> tuple[str, ...]:
    return tuple(symbol.get_name() for symbol in scope.get_symbols() if symbol.is_free())


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """All scopes inside `table`, depth first."""
    for child in table.get_children():
        yield child
        yield from _scopes(child)
