"""Runs code that a model wrote, in a process of its own, and brings back what it returned.

Every run is a fresh interpreter (about 20 ms) in its own session and an empty folder, with a clean environment,
resource limits and, where the kernel allows, no network, no files, no further processes (`sandbox_child`). It
is given source and inputs only. Expected values never enter it: whoever calls compares, with `same`, so code
that takes its process over still cannot forge a pass.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from harness_mdp.executors.protocol import InfraFault
from harness_mdp.hashing import Json, text_hash

__all__ = ["SAFE_MODULES", "Limits", "Outcome", "RunStatus", "SandboxResult", "parse_python", "run_calls", "same"]

CHILD = Path(__file__).with_name("sandbox_child.py")

FLAGS = ("-P", "-s", "-S")
"""No folder of ours and no site packages on the path. Not `-I`: it would ignore PYTHONHASHSEED, and an artifact
that walks through a set would return something else in every run."""

SAFE_MODULES = frozenset(
    "bisect collections collections.abc copy dataclasses datetime decimal enum fractions functools heapq itertools "  # noqa: SIM905
    "math operator re statistics string typing".split()
)
"""What artifacts may import. Those that the source names are loaded before the files go out of reach."""

MEMO_SIZE = 4096
START_GRACE_S = 20.0
"""How long a loaded machine may take to start the interpreter; beyond that the sandbox is at fault."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use."""

    cpu_s: int = 2
    """CPU seconds; the limit that an endless loop meets, the same on a busy machine."""
    wall_s: float = 10.0
    """Wall seconds from the moment the code is loaded; what a sleeping run meets."""
    memory_mib: int = 512
    output_bytes: int = 1 << 20
    """All results together, as JSON."""


class RunStatus(StrEnum):
    """How the process ended."""

    FINISHED = "finished"
    TIMEOUT = "timeout"
    """The wall limit."""
    OUT_OF_CPU = "out_of_cpu"
    CRASHED = "crashed"
    """It ended before the last call did: a fault of memory, `os._exit`, a closed result pipe."""
    BROKEN = "broken"
    """It wrote too much, or something that is no result."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call gave: a JSON value, or an error in one line."""

    ok: bool
    value: Json = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """One outcome per call, in order; calls that were not reached carry the reason as their error."""

    status: RunStatus
    outcomes: tuple[Outcome, ...]
    isolation: tuple[str, ...]
    """What the kernel granted, of `limits`, `network`, `files`, `syscalls`."""


async def run_calls(
    source: str, function: str, calls: Sequence[Sequence[Json]], limits: Limits | None = None
) -> SandboxResult:
    """Load `source` in a fresh process and call `function` with each list of arguments, in order.

    At most one process per CPU at a time. The last `MEMO_SIZE` results are kept in memory under the hash of
    everything that goes in, since the same draft is run many times in a collection; a `TIMEOUT` is not kept,
    because it depends on the machine's load. Treat the values as read-only: they are shared.

    Args:
        source: Python source; anything at all.
        function: name of the function to call.
        calls: arguments by position, JSON values.
        limits: defaults to `Limits()`.

    Raises:
        InfraFault: the process could not be started; nothing the code did.
    """
    limits = limits or Limits()
    job = json.dumps(
        {
            "source": source,
            "function": function,
            "calls": [list(call) for call in calls],
            "modules": sorted(_safe_imports(source)),
            "limits": asdict(limits),
        }
    )
    key = text_hash(job)
    known = _memo.get(key)
    if known is None:
        loop = asyncio.get_running_loop()
        known = await loop.run_in_executor(_pool(), _run, job, len(calls), limits)
        if known.status is not RunStatus.TIMEOUT:
            _memo.put(key, known)
    return known


def same(expected: Json, got: Json) -> bool:
    """`got` is what was expected: same JSON type and value; floats within 1e-9 (relative or absolute).

    An int passes for a float of the same value, a float never for an int, a bool never for a number. Tuples
    come out of the sandbox as lists, so the two are not told apart.
    """
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, float):
        return isinstance(got, int | float) and _close(expected, got)
    if type(expected) is not type(got):
        return False
    if isinstance(expected, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, dict):
        return expected.keys() == got.keys() and all(same(item, got[key]) for key, item in expected.items())
    return expected == got


def parse_python(source: str) -> ast.Module:
    """The syntax tree of a model's source, which may be anything.

    Raises:
        SyntaxError: it is no Python, or nested too deeply for the parser.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the model's style; nobody here can act on them
            return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as problem:
        raise SyntaxError(f"unreadable source: {problem}") from problem


def _close(expected: float, got: float) -> bool:
    try:
        return math.isclose(expected, got, rel_tol=1e-9, abs_tol=1e-9)
    except OverflowError:  # an int beyond the range of floats
        return False


def _safe_imports(source: str) -> set[str]:
    """Modules of `SAFE_MODULES` that the source imports; none when it cannot be parsed."""
    try:
        nodes = list(ast.walk(parse_python(source)))
    except SyntaxError:
        return set()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return (names & SAFE_MODULES) | ({"_strptime"} if "datetime" in names else set())  # which it loads when used


class _Memo:
    """Least recently used results; safe to share between threads, each of which may run its own event loop."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._results: OrderedDict[str, SandboxResult] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> SandboxResult | None:
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
            return self._results.get(key)

    def put(self, key: str, result: SandboxResult) -> None:
        with self._lock:
            self._results[key] = result
            while len(self._results) > self._size:
                self._results.popitem(last=False)


_memo = _Memo(MEMO_SIZE)


@cache
def _pool() -> ThreadPoolExecutor:
    """One thread per CPU waits for one process each; shared by all event loops, so it bounds them together."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="sandbox")


def _run(job: str, n_calls: int, limits: Limits) -> SandboxResult:
    """Start the child, read its lines until it is done or out of time, kill whatever is left of it."""
    with tempfile.TemporaryDirectory(prefix="sandbox-") as folder, tempfile.TemporaryFile() as stdin:
        stdin.write(job.encode())
        stdin.seek(0)
        read_end, write_end = os.pipe()
        try:
            try:
                process = subprocess.Popen(  # noqa: S603  (our own interpreter and script)
                    [sys.executable, *FLAGS, str(CHILD), str(write_end)],
                    stdin=stdin,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=folder,
                    env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                    start_new_session=True,
                    pass_fds=(write_end,),
                )
            except OSError as problem:
                raise InfraFault(f"the sandbox could not start a process: {problem}") from problem
            finally:
                os.close(write_end)
            try:
                header, body, status = _read(read_end, limits)
            finally:
                ended_by = _kill(process)
            if status is RunStatus.FINISHED and ended_by == -signal.SIGXCPU:
                status = RunStatus.OUT_OF_CPU
        finally:
            os.close(read_end)
    return _result(header, body, status, n_calls)


def _kill(process: subprocess.Popen[bytes]) -> int:
    """Ends the child's whole process group; its exit status.

    The id of the group cannot be reused before `wait`, so no other can be hit.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _read(fd: int, limits: Limits) -> tuple[bytes, bytes, RunStatus]:
    """(first line, rest, status so far). The wall limit starts with the first line, when the code is loaded."""
    data = bytearray()
    header_end = -1
    deadline = time.monotonic() + START_GRACE_S
    poll = select.poll()  # unlike `select.select`, it takes any file number, and a collection opens many
    poll.register(fd, select.POLLIN)
    while True:
        if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
            status = RunStatus.TIMEOUT
            break
        chunk = os.read(fd, 1 << 16)
        if not chunk:
            status = RunStatus.FINISHED
            break
        data += chunk
        if header_end < 0 and b"\n" in data:
            header_end = data.index(b"\n")
            deadline = time.monotonic() + limits.wall_s
        if len(data) > limits.output_bytes + header_end + 1:
            status = RunStatus.BROKEN
            break
    if header_end < 0:
        raise InfraFault(f"the sandbox process ended before it ran any code ({status})")
    return bytes(data[:header_end]), bytes(data[header_end + 1 : header_end + 1 + limits.output_bytes]), status


_UNREACHED = {
    RunStatus.TIMEOUT: "ran out of time",
    RunStatus.OUT_OF_CPU: "ran out of CPU time",
    RunStatus.CRASHED: "the process ended before this call returned",
    RunStatus.BROKEN: "the output is too large or no result",
}


def _result(header: bytes, body: bytes, status: RunStatus, n_calls: int) -> SandboxResult:
    isolation = tuple(json.loads(header)["isolation"])
    outcomes: list[Outcome] = []
    for line in body.split(b"\n")[:-1]:
        outcome = _outcome(line)
        if outcome is None or len(outcomes) == n_calls:
            # Lines that are no result, or one too many, come from the code itself: none of them counts.
            status, outcomes = RunStatus.BROKEN, []
            break
        outcomes.append(outcome)
    if status is RunStatus.FINISHED and len(outcomes) < n_calls:
        status = RunStatus.CRASHED
    missing = Outcome(False, error=_UNREACHED.get(status, ""))
    outcomes += [missing] * (n_calls - len(outcomes))
    return SandboxResult(status, tuple(outcomes), isolation)


def _outcome(line: bytes) -> Outcome | None:
    try:
        read: Json = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(read, dict) and len(read) == 1:
        if "value" in read:
            return Outcome(True, read["value"])
        if isinstance(read.get("error"), str):
            return Outcome(False, error=read["error"].encode("utf-8", "replace").decode())
    return None
