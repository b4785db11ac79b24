"""What a buffer lacks and how to get it: reads the episodes, asks every policy about every state, weighs mixtures.

Nothing is run. The estimator and its limit are in `analysis.collection_support`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from analysis.collection_support import (
    Addition,
    LackRules,
    StatePair,
    addition,
    choose,
    rollouts_needed,
    state_pairs,
)
from analysis.state_words import worded_clusters
from buffers import ReplayBuffer, TrainingArrays
from controllers.data import Floats
from experiments.collected import collected_arrays, collected_setting, logged_states
from experiments.command_words import command_line, executor_words, hydra_value, policy_words, setting_words
from experiments.config import OpenAIConfig, SimulatedConfig
from experiments.evaluation import TABLE_ENDINGS
from experiments.mixtures import Mixture, candidate_mixtures
from experiments.policies import explored, is_controller, named_policy
from experiments.support_config import SupportConfig
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.mdp import DecisionBatch, DecisionPoint, Probs, State
from harness_mdp.settings.protocol import Setting

__all__ = ["CollectionSupport", "Suggestion", "support", "write_pairs"]

_LEAST_STATES = 50
"""States of a cluster; a 64th of the log where that is less."""


@dataclass(frozen=True)
class Suggestion:
    """What to run next."""

    mixture: str
    command: str
    """Ready to run."""
    rollouts: int
    episodes: int
    filled: int
    """Pairs that are then expected to lack nothing."""


@dataclass(frozen=True)
class CollectionSupport:
    """What is there, what is missing, and what would bring it."""

    setting: str
    arrays: TrainingArrays
    simulated: bool
    pairs: tuple[StatePair, ...]
    """All sensible pairs, those that lack data first."""
    additions: tuple[Addition, ...]
    """One a mixture, for the pairs that lack data."""
    suggestion: Suggestion | None
    """None where nothing is missing."""

    @property
    def lacking(self) -> tuple[StatePair, ...]:
        """The pairs that lack data."""
        return tuple(pair for pair in self.pairs if pair.missing)


@dataclass(frozen=True)
class _Answered:
    """A policy whose answers on the batch at hand are known, so that no mixture has to ask again."""

    name: str
    fingerprint: str
    answers: Probs

    def probs(self, point: DecisionPoint) -> Probs:
        raise NotImplementedError(f"{self.name} was asked about stored states only, not about {point.state}")

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        assert len(batch) == len(self.answers)
        return self.answers


def support(config: SupportConfig) -> CollectionSupport:
    """Find the sensible pairs without enough data, and what each mixture would add to them.

    Raises:
        ConfigError: a policy that means nothing, or a key that cannot be.
        UnusableBuffer: no such episodes, or several executors that were not asked for.
        SchemaMismatch, InputError: by name.
    """
    rules = _check(config)
    buffer = ReplayBuffer(config.buffer)
    setting = collected_setting(buffer, config)
    arrays = collected_arrays(buffer, setting, config, config.split)
    states = logged_states(buffer, arrays)
    tokens = _tokens(arrays, states)
    clusters = worded_clusters(states, max(1, min(_LEAST_STATES, len(states) // 64)))
    cluster = clusters.assign(states)
    batch = DecisionBatch(arrays.features, arrays.mask, arrays.base_action, states)
    asked = _ask(setting, config.policies, batch)
    proposals = {name: policy.answers for name, policy in asked.items()}
    pairs = state_pairs(arrays, clusters, cluster, proposals, tokens, rules)
    lacking = [pair for pair in pairs if pair.missing]
    wanted = {name for pair in lacking for name in pair.proposed_by}
    controllers = [name for name in config.policies if is_controller(name, setting)]
    mixtures = candidate_mixtures([name for name in asked if name in wanted], controllers)

    def answers(mixture: Mixture) -> Probs:
        return explored(mixture.policy, asked.__getitem__).probs_batch(batch)

    additions = tuple(
        addition(mixture.name, arrays, answers(mixture), cluster, tokens, lacking)
        for mixture in (mixtures if lacking else ())
    )
    return CollectionSupport(
        setting=setting.name,
        arrays=arrays,
        simulated=any(executor.startswith("simulated-") for executor in arrays.executors),
        pairs=pairs,
        additions=additions,
        suggestion=_suggestion(config, setting.name, buffer, arrays, mixtures, additions, lacking) if lacking else None,
    )


def write_pairs(result: CollectionSupport, out: str) -> None:
    """One row a sensible pair, mixtures nested, as Parquet or JSON by the ending of `out`."""
    path = Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    place = {pair: at for at, pair in enumerate(result.lacking)}
    rows: list[dict[str, Json]] = [
        {
            "setting": result.setting,
            "simulated": result.simulated,
            "buffer_version": result.arrays.version,
            "state": pair.state,
            "action": pair.action.label,
            "states": pair.states,
            "visits": pair.visits,
            "tasks": pair.tasks,
            "behaviour": pair.behaviour,
            "proposed_by": list(pair.proposed_by),
            "missing": pair.missing,
            "visits_per_100_episodes": [
                {"mixture": each.name, "visits": 100 * each.visits[place[pair]], "ess": each.ess}
                for each in (result.additions if pair.missing else ())
            ],
            "suggestion": result.suggestion.command if result.suggestion else None,
        }
        for pair in result.pairs
    ]
    schema = {
        "proposed_by": pl.List(pl.String),
        "visits_per_100_episodes": pl.List(pl.Struct({"mixture": pl.String, "visits": pl.Float64, "ess": pl.Float64})),
        "suggestion": pl.String,
    }
    frame = pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_json(path)


def _check(config: SupportConfig) -> LackRules:
    if len(set(config.policies)) != len(config.policies):
        raise ConfigError(f"policies={config.policies} names one policy twice")
    if config.split not in ("train", "eval", "all"):
        raise ConfigError(f"split={config.split}; expected train, eval or all")
    for name, value in (("rollouts", config.rollouts), ("rows", config.rows)):
        if value < 1:
            raise ConfigError(f"{name}={value}; expected at least 1")
    if config.out is not None and (Path(config.out).suffix not in TABLE_ENDINGS or Path(config.out).is_dir()):
        raise ConfigError(f"out={config.out}; expected a file that ends in {' or '.join(TABLE_ENDINGS)}")
    return LackRules(visits=config.visits, tasks=config.tasks, proposed=config.proposed, cheap=config.cheap)


def _ask(setting: Setting, policies: list[str], batch: DecisionBatch) -> dict[str, _Answered]:
    """Every script of the setting, and every policy that was given, on every stored state."""
    asked: dict[str, _Answered] = {}
    for name in [*setting.scripts, *(name for name in policies if name not in setting.scripts)]:
        policy = named_policy(name, setting)
        asked[name] = _Answered(name, policy.fingerprint, policy.probs_batch(batch))
    return asked


def _tokens(arrays: TrainingArrays, states: tuple[State, ...]) -> Floats:
    """(n,) tokens of each step: what was spent after it less what was spent before."""
    before = np.array([state.tokens for state in states], dtype=np.float64)
    last = np.append(arrays.episode[1:] != arrays.episode[:-1], True)
    after = np.where(last, arrays.tokens[arrays.episode], np.append(before[1:], 0.0))
    return after - before


def _suggestion(
    config: SupportConfig,
    setting: str,
    buffer: ReplayBuffer,
    arrays: TrainingArrays,
    mixtures: tuple[Mixture, ...],
    additions: tuple[Addition, ...],
    lacking: list[StatePair],
) -> Suggestion:
    run = _collect_config(buffer, arrays, setting)
    n_tasks = len(arrays.task_hashes)
    chosen = choose(additions, lacking, n_tasks * config.rollouts)
    rollouts = rollouts_needed(chosen, lacking, n_tasks, config.rollouts)
    policy = next(mixture.policy for mixture in mixtures if mixture.name == chosen.name)
    schema = {"simulated": SimulatedConfig, "openai": OpenAIConfig}.get(run["executor"]["kind"])
    words = [
        *setting_words(run["setting"]),
        *(executor_words(run["executor"], schema) if schema else ()),
        *policy_words(policy),
        *(f"{key}={run[key]}" for key, usual in (("split", "train"), ("split_by", "task")) if run[key] != usual),
        f"rollouts={rollouts}",
        # Above every seed in the buffer and that of evaluation, so that nothing is drawn twice.
        f"seed={max([1, *buffer.read(['seed'])['seed'].to_list()]) + 1}",
        f"buffer={hydra_value(config.buffer)}",
    ]
    return Suggestion(
        mixture=chosen.name,
        command=command_line("harness_mdp.collect", words),
        rollouts=rollouts,
        episodes=rollouts * n_tasks,
        filled=chosen.filled(lacking, rollouts * n_tasks),
    )


def _collect_config(buffer: ReplayBuffer, arrays: TrainingArrays, setting: str) -> Mapping[str, Json]:
    """The configuration that collected most of these episodes, so that the next ones are of the same tasks.

    Episodes that were imported have none; there the command names the setting alone.
    """
    made = Counter(buffer.read(["run"], episode_id=list(arrays.episode_ids))["run"].to_list())
    manifests = buffer.harness.runs()
    for run, _ in sorted(made.items(), key=lambda item: (-item[1], item[0])):
        config = manifests.get(run, {}).get("resolved", {}).get("config", {})
        if {"setting", "executor", "split", "split_by"} <= config.keys():
            return config
    return {"setting": {"name": setting}, "executor": {"kind": None}, "split": "train", "split_by": "task"}
