"""What controllers learned, in the states of a buffer: read, ask each of them, explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from buffers import ReplayBuffer, TrainingArrays
from controllers.config import LinearQConfig, Method, PlanConfig
from controllers.data import Floats
from controllers.explain import Explanation, explain
from controllers.fitted_linear import fit_linear
from controllers.guard import GuardedPolicy
from controllers.manifest import read_manifest
from controllers.planning import fit_planned_q
from controllers.q_function import ValuePolicy
from experiments.collected import collected_arrays, collected_setting, logged_states
from experiments.explain_config import ExplainConfig
from experiments.policies import is_controller, named_policy
from experiments.running import expect_seed
from harness_mdp.errors import ConfigError, UnusableBuffer
from harness_mdp.mdp import Policy

__all__ = ["Explained", "Explanations", "explain_policies"]

OWN_VALUES = "its own Q"
LINEAR_VALUES = "a_learning on these episodes"
PLANNED_VALUES = "a pessimistic plan on these episodes"


@dataclass(frozen=True)
class Explained:
    """One policy."""

    name: str
    """As it was asked for."""
    explanation: Explanation
    values_of: str
    """Whose Q the advantages are."""


@dataclass(frozen=True)
class Explanations:
    """Policies in the states of one buffer."""

    setting: str
    arrays: TrainingArrays
    simulated: bool
    """Some episode was made with a simulated executor."""
    policies: tuple[Explained, ...]
    remarks: tuple[str, ...]
    """What has to be said about the buffer, one sentence each."""


def explain_policies(config: ExplainConfig) -> Explanations:
    """Explain every policy of `config` in the states of the collected episodes; nothing is run.

    Raises:
        ConfigError: a policy that means nothing, or a key that cannot be.
        UnusableBuffer: no such episodes, or several executors that were not asked for.
        SchemaMismatch, InputError: by name.
    """
    _check(config)
    buffer = ReplayBuffer(config.buffer)
    setting = collected_setting(buffer, config)
    policies = {name: named_policy(name, setting) for name in config.policies}
    arrays = collected_arrays(buffer, setting, config, config.split)
    remarks: list[str] = []
    methods = {name: read_manifest(name).method for name in policies if is_controller(name, setting)}
    sources = {name: _source(policy, methods.get(name)) for name, policy in policies.items()}
    planned: Floats | None = None
    if PLANNED_VALUES in sources.values():
        planned, remark = _planned(arrays, config.seed)
        remarks += remark
    linear = fit_linear(arrays, LinearQConfig()).values(arrays.features) if LINEAR_VALUES in sources.values() else None
    scripts = [name for name in policies if not is_controller(name, setting)]
    states = logged_states(buffer, arrays) if scripts else ()
    explained: list[Explained] = []
    for name, policy in policies.items():
        source = sources[name]
        inner = _inside(policy)
        own = inner.q.values(arrays.features) if isinstance(inner, ValuePolicy) else None
        values = {OWN_VALUES: own, LINEAR_VALUES: linear, PLANNED_VALUES: planned}[source]
        explanation = explain(
            arrays,
            policy,
            setting.schema.names,
            leaves=config.leaves,
            values=values,
            states=states if name in scripts else (),
        )
        explained.append(Explained(name, explanation, source if values is not None else ""))
    return Explanations(
        setting=setting.name,
        arrays=arrays,
        simulated=any(executor.startswith("simulated-") for executor in arrays.executors),
        policies=tuple(explained),
        remarks=(*_remarks(arrays), *remarks),
    )


def _source(policy: Policy, method: str | None) -> str:
    """Whose values say what `policy` gains over base: its own, those it was distilled from, or a plan's."""
    if isinstance(_inside(policy), ValuePolicy):
        return OWN_VALUES
    return LINEAR_VALUES if method == Method.AW_LINEAR else PLANNED_VALUES


def _inside(policy: Policy) -> Policy:
    """`policy` without its guard."""
    return policy.inner if isinstance(policy, GuardedPolicy) else policy


def _planned(arrays: TrainingArrays, seed: int) -> tuple[Floats | None, Sequence[str]]:
    """(n, 7) Q of a plan; without one, why."""
    try:
        return fit_planned_q(arrays, PlanConfig(), seed).values(arrays.features), ()
    except UnusableBuffer as problem:
        return None, (f"no advantages: {problem}",)


def _check(config: ExplainConfig) -> None:
    if not config.policies:
        raise ConfigError("policies is empty; name at least one, e.g. policy=DIR with the `out` of a training run")
    if len(set(config.policies)) != len(config.policies):
        raise ConfigError(f"policies={config.policies} names one policy twice")
    if config.leaves < 2:
        raise ConfigError(f"leaves={config.leaves}; expected at least 2")
    if config.rows < 1:
        raise ConfigError(f"rows={config.rows}; expected at least 1")
    if config.split not in ("train", "eval", "all"):
        raise ConfigError(f"split={config.split}; expected train, eval or all")
    expect_seed(config.seed)


def _remarks(arrays: TrainingArrays) -> Sequence[str]:
    if len(arrays.executors) > 1:
        return (f"states of {len(arrays.executors)} executors are taken together",)
    return ("there is one task, so no fidelity",) if len(np.unique(arrays.task)) < 2 else ()
