"""The behaviour policies of a buffer, rebuilt from its run manifests, so that verification can ask them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from buffers import ReplayBuffer
from experiments.config import (
    ControllerPolicyConfig,
    EpsilonPolicyConfig,
    PolicyConfig,
    PortfolioPolicyConfig,
    ScriptPolicyConfig,
)
from experiments.policies import make_policy, named_policy
from harness_mdp.errors import HarnessError
from harness_mdp.mdp import Episode, Policy
from harness_mdp.settings import open_setting

__all__ = ["behaviour_policies"]

_KINDS: Mapping[str, type[PolicyConfig]] = {
    "script": ScriptPolicyConfig,
    "epsilon": EpsilonPolicyConfig,
    "portfolio": PortfolioPolicyConfig,
    "controller": ControllerPolicyConfig,
}


def behaviour_policies(buffer: ReplayBuffer) -> Callable[[Episode], Policy | None]:
    """Episode -> its behaviour policy; None where it cannot be rebuilt (a controller that has gone or changed).

    Policies are matched by fingerprint, so a retrained controller is never taken for the one that collected.
    """
    runs = buffer.harness.runs()
    made: dict[str, dict[str, Policy]] = {}

    def policy_for(episode: Episode) -> Policy | None:
        if episode.run not in made:
            manifest = runs.get(episode.run)
            config = (manifest or {}).get("resolved", {}).get("config")
            made[episode.run] = _of_run(config) if config else {}
        return made[episode.run].get(episode.policy_fingerprint)

    return policy_for


def _of_run(config: Mapping[str, Any]) -> dict[str, Policy]:
    """The policies that a run's configuration names, by fingerprint."""
    setting = open_setting(config["setting"]["name"])
    found: list[Policy] = []
    if "policy" in config:
        values = dict(config["policy"])
        attempts = [lambda: make_policy(_KINDS[values["kind"]](**values), setting)]
    else:
        attempts = [lambda name=name: named_policy(name, setting) for name in config["policies"]]
    for attempt in attempts:
        try:
            found.append(attempt())
        except HarnessError:
            continue  # gone since; the report says how many episodes had their policy asked again
    return {policy.fingerprint: policy for policy in found}
