"""MySQL's SQL, as DB-Bench and most models write it, read into tokens and put into the words of SQLite.

What SQLite understands by itself (backticks, most syntax) stays. Translated are: backslash escapes in string
literals, string literals in double quotes, and identifiers that begin with a digit. What MySQL
alone knows beyond that stays as it is and fails by SQLite's own message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Token", "identifier", "lex", "string_literal", "to_sqlite"]

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<string>'(?:[^'\\]|\\.|'')*+')
    |(?P<dquoted>"(?:[^"\\]|\\.|"")*+")
    |(?P<ident>`(?:[^`]|``)*+`|\[[^\]\n]*\])
    |(?P<number>(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(?!\w))
    |(?P<word>\w+)
    |(?P<op><=>|<=|>=|<>|!=|==|\|\||&&|[=<>])
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": r"\%", "_": r"\_"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL; the texts of all tokens, joined, are the SQL."""

    kind: str
    """`space`, `string`, `dquoted`, `ident`, `number`, `word`, `op` or `other`."""
    text: str

    @property
    def value(self) -> str:
        """What a literal or a quoted identifier stands for; the text itself of other tokens."""
        if self.kind in ("string", "dquoted"):
            quote = self.text[0]
            body = self.text[1:-1].replace(quote * 2, quote)
            return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), body, flags=re.DOTALL)
        if self.kind == "ident":
            return self.text[1:-1].replace("``", "`") if self.text[0] == "`" else self.text[1:-1]
        return self.text

    @property
    def is_keyword(self) -> bool:
        """A bare word, which may be a keyword; compare it with `upper`."""
        return self.kind == "word"

    @property
    def upper(self) -> str:
        """The text in capitals."""
        return self.text.upper()


def lex(sql: str) -> tuple[Token, ...]:
    """Tokens of `sql`; never fails: what is no token is kind `other`, one character each."""
    return tuple(Token(match.lastgroup or "other", match[0]) for match in _TOKEN.finditer(sql))


def to_sqlite(sql: str, names: Iterable[str]) -> tuple[str, ...]:
    """The statements of `sql`, in SQLite's dialect, without comments and empty ones.

    A text in double quotes is an identifier if it is one of `names` (table and columns; letters' case does not
    count), else a string. SQL with an unclosed quote is not translated.
    """
    tokens = lex(sql)
    if any(token.kind == "other" and token.text in "'\"`" for token in tokens):
        return (sql,)
    known = {name.casefold() for name in names}
    statements: list[str] = []
    current: list[str] = []
    for token in (*tokens, Token("other", ";")):
        if token.kind == "other" and token.text == ";":
            statement = "".join(current).strip()
            if statement:
                statements.append(statement)
            current = []
        else:
            current.append(_translated(token, known))
    return tuple(statements)


def _translated(token: Token, known: set[str]) -> str:
    match token.kind:
        case "space":
            return " " if token.text.startswith(("--", "/*")) else token.text
        case "string":
            return _plain_literal(token.value)
        case "dquoted":
            return identifier(token.value) if token.value.casefold() in known else _plain_literal(token.value)
        case "word" if token.text[0].isdigit():
            return identifier(token.text)
        case _:
            return token.text


def _plain_literal(value: str) -> str:
    """A string literal as standard SQL has it: no escapes but the doubled quote."""
    return "'" + value.replace("'", "''") + "'"


def string_literal(value: str) -> str:
    """`value` as a string literal that MySQL, and this module, read back."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def identifier(name: str) -> str:
    """`name` in backticks, which MySQL and SQLite both read."""
    return "`" + name.replace("`", "``") + "`"
