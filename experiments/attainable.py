"""What can be gained in a setting at all, and how much of it each learner takes out; simulated.

The best reachable value is the larger of two: a hand-written expert, and long growing-batch learning with a large
budget of simulated episodes. The share of a policy is `(V - V_base) / (V_best - V_base)`, on the evaluation tasks and
common draws; it is undefined where the gain is under 0.03 (DESIGN section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.statistics import bootstrap_t, resample_counts
from buffers import ReplayBuffer
from controllers.config import Method
from controllers.learners import learn
from controllers.presets import preset
from experiments.attainable_config import AttainableConfig
from experiments.config import PortfolioPolicyConfig, SettingConfig
from experiments.experts import expert
from experiments.growing import collect_simulated, growing_batch
from experiments.known_means import KnownMeans
from experiments.markdown import expect_place, replace_between, table
from experiments.members import member
from experiments.policies import named_policy
from experiments.value import SimulatedWorld
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.mdp import Policy
from harness_mdp.settings import SETTINGS

__all__ = ["SCRIPTS", "UNDEFINED_BELOW", "attainable_table", "main", "paired_gain", "share"]

Floats = npt.NDArray[np.float64]

UNDEFINED_BELOW = 0.03
"""A share of a smaller gain is noise."""
SCRIPTS = ("base", "forced_check", "check_revise", "tool_first", "more_evidence")
_SEED = 7
"""Of the executor's draws in evaluation; collections have others."""


def share(value: float, base: float, best: float) -> float | None:
    """(V - V_base) / (V_best - V_base); None where the gain is below `UNDEFINED_BELOW`."""
    gain = best - base
    return (value - base) / gain if gain >= UNDEFINED_BELOW else None


def paired_gain(paired: Floats) -> str:
    """Mean of the task differences (n_tasks,) and its 95% interval; none where all are the same."""
    if np.ptp(paired) == 0.0:
        return f"{paired.mean():+.3f}, no variance"
    interval = bootstrap_t(paired, resample_counts(len(paired), 10_000, 0), support=(-1.0, 1.0))
    return f"{paired.mean():+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"


def attainable_table(config: AttainableConfig) -> str:
    """Run what is missing and write the table as Markdown.

    Raises:
        ConfigError: no such setting or learner, or no episodes.
    """
    name = config.setting.name
    if name not in SETTINGS:
        raise ConfigError(f"setting is {name!r}; expected one of {', '.join(sorted(SETTINGS))}")
    if config.setting != SettingConfig(name=name):
        raise ConfigError(f"setting has changes; expected setting={name} alone: experts know the default tasks")
    if min(config.rounds, config.rollouts, config.eval_rollouts) < 1:
        raise ConfigError("rounds, rollouts and eval_rollouts are at least 1")
    if not 0.0 <= config.recheck <= 1.0:
        raise ConfigError(f"recheck is {config.recheck}; expected a share from 0 to 1")
    growing = member(Method, "growing", config.growing)
    methods = [member(Method, "methods", name) for name in config.methods]
    values = _Values(config)
    setting = values.world.tasks.setting
    for name in SCRIPTS:
        values.run(name, lambda name=name: named_policy(name, setting))
    values.run("expert", lambda: expert(setting))
    buffer = values.root / f"collected-{config.rollouts}"
    if any(method.value not in values.means for method in methods):
        collect_simulated(setting.name, config.profile, PortfolioPolicyConfig(), buffer, config.rollouts, config.seed)
        arrays = ReplayBuffer(buffer).tensors(setting.name)
        for method in methods:
            values.run(method.value, lambda method=method: learn(arrays, preset(method), seed=config.seed).controller)
    rounds = [f"{growing.value} round {index}" for index in range(1, config.rounds + 1)]
    if any(name not in values.means for name in rounds):
        for grown in growing_batch(
            setting,
            config.profile,
            growing,
            values.root,
            config.rounds,
            config.rollouts,
            config.seed,
            recheck=config.recheck,
            first=buffer,
        ):
            values.run(rounds[grown.index - 1], lambda grown=grown: grown.learned.controller)
    shown = [*SCRIPTS, "expert", *(method.value for method in methods), *rounds]
    return _table(config, {name: values.means[name] for name in shown}, rounds)


class _Values:
    """Task means by policy, kept as they are found."""

    def __init__(self, config: AttainableConfig) -> None:
        self.config = config
        self.world = SimulatedWorld(config.setting.name, config.profile)
        self.root = Path(config.root) / config.setting.name
        conditions: dict[str, Json] = {
            "profile": config.profile,
            "seed": config.seed,
            "rollouts": config.rollouts,
            "recheck": config.recheck,
            "eval_rollouts": config.eval_rollouts,
            "version": self.world.tasks.setting.version,
        }
        self.means = KnownMeans(self.root / "values.json", conditions)

    def run(self, name: str, policy: Callable[[], Policy]) -> None:
        """Run a policy that was not run yet."""
        if name in self.means:
            return
        found = self.world.returns(policy(), split="eval", rollouts=self.config.eval_rollouts, seed=_SEED)
        self.means.add(name, found.returns.mean(axis=1))
        print(f"{self.config.setting.name} {name}: {found.value:.3f} (simulated)", flush=True)  # noqa: T201


def _table(config: AttainableConfig, means: Mapping[str, Floats], rounds: list[str]) -> str:
    base = means["base"]
    grown = max(rounds, key=lambda name: means[name].mean())
    best = max(["expert", grown], key=lambda name: means[name].mean())
    rows: list[list[str]] = []
    for name, own in means.items():
        part = share(float(own.mean()), float(base.mean()), float(means[best].mean()))
        rows.append(
            [name, f"{own.mean():.3f}", paired_gain(own - base), "undefined" if part is None else f"{part:.2f}"]
        )
    episodes = len(base) * config.eval_rollouts
    return "\n".join(
        [
            f"`{config.setting.name}`, simulated executor `{config.profile}`, {episodes:,} episodes a figure on "
            f"{len(base)} evaluation tasks. Best reachable: {means[best].mean():.3f} ({best}).",
            "",
            table(["policy", "value", "Δ to base [95%]", "share of the attainable gain"], rows),
        ]
    )


def _write(config: AttainableConfig) -> int:
    if config.out is not None:
        expect_place(Path(config.out), "attainable")
    text = attainable_table(config)
    print(text)  # noqa: T201
    if config.out is not None:
        replace_between(Path(config.out), "attainable", text)
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("attainable", _write)


if __name__ == "__main__":
    main()
