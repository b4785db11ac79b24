"""Content hashes and the random generators derived from them.

Everything random here is drawn from a generator seeded by the SHA-256 of what it depends on, so the
same work gives the same draws in another process, on another host and under another PYTHONHASHSEED.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Json", "canonical_json", "digest", "generator", "text_hash"]

# A JSON value. `object` would force a cast at every read of parsed JSON; the readers validate instead.
Json = Any


def canonical_json(value: Mapping[str, Json] | Sequence[Json] | str | float | bool | None) -> str:
    """JSON text that is equal exactly when the values are: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Mapping[str, Json] | Sequence[Json] | str, length: int = 32) -> str:
    """First `length` hex digits of the SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def text_hash(text: str) -> str:
    """SHA-256 of a text, 64 hex digits. Unpaired surrogates, which a model may emit, hash as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def generator(*parts: str | int) -> np.random.Generator:
    """A generator seeded by the SHA-256 of `parts`, in order."""
    seed = hashlib.sha256(canonical_json([str(part) for part in parts]).encode("utf-8", "surrogatepass"))
    return np.random.Generator(np.random.PCG64(int.from_bytes(seed.digest(), "big")))
