"""What can be configured, as plain dataclasses. Hydra fills them; a notebook can make them by hand.

Nothing here, and nothing below the commands, imports Hydra.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from experiments.maturity_keys import MaturityPresetConfig
from experiments.method_config import AnyMethodConfig, MethodConfig
from experiments.returns_config import ReturnsConfig

__all__ = [
    "CollectConfig",
    "ControllerPolicyConfig",
    "DemoConfig",
    "EpsilonPolicyConfig",
    "EvaluateConfig",
    "ExecutorConfig",
    "LimitsConfig",
    "MethodConfig",
    "OpenAIConfig",
    "PaperTableConfig",
    "PolicyConfig",
    "PortfolioPolicyConfig",
    "ScoreConfig",
    "ScriptPolicyConfig",
    "SettingConfig",
    "SimulatedConfig",
    "StudyConfig",
    "TrainConfig",
    "VerifyConfig",
]

MISSING: Any = "???"
"""A value that has no default; the commands refuse a configuration that still holds one."""


@dataclass
class SettingConfig:
    """A family of tasks."""

    name: str = MISSING
    """One of ours, one that an installed package registers, or MODULE:CLASS."""
    path: str | None = None
    """Benchmark files (dbbench, tau_retail); None generates tasks from `seed`."""
    seed: int = 0
    """Seed of the task generator; not the seed of collection."""
    tasks: int = 100
    """How many tasks to generate."""
    difficulties: list[str] | None = None
    """Keep only tasks of these difficulties (easy, standard, hard), before the split."""
    templates: list[str] | None = None
    """Keep only tasks of these templates, before the split."""
    limit: int | None = None
    """Use only so many tasks of each split, in the order of their content hash: for slow executors."""
    horizon: int | None = None
    """Steps per episode; None is the setting's own."""
    tokens: int | None = None
    """Token budget per episode; None is the setting's own."""
    usd: float | None = None
    """Money budget per episode in USD; None is no limit."""


@dataclass
class ExecutorConfig:
    """A frozen model."""

    kind: str = MISSING


@dataclass
class SimulatedConfig(ExecutorConfig):
    """The seeded stand-in (docs/simulated.md)."""

    kind: str = "simulated"
    profile: str = "medium"
    """Skill: weak, medium or strong."""


@dataclass
class OpenAIConfig(ExecutorConfig):
    """Any OpenAI-compatible endpoint. The key comes from the environment, never from a configuration."""

    kind: str = "openai"
    model: str = MISSING
    """Name as the endpoint knows it."""
    base_url: str | None = None
    """None is the SDK's default (OPENAI_BASE_URL, or OpenAI itself)."""
    label: str = ""
    """Part of the executor's fingerprint: tells apart two deployments of one model name."""
    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 512
    context_tokens: int = 8192
    """Largest prompt plus completion of one call; only the bounds of a dry run use it."""
    timeout: float = 120.0
    """Seconds per call, retries not included."""
    step_timeout: float | None = None
    """The agent's own limit on one call in seconds; what exceeds it is a failed step, not infrastructure."""
    max_retries: int = 4
    requests_per_minute: float | None = None
    send_seed: bool = True
    """Send the draw's seed; some servers refuse it."""
    token_limit_field: str = "max_tokens"  # noqa: S105
    """Name under which `max_tokens` is sent; newer OpenAI models want `max_completion_tokens`."""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the request, e.g. `{top_k: 1}`; part of the executor's fingerprint."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; a server on this machine needs none."""
    prices: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    """Model -> [USD per million prompt tokens, USD per million completion tokens]."""
    cache: bool = True


@dataclass
class PolicyConfig:
    """How actions are chosen."""

    kind: str = MISSING


@dataclass
class ScriptPolicyConfig(PolicyConfig):
    """A script of the setting, or `random`."""

    kind: str = "script"
    name: str = MISSING
    """A script of the setting, or `random`."""


@dataclass
class EpsilonPolicyConfig(PolicyConfig):
    """A policy with ε exploration over R ∩ legal."""

    kind: str = "epsilon"
    inner: str = "base"
    """A script, or the folder of a saved controller."""
    epsilon: float = 0.25
    """Chance of exploring, in [0, 1]."""
    explore: str = "legal_no_submit"
    """R: `legal` or `legal_no_submit`."""
    recheck: float = 0.0
    """Share of submissions that a check replaces, in [0, 1]: without it no episode shows what one more check finds."""


@dataclass
class PortfolioPolicyConfig(PolicyConfig):
    """A mixture of scripts (or controllers) at every step, plus a little uniform."""

    kind: str = "portfolio"
    weights: dict[str, float] = field(default_factory=dict[str, float])
    """Script or controller folder -> α; with ε they sum to 1. Empty: base 0.45, check_revise 0.25, tool_first 0.1,
    more_evidence 0.1."""
    epsilon: float = 0.1
    """Chance of exploring."""
    explore: str = "legal_no_submit"
    """R: `legal` or `legal_no_submit`."""
    recheck: float = 0.0
    """Share of submissions that a check replaces, in [0, 1]: without it no episode shows what one more check finds."""


@dataclass
class ControllerPolicyConfig(PolicyConfig):
    """A saved controller."""

    kind: str = "controller"
    path: str = MISSING
    """Folder of a saved controller."""
    decision: str | None = None
    """`sample` or `greedy`; None is the rule it was saved with."""


@dataclass
class LimitsConfig:
    """Upper bounds of what the whole command may spend, replayed completions included."""

    tokens: int | None = None
    """Tokens, prompt and completion."""
    usd: float | None = None
    """USD; needs a known price."""


@dataclass
class CollectConfig:
    """Log episodes of the frozen executor into a buffer: `python -m harness_mdp.collect`."""

    setting: SettingConfig = MISSING
    executor: ExecutorConfig = MISSING
    policy: PolicyConfig = MISSING
    buffer: str = MISSING
    """Folder of the Delta table."""
    rollouts: int = 20
    """Episodes per task."""
    seed: int = 0
    """Seed of the executor's draws and the policy's choices."""
    split: str = "train"
    """Tasks to collect on: train, eval or all."""
    split_by: str = "task"
    """Deal tasks to train and eval one by one (task) or by whole templates (template)."""
    concurrency: int = 16
    """Episodes (and so executor calls) at once."""
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    dry_run: bool = False
    """Print what would run and the most it could cost; pay nothing."""


@dataclass
class TrainConfig:
    """Learn a controller from a buffer and save it: `python -m harness_mdp.train`."""

    setting: SettingConfig = MISSING
    method: AnyMethodConfig = MISSING
    buffer: str = MISSING
    """Folder of the Delta table."""
    out: str = MISSING
    """Folder of the saved controller."""
    seed: int = 0
    """Seed of everything that is drawn in training."""
    returns: ReturnsConfig = field(default_factory=ReturnsConfig)
    """What is to be maximised: `quality`, `cost` or `efficiency`."""
    guard: str = "none"
    """Follow the controller only where the buffer speaks for it, base elsewhere: `none`, `support` (enough visits) or
    `advantage` (that, and a lower bound of the advantage over base above `guard_margin`)."""
    guard_margin: float = 0.0
    """In units of the return."""
    folds: int = 5
    """Task-fold controllers to save with it: `ope` scores each on tasks it did not learn from. 0 saves none."""
    device: str = "auto"
    """auto, cpu or cuda."""
    from_executor: str | None = None
    """Executor fingerprint to learn from; needed when the buffer holds more than one."""
    mix_executors: bool = False
    """Learn from all executors in the buffer together."""
    buffer_version: int | None = None
    """Table version to read; None is the newest. Training seeds of one learner have to read the same."""


@dataclass
class EvaluateConfig:
    """Compare policies on identical tasks, rollouts and draws: `python -m harness_mdp.evaluate`."""

    setting: SettingConfig = MISSING
    executor: ExecutorConfig = MISSING
    buffer: str = MISSING
    """Folder of the Delta table; episodes are added to it as phase eval."""
    policies: list[str] = field(default_factory=lambda: ["base", "forced_check", "check_revise"])
    """Scripts, `random`, and folders of saved controllers; the first is the reference."""
    rollouts: int = 3
    """Episodes per task and training seed."""
    first_rollout: int = 0
    """Rollouts are numbered from here; a study evaluates training seed s alone, from s times `rollouts`."""
    seed: int = 1
    """Seed of the executor's draws; another than that of collection, so nothing learned from is seen again."""
    split: str = "eval"
    """Tasks to evaluate on: train, eval or all."""
    split_by: str = "task"
    """As in the collection: task or template."""
    out: str | None = None
    """Table as Parquet or JSON, by its ending."""
    maturity: MaturityPresetConfig = field(default_factory=MaturityPresetConfig)
    """Preset of the Harness Maturity Score that is shown: `paper` or `strict` as they are; both are stored."""
    on_learned_tasks: bool = False
    """Evaluate controllers on tasks they learned from; refused otherwise, and the output says so."""
    events: bool = False
    """Also show each maturity event as a rate."""
    concurrency: int = 16
    """Episodes (and so executor calls) at once."""
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    dry_run: bool = False
    """Print what would run and the most it could cost; pay nothing."""


@dataclass
class VerifyConfig:
    """Fold every stored episode again, report what does not replay: `python -m harness_mdp.verify`."""

    buffer: str = MISSING
    """Folder of the Delta table."""
    settings: list[str] = field(default_factory=list[str])
    """MODULE:CLASS of settings in the buffer that are neither ours nor registered."""


@dataclass
class ScoreConfig:
    """Score stored episodes again under other maturity thresholds: `python -m harness_mdp.score`."""

    buffer: str = MISSING
    """Folder of the Delta table."""
    maturity: MaturityPresetConfig = field(default_factory=MaturityPresetConfig)
    settings: list[str] = field(default_factory=list[str])
    """MODULE:CLASS of settings in the buffer that are neither ours nor registered."""


@dataclass
class StudyConfig:
    """Collect, train, evaluate several learners of one setting under one root: `experiments.study.run_study`."""

    setting: SettingConfig = MISSING
    executor: ExecutorConfig = MISSING
    policy: PolicyConfig = MISSING
    root: str = MISSING
    """Folder for the buffer, the controllers and the tables of this cell."""
    rollouts: int = 20
    """Episodes per training task."""
    seed: int = 0
    """Seed of collection."""
    methods: list[str] = field(default_factory=lambda: ["bc", "aw"])
    train_seeds: list[int] = field(default_factory=lambda: [0, 1, 2])
    scripts: list[str] = field(default_factory=lambda: ["base", "forced_check", "check_revise"])
    """Baselines beside the learners; the first is the reference."""
    eval_rollouts: int = 3
    """Episodes per evaluation task and training seed."""
    eval_seed: int = 1
    split_by: str = "task"
    device: str = "auto"
    concurrency: int = 16
    limits: LimitsConfig = field(default_factory=LimitsConfig)


@dataclass
class DemoConfig:
    """`make demo`: the study on two settings with the simulated executor."""

    root: str = "runs/demo"
    settings: list[str] = field(default_factory=lambda: ["coding", "dbbench"])
    rollouts: int = 20
    eval_rollouts: int = 3
    profile: str = "medium"


@dataclass
class PaperTableConfig:
    """`python -m experiments.paper_table`: every setting at the paper's size, beside the paper's figures."""

    root: str = "runs/paper"
    settings: list[str] = field(
        default_factory=lambda: [
            "knowledge_work",
            "coding",
            "research",
            "multi_tool",
            "long_memory",
            "planning",
            "tau_retail",
            "dbbench",
        ]
    )
    behaviours: list[str] = field(default_factory=lambda: ["paper", "portfolio"])
    profile: str = "medium"
    rollouts: int = 20
    eval_rollouts: int = 3
    reference: str | None = None
    """JSON of the paper's published figures; None leaves its columns out."""
    out: str | None = None
    """Markdown file in which the tables between the two `paper_table` comments are replaced."""
