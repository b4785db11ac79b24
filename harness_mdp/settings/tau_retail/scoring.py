"""The native score of tau-bench retail: the final state equals the reference's, and every output is said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from harness_mdp.hashing import Json, canonical_json
from harness_mdp.settings.tau_retail.data import Database, Shop
from harness_mdp.settings.tau_retail.draft import Call, play, read_draft

__all__ = ["native_score", "sealed_values"]


def sealed_values(actions: Sequence[Call], outputs: Sequence[str]) -> Mapping[str, Json]:
    """The sealed part of a task: reference actions and the texts that have to be said."""
    return {
        "actions": [{"name": call.name, "arguments": call.arguments} for call in actions],
        "outputs": list(outputs),
    }


@lru_cache(maxsize=4096)
def _reference_state(base: Database, actions: str) -> str:
    """Fingerprint of the state after the reference actions (canonical JSON), replayed whole."""
    shop = Shop(base)
    play(shop, [Call(row["name"], row["arguments"]) for row in json.loads(actions)], ends_at_transfer=False)
    return shop.fingerprint()


def native_score(base: Database, sealed: Mapping[str, Json], artifact: str) -> float:
    """1.0 or 0.0.

    As upstream: an output is said if it occurs in `respond`, case aside and commas left out of `respond`. A draft
    that says nothing at all gets 0, also where no output is required.
    """
    draft = read_draft(artifact)
    said = draft.respond.lower().replace(",", "")
    if not said.strip() or any(output.lower() not in said for output in sealed["outputs"]):
        return 0.0
    shop = Shop(base)
    play(shop, draft.calls, ends_at_transfer=True)
    return float(shop.fingerprint() == _reference_state(base, canonical_json(sealed["actions"])))
