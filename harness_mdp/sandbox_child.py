"""The child of the sandbox: confines itself, loads a model's code, calls one function, writes what it returns.

Run as `python -P -s -S sandbox_child.py RESULT_FD` with a job (JSON) on stdin; standard library only. The job
holds source and inputs, never an expected value, so code that takes this process over can forge outputs but
not a pass. Lines on RESULT_FD: first `{"isolation": [...]}`, then one `{"value": ...}` or `{"error": ...}` a call.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import platform
import resource
import struct
import sys
from typing import Any

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
CAPABILITY_VERSION_3 = 0x20080522

# Audit architecture and system call numbers that are refused: new processes and threads, new programs,
# sockets, signals to others, tracing, other namespaces and roots, and the two ways around a filter.
REFUSED = {
    # clone fork vfork execve kill tkill tgkill execveat clone3 socket socketpair ptrace process_vm_writev
    # pidfd_open pidfd_send_signal unshare setns chroot mount bpf io_uring_setup
    "x86_64": (
        0xC000003E,
        (56, 57, 58, 59, 62, 200, 234, 322, 435, 41, 53, 101, 311, 434, 424, 272, 308, 161, 165, 321, 425),
    ),
    "aarch64": (
        0xC00000B7,
        (220, 221, 129, 130, 131, 281, 435, 198, 199, 117, 271, 434, 424, 97, 268, 51, 40, 280, 425),
    ),
}
X32_BIT = 0x40000000

MAX_ERROR_CHARS = 200


def confine(job: dict[str, Any]) -> list[str]:
    """Gives up what model code does not need; names what the kernel granted.

    `limits` (resource limits), `network` (an own, empty network namespace), `files` (the empty folder as root,
    no capability left) and `syscalls` (a seccomp filter) depend on the kernel.
    """
    limits = job["limits"]
    mib = 1 << 20
    held = [
        _limit(resource.RLIMIT_CORE, 0),
        _limit(resource.RLIMIT_CPU, limits["cpu_s"], spare=1),
        _limit(resource.RLIMIT_AS, limits["memory_mib"] * mib),
        _limit(resource.RLIMIT_FSIZE, mib),
    ]
    done: list[str] = []
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "unshare") and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0:
        done.append("network")
        if _own_root(libc):
            done.append("files")
    if hasattr(libc, "prctl") and _filter(libc):
        done.append("syscalls")
    # Last, since they would have stopped the lines above. For root, only the filter stops new processes.
    held += [_limit(resource.RLIMIT_NPROC, 0), _limit(resource.RLIMIT_NOFILE, 32)]
    return ["limits", *done] if all(held) else done


def _limit(kind: int, value: int, spare: int = 0) -> bool:
    """Soft limit `value`, hard limit `spare` above it; False where the system refuses."""
    _, hard = resource.getrlimit(kind)
    most = value + spare if hard == resource.RLIM_INFINITY else min(value + spare, hard)
    try:
        resource.setrlimit(kind, (min(value, most), most))
    except (OSError, ValueError):
        return False
    return True


def _own_root(libc: ctypes.CDLL) -> bool:
    """The empty working folder becomes the root folder; then every capability goes, or it could be left again."""
    try:
        os.chroot(".")
    except OSError:
        return False
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    return libc.capset(header, bytes(24)) == 0


def _filter(libc: ctypes.CDLL) -> bool:
    """Installs the seccomp filter: the calls in `REFUSED` answer EPERM."""
    known = REFUSED.get(platform.machine())
    if known is None:
        return False
    architecture, numbers = known
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050001, 0x80000000
    n = len(numbers)
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (answer, 0, 0, kill), (load, 0, 0, 0)]
    program.append((at_least, n + 1, 0, X32_BIT))
    program += [(equal, n - i, 0, number) for i, number in enumerate(numbers)]
    program += [(answer, 0, 0, allow), (answer, 0, 0, refuse)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(header), 0, 0) == 0


def plain(value: Any) -> Any:
    """`value` if it is JSON as it stands: None, bool, int, finite float, str, list or tuple, dict with str keys.

    Raises:
        TypeError: anything else; it would be changed on its way out, and compare wrongly.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item) for key, item in value.items()}
    raise TypeError(f"returned a {type(value).__name__}, which is not plain JSON")


def describe(problem: BaseException) -> str:
    """`Type: message` in one short line; the message comes from model code, and may itself fail."""
    try:
        text = " ".join(str(problem).split())
    except BaseException:  # noqa: BLE001
        text = "(no message)"
    return f"{type(problem).__name__}: {text}"[:MAX_ERROR_CHARS]


def run(job: dict[str, Any], result_fd: int) -> None:
    """Loads the source, makes the calls in order and writes one line each, at once, so that a kill loses few."""
    dumps, write = json.dumps, os.write

    def put(line: dict[str, Any]) -> None:
        data = dumps(line, allow_nan=False).encode() + b"\n"
        while data:
            data = data[write(result_fd, data) :]

    for module in job["modules"]:
        importlib.import_module(module)
    put({"isolation": confine(job)})
    function: Any = None
    failed = ""
    try:
        scope: dict[str, Any] = {"__name__": "artifact", "__builtins__": __builtins__}
        exec(compile(job["source"], "artifact.py", "exec"), scope)  # noqa: S102  (what a sandbox is for)
        function = scope.get(job["function"])
        if not callable(function):
            failed = f"NameError: there is no function {job['function']}"
    except BaseException as problem:  # noqa: BLE001  (SystemExit of model code as well)
        failed = describe(problem)
    for call in job["calls"]:
        if failed:
            put({"error": failed})
            continue
        try:
            put({"value": plain(function(*call))})
        except BaseException as problem:  # noqa: BLE001
            put({"error": describe(problem)})


def main() -> None:
    """Reads the job, closes stdin, runs."""
    with open(0, encoding="utf-8", closefd=False) as stream:
        job = json.load(stream)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    run(job, int(sys.argv[1]))
    os._exit(0)  # no exit handler of model code runs


if __name__ == "__main__":
    main()
