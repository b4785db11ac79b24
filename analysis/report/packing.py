"""Data of the page as text that no markup can hide in: JSON, compressed, base64."""

from __future__ import annotations

import base64
import gzip
import json

from harness_mdp.hashing import Json

__all__ = ["pack"]


def pack(value: Json) -> str:
    """Gzip (without a time stamp) of the UTF-8 JSON of `value`, in base64; the page's script undoes it.

    Unpaired surrogates, which a model may emit, are escaped in the JSON and so survive.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
