"""Every learner and script in every setting, as a share of what can be gained; simulated (docs/learners.md).

One cell is a setting, a behaviour and a collection seed: collect at paper size, train every learner, and run each on
the evaluation tasks often enough that a value is known to about a hundredth. Cells are kept as they are finished.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from buffers import ReplayBuffer, TrainingArrays
from controllers.config import LearnerConfig, Method
from controllers.guard import GuardConfig
from controllers.learners import Learned, learn
from experiments.attainable import SCRIPTS, paired_gain, share
from experiments.experts import expert
from experiments.growing import collect_simulated, growing_batch
from experiments.known_means import KnownMeans
from experiments.learners_table_config import LearnersTableConfig
from experiments.markdown import expect_place, replace_between, table
from experiments.members import member
from experiments.method_config import AnyMethodConfig, learner_config, method_config
from experiments.paper_table import behaviour
from experiments.policies import named_policy
from experiments.value import SimulatedWorld
from harness_mdp.errors import ConfigError
from harness_mdp.hashing import Json
from harness_mdp.mdp import Policy

__all__ = ["learners_tables", "main", "variant"]

Floats = npt.NDArray[np.float64]

FOLDS = 4
"""Of the training tasks, where policies are run on those."""
EVALUATION_SEED = 1
"""Of the first collection's controllers; each collection has draws of its own, shared by all policies it is held to."""


@dataclass(frozen=True)
class Cell:
    """Task means of every policy, from one collection."""

    means: Mapping[str, Floats]
    """Policy -> (n_tasks,) mean return on each evaluation task."""
    buffer_mean: float


def run_cell(config: LearnersTableConfig, world: SimulatedWorld, behaviour_name: str, seed: int) -> Cell:
    """Collect, train, run; or read what an earlier call of the same cell found."""
    setting = world.tasks.setting.name
    root = Path(config.root) / setting / f"{behaviour_name}-{seed}"
    known = _known(root, "values", config, world)
    learners = [*config.methods, *(f"{name}+guard" for name in config.guarded)]
    if missing := [name for name in learners if name not in known]:
        buffer = _collected(config, root)
        collect_simulated(setting, config.profile, behaviour(behaviour_name), buffer, config.rollouts, seed)
        arrays = ReplayBuffer(buffer).tensors(setting)
        known.buffer_mean = float(arrays.returns.mean())
        for name in missing:
            began = time.perf_counter()
            learned = _learn(name, arrays, seed, folds=FOLDS if config.on == "train" else 0)
            trained = time.perf_counter()
            known.add(name, _learned_means(world, arrays, learned, config, seed))
            print(  # noqa: T201
                f"{setting} {behaviour_name} {seed} {name}: {known[name].mean():.3f} (simulated; "
                f"trained in {trained - began:.0f} s, run in {time.perf_counter() - trained:.0f} s)",
                flush=True,
            )
    grown: list[str] = []
    if config.growing is not None and behaviour_name == "portfolio":
        for recheck in config.rechecks:
            grown += _grow(Method(config.growing), recheck, config, world, root, seed, known)
    return Cell({name: known[name] for name in [*learners, *grown]}, known.buffer_mean)


def _collected(config: LearnersTableConfig, root: Path) -> Path:
    return root / f"collected-{config.rollouts}"


def _grow(
    method: Method,
    recheck: float,
    config: LearnersTableConfig,
    world: SimulatedWorld,
    root: Path,
    seed: int,
    known: KnownMeans,
) -> list[str]:
    """Names of two further rounds of growing batch, whose task means are known then."""
    more = f", recheck {recheck:g}" if recheck else ""
    names = {index: f"{method.value} round {index}{more}" for index in (2, 3)}
    if all(name in known for name in names.values()):
        return list(names.values())
    setting, folds = world.tasks.setting, FOLDS if config.on == "train" else 0
    first = _collected(config, root)
    for grown in growing_batch(
        setting, config.profile, method, root, 3, config.rollouts, seed, recheck=recheck, folds=folds, first=first
    ):
        if (name := names.get(grown.index)) is not None and name not in known:
            known.add(name, _learned_means(world, grown.arrays, grown.learned, config, seed))
            print(f"{root.parent.name} {seed} {name}: {known[name].mean():.3f} (simulated)", flush=True)  # noqa: T201
    return list(names.values())


def _learn(name: str, arrays: TrainingArrays, seed: int, folds: int) -> Learned:
    learner, _, guarded = name.partition("+")
    guard = GuardConfig() if guarded else None
    return learn(arrays, variant(learner), seed=seed, guard=guard, folds=folds)


def variant(text: str) -> LearnerConfig:
    """A learner's preset with changes: `aw_linear prior=behaviour linear.relative=0`.

    Raises:
        ConfigError: no such learner, key or value, by name.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    name, *changes = text.split()
    try:
        config = OmegaConf.merge(OmegaConf.structured(method_config(name)), OmegaConf.from_dotlist(changes))
    except OmegaConfBaseException as problem:
        raise ConfigError(f"{text!r}: {str(problem).splitlines()[0]}; expected METHOD KEY=VALUE ...") from None
    return learner_config(cast("AnyMethodConfig", OmegaConf.to_object(config)))


def _task_means(world: SimulatedWorld, policy: Policy, config: LearnersTableConfig, seed: int) -> Floats:
    found = world.returns(policy, split=config.on, rollouts=config.eval_rollouts, seed=EVALUATION_SEED + seed)
    return found.returns.mean(axis=1)


def _learned_means(
    world: SimulatedWorld, arrays: TrainingArrays, learned: Learned, config: LearnersTableConfig, seed: int
) -> Floats:
    """(n_tasks,) on evaluation tasks; or on training tasks, each run with the controller that has not seen it."""
    if config.on == "eval":
        return _task_means(world, learned.controller, config, seed)
    tasks = world.tasks.select("train")
    place = {task.hash: index for index, task in enumerate(tasks)}
    means = np.full(len(tasks), np.nan)
    for fold in learned.folds:
        held = sorted(place[arrays.task_hashes[task]] for task in np.unique(arrays.task[fold.held_out]))
        found = world.returns(
            fold.controller,
            split="train",
            rollouts=config.eval_rollouts,
            seed=EVALUATION_SEED + seed,
            task_ids={tasks[index].id for index in held},
        )
        means[held] = found.returns.mean(axis=1)
    return means


def _known(folder: Path, name: str, config: LearnersTableConfig, world: SimulatedWorld) -> KnownMeans:
    conditions: dict[str, Json] = {
        "profile": config.profile,
        "rollouts": config.rollouts,
        "eval_rollouts": config.eval_rollouts,
        "version": world.tasks.setting.version,
    }
    return KnownMeans(folder / f"{'train-' if config.on == 'train' else ''}{name}.json", conditions)


def reference_means(config: LearnersTableConfig, world: SimulatedWorld, seed: int) -> dict[str, Floats]:
    """Task means of scripts and expert on the draws that the controllers of one collection are run on."""
    setting = world.tasks.setting.name
    known = _known(Path(config.root) / setting, f"scripts-{seed}", config, world)
    policies = {name: named_policy(name, world.tasks.setting) for name in SCRIPTS}
    policies["expert"] = expert(world.tasks.setting)
    for name, policy in policies.items():
        if name not in known:
            known.add(name, _task_means(world, policy, config, seed))
    return {name: known[name] for name in policies}


def learners_tables(config: LearnersTableConfig) -> str:
    """Run what is missing of every cell and write the tables as Markdown.

    Raises:
        ConfigError: a value of `on`, `behaviours` or `rechecks` that is none, or a learner that is none.
    """
    if config.on not in ("eval", "train"):
        raise ConfigError(f"on is {config.on!r}; expected eval or train")
    if min(config.seeds, config.rollouts, config.eval_rollouts) < 1 or not config.methods:
        raise ConfigError("seeds, rollouts and eval_rollouts are at least 1, and methods holds at least one")
    if not all(0.0 <= each <= 1.0 for each in config.rechecks):
        raise ConfigError(f"rechecks is {config.rechecks}; expected shares from 0 to 1")
    if config.growing is not None:
        member(Method, "growing", config.growing)
    for name in (*config.methods, *config.guarded):
        variant(name)
    for name in config.behaviours:
        behaviour(name)
    cells: dict[tuple[str, str], list[Cell]] = {}
    references: dict[str, list[dict[str, Floats]]] = {}
    for setting in config.settings:
        for seed in range(config.first_seed, config.first_seed + config.seeds):
            world = SimulatedWorld(setting, config.profile)  # what was run on one seed is shared, and then let go
            references.setdefault(setting, []).append(reference_means(config, world, seed))
            for name in config.behaviours:
                cells.setdefault((name, setting), []).append(run_cell(config, world, name, seed))
    found = {s: [cells[name, s] for name in config.behaviours] for s in config.settings}
    best = {setting: _attainable(found[setting], references[setting]) for setting in config.settings}
    parts: list[str] = []
    for name in config.behaviours:
        own = {setting: cells[name, setting] for setting in config.settings}
        parts += [f"### Behaviour `{name}`", "", _table(own, references, best), ""]
    return "\n".join(parts)


def _table(
    cells: Mapping[str, Sequence[Cell]],
    references: Mapping[str, Sequence[Mapping[str, Floats]]],
    best: Mapping[str, float],
) -> str:
    rows = [["buffer mean", *(f"{np.mean([cell.buffer_mean for cell in cells[s]]):.3f}" for s in cells), ""]]
    first = next(iter(cells.values()))[0]
    for name in [*SCRIPTS, "expert", *first.means]:
        line: list[str] = [name]
        shares: list[float] = []
        for setting, own in cells.items():
            base = [reference["base"] for reference in references[setting]]
            if name in SCRIPTS or name == "expert":
                found = [reference[name] for reference in references[setting]]
            else:
                found = [cell.means[name] for cell in own]
            means, base_means = np.mean(found, axis=0), np.mean(base, axis=0)
            part = share(float(means.mean()), float(base_means.mean()), best[setting])
            text = f"{means.mean():.3f} ({paired_gain(means - base_means)})"
            line.append(text + ("" if part is None else f", {part:.2f}"))
            shares += [] if part is None else [part]
        rows.append([*line, f"{np.median(shares):.2f}" if shares else "undefined"])
    rows.append(["attainable", *(f"{best[setting]:.3f}" for setting in cells), ""])
    return table(["policy", *cells, "median share"], rows)


def _attainable(behaviours: Sequence[Sequence[Cell]], references: Sequence[Mapping[str, Floats]]) -> float:
    """The larger of the expert's value and what growing batch reached from any behaviour, averaged over collections."""
    grown = [
        np.mean([cell.means[name].mean() for cell in cells])
        for cells in behaviours
        for name in cells[0].means
        if " round " in name
    ]
    return float(max([np.mean([reference["expert"].mean() for reference in references]), *grown]))


def _write(config: LearnersTableConfig) -> int:
    if config.out is not None:
        expect_place(Path(config.out), config.place)
    text = learners_tables(config)
    print(text)  # noqa: T201
    if config.out is not None:
        replace_between(Path(config.out), config.place, text)
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("learners_table", _write)


if __name__ == "__main__":
    main()
