"""One cell of a study: collect unless another cell has, train one controller, evaluate it beside the scripts.

Under `paths.root`: `buffers/<setting>-<hash>` is a buffer, shared by the cells that differ in method, guard and seeds
only, and `.json` beside it says which table version holds the whole collection; `cells/<cell>` holds status.json,
config.json, controller/ and evaluation.parquet; `locks/` keeps two processes from the same work.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from pathlib import Path

from analysis.matching import MAX_MISSING
from buffers import ReplayBuffer
from experiments.cell_locks import locked
from experiments.cell_names import buffer_name, cell_name, cell_values
from experiments.cell_status import CellState, CellStatus, read_status, write_status, write_whole
from experiments.collection import Collection, collect
from experiments.config import (
    CollectConfig,
    EpsilonPolicyConfig,
    EvaluateConfig,
    ExecutorConfig,
    SettingConfig,
    TrainConfig,
)
from experiments.evaluation import Evaluation, evaluate
from experiments.running import Outcome
from experiments.study_config import CellConfig
from experiments.summary import summarise
from experiments.training import train
from harness_mdp.errors import HarnessError, InputError
from harness_mdp.hashing import Json

__all__ = ["EVALUATION_FILE", "cell_folder", "finished_cell", "run_cell", "say"]

EVALUATION_FILE = "evaluation.parquet"
"""`Evaluation.episodes` of the cell."""


def cell_folder(root: str | Path, name: str) -> Path:
    """Where a cell keeps what it made."""
    return Path(root) / "cells" / name


def finished_cell(root: str | Path, name: str) -> CellStatus | None:
    """The status of a cell that needs no more work; None of any other."""
    folder = cell_folder(root, name)
    status = read_status(folder)
    done = status is not None and status.state is CellState.DONE and (folder / EVALUATION_FILE).exists()
    return status if done else None


def run_cell(config: CellConfig, *, quiet: bool = True) -> CellStatus:
    """Do what is missing of a cell; whatever goes wrong is in the status that is written and returned.

    Returns:
        Of a cell that went through, `facts` holds: `setting method learner seed executor evaluated_on simulated arms
        buffer policy paper_behaviour slack mean_return episodes`, the last three of the collected episodes. It has
        failed nevertheless where episodes are infra_missing, so that the next run tries them again.

    Raises:
        KeyboardInterrupt: stopped; the status says so.
    """
    name = cell_name(config)
    folder = cell_folder(config.paths.root, name)
    with locked(_lock(config, name), lambda: say(f"{name}: waits, another process works on this cell")):
        if (before := finished_cell(config.paths.root, name)) is not None:
            return before
        began = time.monotonic()
        write_status(folder, CellStatus(name, CellState.INTERRUPTED, "begun and not ended; the same command goes on"))
        write_whole(folder / "config.json", json.dumps(cell_values(config), indent=1, ensure_ascii=False) + "\n")
        try:
            facts, missing = _work(config, folder, name, quiet)
        except Exception as problem:  # noqa: BLE001  one cell must not stop the others
            told = str(problem) if isinstance(problem, HarnessError | OSError) else repr(problem)
            status = CellStatus(name, CellState.FAILED, told, traceback.format_exc(), time.monotonic() - began)
        else:
            state = CellState.FAILED if missing else CellState.DONE
            status = CellStatus(name, state, missing, seconds=time.monotonic() - began, facts=facts)
        write_status(folder, status)
        return status


def say(line: str) -> None:
    """A line for whoever watches, on stderr."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _lock(config: CellConfig, name: str) -> Path:
    return Path(config.paths.root) / "locks" / f"{name}.lock"


def _work(config: CellConfig, folder: Path, name: str, quiet: bool) -> tuple[dict[str, Json], str]:
    """The facts of the cell, and what is infra_missing in a sentence (empty if nothing is)."""
    collected = _collected(config, name, quiet)
    training = train(
        TrainConfig(
            setting=SettingConfig(name=config.setting.name),  # the buffer says which tasks
            method=config.method,
            buffer=str(_buffer(config, config.executor)),
            buffer_version=collected["version"],
            out=str(folder / "controller"),
            seed=config.train.seed,
            returns=config.returns,
            guard=config.guard,
            guard_margin=config.guard_margin,
            folds=config.train.folds,
            device=config.device,
            from_executor=collected["executor"],
        )
    )
    evaluation = _evaluated(config, training.out, name, quiet)
    facts: dict[str, Json] = {
        "setting": evaluation.episodes["setting"][0],
        "method": config.method.method,
        "learner": evaluation.learners[0],
        "seed": config.train.seed,
        "executor": collected["executor"],
        "evaluated_on": evaluation.executor,
        "simulated": evaluation.simulated,
        "arms": list(evaluation.arms),
        "buffer": _buffer(config, config.executor).name,
        "policy": config.policy.kind,
        "paper_behaviour": config.policy == EpsilonPolicyConfig(inner="base", epsilon=0.25, explore="legal"),
        **{key: collected[key] for key in ("slack", "mean_return", "episodes")},
    }
    draft = folder / f".{EVALUATION_FILE}"
    evaluation.episodes.write_parquet(draft)
    draft.replace(folder / EVALUATION_FILE)
    said = (collected["missing"], _missing(evaluation.outcome, "evaluation"))
    return facts, "; ".join(filter(None, said))


def _buffer(config: CellConfig, executor: ExecutorConfig) -> Path:
    return Path(config.paths.root) / "buffers" / buffer_name(config, executor)


def _collected(config: CellConfig, name: str, quiet: bool) -> dict[str, Json]:
    """`version executor episodes mean_return slack missing`: collected now, or before by a cell that shares the buffer.

    Raises:
        HarnessError: too much of it is missing.
    """
    buffer = _buffer(config, config.executor)
    mark = buffer.with_name(f"{buffer.name}.json")
    with locked(_lock(config, buffer.name), lambda: say(f"{name}: waits, another cell collects {buffer.name}")):
        if mark.exists() and buffer.exists():
            return _read_mark(mark)
        collection = collect(
            CollectConfig(
                setting=config.setting,
                executor=config.executor,
                policy=config.policy,
                buffer=str(buffer),
                rollouts=config.collect.rollouts,
                seed=config.collect.seed,
                split_by=config.split_by,
                concurrency=config.concurrency,
                limits=config.limits,
            ),
            quiet=quiet,
        )
        found = _counted(collection, ReplayBuffer(buffer))
        if not found["missing"]:
            write_whole(mark, json.dumps(found, indent=1) + "\n")
        return found


def _counted(collection: Collection, buffer: ReplayBuffer) -> dict[str, Json]:
    missing = _missing(collection.outcome, "collection")
    summary = summarise(buffer, collection.episode_ids)
    return {
        "version": buffer.version,
        "executor": collection.executor,
        "episodes": 0 if summary is None else summary.episodes,
        "mean_return": None if summary is None else summary.mean_return,
        "slack": None if summary is None else summary.slack,
        "missing": missing,
    }


def _read_mark(file: Path) -> dict[str, Json]:
    try:
        found = json.loads(file.read_text())
        return {key: found[key] for key in ("version", "executor", "episodes", "mean_return", "slack", "missing")}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise InputError(
            f"cannot be read ({problem!r})", file=file, remedy="Delete it, and the next run looks for itself"
        ) from problem


def _evaluated(config: CellConfig, controller: Path, name: str, quiet: bool) -> Evaluation:
    """The controller beside the scripts on the rollouts of its training seed; what another cell ran is there."""
    executor = config.evaluate_on or config.executor
    buffer = _buffer(config, executor)
    planned = EvaluateConfig(
        setting=config.setting,
        executor=executor,
        buffer=str(buffer),
        policies=[*config.evaluate.scripts, str(controller)],
        rollouts=config.evaluate.rollouts,
        first_rollout=config.train.seed * config.evaluate.rollouts,
        seed=config.evaluate.seed,
        split_by=config.split_by,
        concurrency=config.concurrency,
        limits=config.limits,
    )
    lock = _lock(config, f"{buffer.name}-{planned.first_rollout}")
    with locked(lock, lambda: say(f"{name}: waits, another cell evaluates on the same rollouts")):
        return evaluate(planned, quiet=quiet)


def _missing(outcome: Outcome, what: str) -> str:
    """What is infra_missing in a sentence; empty if nothing is.

    Raises:
        HarnessError: more than may be, or the run stopped at a limit.
    """
    if outcome.stopped is not None:
        raise HarnessError(f"{what}: {outcome.stopped}; raise the limit and run the same command again to go on")
    if not outcome.infra_missing:
        return ""
    said = (
        f"{what}: {outcome.infra_missing} of {outcome.planned} episodes are infra_missing "
        f"({'; '.join(outcome.reasons)}); the same command tries them again"
    )
    if outcome.infra_missing > MAX_MISSING * outcome.planned:
        raise HarnessError(said)
    return said
