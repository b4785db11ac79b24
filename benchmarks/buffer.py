"""Buffer size and open-to-tensors, beside the same episodes as JSON lines.

`python -m benchmarks.buffer` makes 1,600 synthetic episodes (80 tasks x 20 rollouts);
`python -m benchmarks.buffer BUFFER` takes the episodes of a buffer that was collected.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.table import REPEATS, Line, Report, text
from buffers import ReplayBuffer, TrainingArrays
from buffers.rows import to_table
from buffers.writer import MAX_EPISODES
from harness_mdp.mdp import Episode

__all__ = ["measure", "measure_episodes"]


def measure_episodes(episodes: Sequence[Episode], folder: Path) -> list[Line]:
    """Bytes on disk and seconds from opening to arrays, for episodes of one setting, phase and split."""
    setting = episodes[0].setting
    lines = folder / "episodes.jsonl"
    write_json_lines(episodes, lines)
    buffer = ReplayBuffer(folder / "buffer")
    for start in range(0, len(episodes), MAX_EPISODES):
        buffer.append(episodes[start : start + MAX_EPISODES])
    peer_bytes = lines.stat().st_size / len(episodes)
    result: list[Line] = []
    for state in ("as committed", "compacted"):
        if state == "compacted":
            buffer.compact()
            buffer.vacuum(0)
        ours, peer = timed_in_turn(
            lambda: ReplayBuffer(buffer.path).tensors(setting), lambda: read_json_lines(lines, setting)
        )
        size = sum(path.stat().st_size for path in Path(buffer.path).rglob("*") if path.is_file())
        result.append(Line(f"size, {state}", "bytes/episode", size / len(episodes), peer_bytes, 10.0))
        result.append(Line(f"open to tensors, {state}", "ms", ours * 1e3, peer * 1e3, 20.0))
    return result


def write_json_lines(episodes: Sequence[Episode], path: Path) -> None:
    """Every column of the buffer, one compact JSON object an episode."""
    with path.open("w", encoding="utf-8") as file:
        for row in to_table(episodes).to_pylist():
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


Arrays = tuple[np.ndarray, ...]
"""features, mask, base_action, action, propensities, t, episode, returns, task"""


def read_json_lines(path: Path, setting: str) -> Arrays:
    """The same arrays in the same order, by the straightforward reader."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = [r for r in rows if (r["setting"], r["phase"], r["split"]) == (setting, "collect", "train")]
    rows.sort(key=lambda r: (r["task_id"], r["seed"], r["rollout"], r["episode_id"]))
    steps = [step for row in rows for step in row["steps"]]
    tasks = {name: i for i, name in enumerate(sorted({row["task_id"] for row in rows}))}
    return (
        np.array([s["features"] for s in steps], dtype=np.float32),
        np.array([s["mask"] for s in steps], dtype=np.bool_),
        np.array([s["base_action"] for s in steps], dtype=np.int64),
        np.array([s["action"] for s in steps], dtype=np.int64),
        np.array([s["propensities"] for s in steps], dtype=np.float64),
        np.array([s["t"] for s in steps], dtype=np.int64),
        np.repeat(np.arange(len(rows)), [len(row["steps"]) for row in rows]),
        np.array([row["return"] for row in rows], dtype=np.float64),
        np.array([tasks[row["task_id"]] for row in rows], dtype=np.int64),
    )


def require_same(ours: TrainingArrays, peer: Arrays) -> None:
    """Both readers give the same numbers, or the comparison means nothing."""
    mine = (ours.features, ours.mask, ours.base_action, ours.action, ours.propensities, ours.t)
    for left, right in zip((*mine, ours.episode, ours.returns, ours.task), peer, strict=True):
        if not np.array_equal(left, right):
            raise AssertionError("the buffer and the JSON lines give different arrays")


def timed_in_turn(ours: Callable[[], TrainingArrays], peer: Callable[[], Arrays]) -> tuple[float, float]:
    """Median seconds of each over `REPEATS` calls in turn, after one of each to warm up and compare."""
    require_same(ours(), peer())
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        for read, taken in zip((ours, peer), seconds, strict=True):
            began = perf_counter()
            read()
            taken.append(perf_counter() - began)
    return median(seconds[0]), median(seconds[1])


def measure(path: str | None = None) -> Report:
    """Size and open-to-tensors of synthetic episodes, or of those collected in the buffer at `path`."""
    if path is not None:
        stored = ReplayBuffer(path)
        setting = str(stored.episodes_df(phase="collect", split="train")["setting"][0])
        episodes = list(stored.episodes(setting=setting, phase="collect", split="train"))
        source = f"collected episodes of {setting}"
    else:
        from tests.episodes import episodes as make

        episodes = make(1600)
        source = "synthetic episodes"
    with tempfile.TemporaryDirectory() as folder:
        lines = measure_episodes(episodes, Path(folder))
    steps = sum(len(episode.steps) for episode in episodes)
    return Report(
        title="buffer",
        peer="the same episodes as JSON lines",
        setup=f"{len(episodes)} {source}, {steps} steps; median of {REPEATS}",
        lines=tuple(lines),
    )


if __name__ == "__main__":
    print(text(measure(*sys.argv[1:2])))
