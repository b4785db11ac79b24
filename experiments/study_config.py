"""What can be configured about one cell of a study: `python -m experiments.study`."""

from __future__ import annotations

from dataclasses import dataclass, field

from experiments.config import MISSING, ExecutorConfig, LimitsConfig, PolicyConfig, SettingConfig
from experiments.maturity_keys import MaturityPresetConfig
from experiments.method_config import AnyMethodConfig
from experiments.returns_config import ReturnsConfig

__all__ = ["CellConfig", "CollectPart", "EvaluatePart", "PathsConfig", "TrainPart"]


@dataclass
class PathsConfig:
    """Where a study lives."""

    root: str = "runs/study"
    """Folder with `buffers/`, `cells/` and `sweeps/`; the same command there goes on from what is finished."""
    sweep: str = ""
    """Name of this sweep's notes under `sweeps/`; filled in from the command line."""


@dataclass
class CollectPart:
    """The buffer of a setting, collected once for all cells that share it."""

    rollouts: int = 20
    """Episodes per training task."""
    seed: int = 0
    """Seed of the executor's draws and the policy's choices."""


@dataclass
class TrainPart:
    """The controller of a cell."""

    seed: int = 0
    """Training seed s; the cell evaluates on rollouts s·r to s·r + r - 1, r being `evaluate.rollouts`."""
    folds: int = 0
    """Task-fold controllers to save with it, which `ope` needs; 0 saves none."""


@dataclass
class EvaluatePart:
    """The controller beside scripts, on tasks it did not learn from."""

    scripts: list[str] = field(default_factory=lambda: ["base", "forced_check", "check_revise"])
    """Baselines; the first is the reference."""
    rollouts: int = 3
    """Episodes per evaluation task and training seed."""
    seed: int = 1
    """Seed of the executor's draws; another than that of collection."""


@dataclass
class CellConfig:
    """Collect, train, evaluate in cells, one for each combination of what is swept: `python -m experiments.study`."""

    setting: SettingConfig = MISSING
    executor: ExecutorConfig = MISSING
    policy: PolicyConfig = MISSING
    method: AnyMethodConfig = MISSING
    returns: ReturnsConfig = field(default_factory=ReturnsConfig)
    guard: str = "none"
    guard_margin: float = 0.0
    """What the lower bound of the advantage over base has to exceed, in units of the return."""
    maturity: MaturityPresetConfig = field(default_factory=MaturityPresetConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)
    evaluate_on: ExecutorConfig | None = None
    """Another executor to evaluate on, e.g. `executor@evaluate_on=simulated evaluate_on.profile=strong`."""
    collect: CollectPart = field(default_factory=CollectPart)
    train: TrainPart = field(default_factory=TrainPart)
    evaluate: EvaluatePart = field(default_factory=EvaluatePart)
    split_by: str = "task"
    """Deal tasks to train and eval one by one (task) or by whole templates (template)."""
    device: str = "auto"
    """auto, cpu or cuda."""
    concurrency: int = 16
    """Episodes (and so executor calls) at once, in each cell."""
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    tables: list[str] = field(default_factory=lambda: ["main", "ablation"])
    """At the end of the sweep: main, ablation, early_submit, transfer."""
    reference: str | None = None
    """JSON of the paper's published figures; None leaves its columns out."""
    out: str | None = None
    """Markdown page in which the tables between its two `study` comments are replaced."""
