"""The `openai` executor: a frozen model behind any OpenAI-compatible endpoint.

Retries, back-off and the endpoint's time-outs are the SDK's own. This module adds a concurrency limit, a
pace, prices, a seed for every draw, and the reading of failures by the one table in `failures`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from contextvars import ContextVar
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies

import httpx2
import openai

from harness_mdp.errors import ConfigError
from harness_mdp.executors.connections import ConnectionStack
from harness_mdp.executors.failures import Failure, classify, make_fault
from harness_mdp.executors.protocol import Completion, ExecutorStopped, Request, Sampling
from harness_mdp.executors.reply import Price, read_reply
from harness_mdp.hashing import Json, digest

__all__ = ["LOOPBACK_KEY", "OpenAIExecutor", "Pace", "draw_seed"]

LOOPBACK_KEY = "EMPTY"
"""Key sent to a server on this machine when none is given: such servers mostly ask for none."""

_CONNECT_SECONDS = 10.0
_MESSAGE_CHARS = 400
_TOKEN_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")

_attempts: ContextVar[list[int] | None] = ContextVar("_attempts", default=None)
"""HTTP requests made so far for the current call, in a list of one."""


def draw_seed(request: Request) -> int:
    """The seed a server gets: 31 bits of a hash of the draw key and the request's content."""
    draw = request.draw
    return int(digest([draw.seed, draw.rollout, draw.occurrence, request.content_key], 8), 16) & 0x7FFFFFFF


class Pace:
    """Spreads calls evenly so that no more than `per_minute` begin in a minute.

    Args:
        per_minute: calls a minute, above 0; the SDK's retries are not counted, they back off by themselves.
    """

    def __init__(self, per_minute: float) -> None:
        self._interval = 60.0 / per_minute
        self._next = float("-inf")

    def reserve(self, now: float) -> float:
        """Takes the next free slot; seconds to wait for it from `now`."""
        start = max(now, self._next)
        self._next = start + self._interval
        return start - now


class OpenAIExecutor:
    """Completions by `AsyncOpenAI`; one instance serves one event loop.

    Args:
        model: name as the endpoint knows it.
        base_url: endpoint, e.g. `http://127.0.0.1:8000/v1`; None is the SDK's default (`OPENAI_BASE_URL`, else
            OpenAI). Credentials in it (`https://user:password@host`) are used and shown nowhere.
        api_key: the key; None reads the environment variable `api_key_env`. It is kept out of every log,
            message, `repr` and cache.
        api_key_env: name of that variable. A server on this machine needs none.
        sampling: temperature, top_p, max_tokens.
        label: the user's own mark, part of the fingerprint: change it when the model behind a name changes.
        concurrency: calls in flight at once.
        requests_per_minute: pace of new calls; None is no limit.
        timeout: seconds that one HTTP request may take before the SDK gives it up.
        max_retries: how often the SDK tries again after 408, 409, 429, 5xx, time-outs and lost connections.
        step_timeout: seconds that the *agent* has for a call; running out of it is the agent's own fault
            (`EventError.TIMEOUT`), unless the endpoint had failed in between. Must be below `timeout`.
        prices: USD by model name; a model without a price has cost None, never 0.
        send_seed: send a seed derived from the draw key; switch it off for servers that refuse the field.
        token_limit_field: name under which `sampling.max_tokens` is sent, `max_tokens` or `max_completion_tokens`.
        extra: further fields of the request body, part of the fingerprint.

    Raises:
        ConfigError: an argument that cannot work, or no key where one is needed.
    """

    simulated = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        sampling: Sampling | None = None,
        label: str = "",
        concurrency: int = 8,
        requests_per_minute: float | None = None,
        timeout: float = 120.0,
        max_retries: int = 5,
        step_timeout: float | None = None,
        prices: Mapping[str, Price] | None = None,
        send_seed: bool = True,
        token_limit_field: str = "max_tokens",  # noqa: S107
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        _check_limits(model, concurrency, requests_per_minute, timeout, max_retries, step_timeout)
        if token_limit_field not in _TOKEN_LIMIT_FIELDS:
            raise ConfigError(
                f"executor.token_limit_field is {token_limit_field!r}; expected {' or '.join(_TOKEN_LIMIT_FIELDS)}"
            )
        sampling = sampling or Sampling()
        self._model = model
        self._api_key_env = api_key_env
        self._step_timeout = step_timeout
        self._timeout = timeout
        self._price = (prices or {}).get(model)
        self._send_seed = send_seed
        self._body: dict[str, Json] = {
            "model": model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            token_limit_field: sampling.max_tokens,
            **(extra or {}),
        }
        sampled = [sampling.temperature, sampling.top_p, sampling.max_tokens, dict(extra or {})]
        self._fingerprint = "openai-" + digest(["openai", model, sampled, label])
        self._slots = asyncio.Semaphore(concurrency)
        self._pace = None if requests_per_minute is None else Pace(requests_per_minute)
        self._answered = False
        self._stopped: str | None = None

        url, login = _split_url(base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
        self._where = url
        local = _is_loopback(url)
        key = _find_key(api_key, api_key_env, url, local)
        self._secrets = _secrets(key, login)
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=url,
            max_retries=max_retries,
            http_client=openai.DefaultAsyncHttpxClient(
                # A transport of our own would bypass a proxy named in the environment; the pool serves there, with as
                # many connections alive as calls: the SDK's 100 would open a new one for most calls above that.
                transport=None if not local and getproxies() else ConnectionStack(httpx2.create_ssl_context()),
                limits=httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
                timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS)),
                auth=httpx2.BasicAuth(*login) if login else None,
                # A proxy named in the environment cannot reach this machine's loopback.
                trust_env=not local,
                event_hooks={"request": [_count_attempt]},
            ),
        )

    @property
    def fingerprint(self) -> str:
        """Model, sampling parameters, extra fields and the user's label; no URL and no key."""
        return self._fingerprint

    def __repr__(self) -> str:
        return f"OpenAIExecutor(model={self._model!r}, base_url={self._where!r})"

    async def complete(self, request: Request) -> Completion:
        """Make one completion; see `Executor.complete`. After a stop every further call raises at once."""
        async with self._slots:
            if self._pace is not None:
                await asyncio.sleep(self._pace.reserve(time.monotonic()))
            if self._stopped is not None:
                raise ExecutorStopped(self._stopped)
            outcome = await self._attempt(request)
            if isinstance(outcome, Completion):
                self._answered = True
                return outcome
            failure, detail = outcome
            message = await self._explain(failure, detail)
        # Raised here and not where it was caught: a chained SDK exception would bring its own, unscrubbed text.
        fault = make_fault(failure, message)
        if isinstance(fault, ExecutorStopped):
            self._stopped = message
        raise fault

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _attempt(self, request: Request) -> Completion | tuple[Failure, str]:
        """One call with the SDK's retries: a completion, or which failure and what the server said."""
        body = dict(self._body)
        body["messages"] = [{"role": message.role, "content": message.content} for message in request.messages]
        if self._send_seed:
            body["seed"] = draw_seed(request)
        attempts = [0]
        _attempts.set(attempts)
        started = time.perf_counter()
        limit = asyncio.timeout(self._step_timeout)
        try:
            async with limit:
                # The generic call and not `chat.completions.create`: it hands out the raw answer, which is
                # read strictly here, where the SDK would build a half-filled object from a malformed one.
                response = await self._client.post("/chat/completions", body=body, cast_to=httpx2.Response)
            seconds = time.perf_counter() - started
            return read_reply(response.content, request.messages, model=self._model, price=self._price, seconds=seconds)
        except TimeoutError:
            if not limit.expired():
                raise
            # Part of the time went to an endpoint that failed: that is not the agent's doing.
            failure = Failure.STEP_TIMEOUT if attempts[0] <= 1 else Failure.TIMEOUT
            return failure, f"no answer within executor.step_timeout = {self._step_timeout} s"
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError) as error:
            # Scrubbed before it is cut, or half a key could stay at the end.
            said = self._scrub(_server_words(error))[:_MESSAGE_CHARS]
            return classify(error, answered=self._answered), said

    async def _explain(self, failure: Failure, detail: str) -> str:
        message = f"{failure.value}: {detail} (model {self._model!r} at {self._where})"
        match failure:
            case Failure.AUTHENTICATION:
                message += f". Check the key in {self._api_key_env} and that it may use this model"
            case Failure.QUOTA:
                message += ". Check the account's plan and billing; finished calls are in the cache"
            case Failure.UNKNOWN_MODEL:
                offered = await self._offered_models()
                message += f". The endpoint offers {offered}" if offered else ". Check the model name"
                message += "; set executor.model, or executor.base_url (it mostly ends in /v1)"
            case Failure.CONFIGURATION:
                message += (
                    ". Every call would be refused: check executor.temperature, executor.top_p and "
                    "executor.max_tokens; some servers refuse a seed "
                    "(executor.send_seed=false) or want executor.token_limit_field=max_completion_tokens"
                )
            case Failure.TIMEOUT | Failure.CONNECTION | Failure.SERVER | Failure.RATE_LIMIT:
                message += ". Still so after the retries; the next run of the same command tries again"
            case _:
                pass
        return self._scrub(message)

    async def _offered_models(self) -> str:
        """Names the endpoint lists, for a message; empty when it will not say."""
        try:
            client = self._client.with_options(max_retries=0, timeout=_CONNECT_SECONDS)
            listed = (await client.get("/models", cast_to=httpx2.Response)).json()["data"]
            names = [str(entry["id"]) for entry in listed]
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, LookupError, TypeError, RecursionError):
            return ""
        shown = ", ".join(repr(name[:80]) for name in names[:10])
        return f"{shown} and {len(names) - 10} more" if len(names) > 10 else shown

    def _scrub(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = re.sub(r"(?i)bearer\s+\S+", "Bearer ***", text)
        return re.sub(r"//[^/@\s]+@", "//***@", text)


async def _count_attempt(request: httpx2.Request) -> None:  # noqa: ARG001  (the hook's signature)
    attempts = _attempts.get()
    if attempts is not None:
        attempts[0] += 1


def _server_words(error: Exception) -> str:
    """One line with the status and what the server said, not yet scrubbed."""
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    said = body.get("message") or body.get("detail") if isinstance(body, dict) else body
    text = " ".join(str(said or error).split())
    return f"HTTP {status}: {text}" if status else text


def _check_limits(
    model: str,
    concurrency: int,
    requests_per_minute: float | None,
    timeout: float,
    max_retries: int,
    step_timeout: float | None,
) -> None:
    if not model:
        raise ConfigError("executor.model is empty; expected the model's name as the endpoint knows it")
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency}; expected at least 1")
    if requests_per_minute is not None and not requests_per_minute > 0:
        raise ConfigError(f"executor.requests_per_minute is {requests_per_minute:g}; expected more than 0, or null")
    if not timeout > 0:
        raise ConfigError(f"executor.timeout is {timeout:g} s; expected more than 0")
    if max_retries < 0:
        raise ConfigError(f"executor.max_retries is {max_retries}; expected at least 0")
    if step_timeout is not None and not 0 < step_timeout < timeout:
        raise ConfigError(
            f"executor.step_timeout is {step_timeout:g} s; expected more than 0 and less than executor.timeout "
            f"({timeout:g} s), or the endpoint's time-out would hide the agent's"
        )


def _split_url(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without credentials, query and fragment, and the user and password it held."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = re.sub(r"//[^/@\s]+@", "//***@", url)
        raise ConfigError(f"executor.base_url is {shown!r}; expected http(s)://host[:port]/path")
    login = None
    if parts.username is not None:
        login = (unquote(parts.username), unquote(parts.password or ""))
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}", login


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _find_key(api_key: str | None, api_key_env: str, url: str, local: bool) -> str:
    key = api_key or os.environ.get(api_key_env, "")
    if key.strip():
        return key.strip()
    if local:
        return LOOPBACK_KEY
    raise ConfigError(
        f"no key for {url}: set the environment variable {api_key_env} "
        f"(any text, e.g. {LOOPBACK_KEY}, if the server asks for none)"
    )


def _secrets(key: str, login: tuple[str, str] | None) -> tuple[str, ...]:
    """Texts that no message may hold, longest first; anything shorter than 4 characters is no secret."""
    found = {key} - {LOOPBACK_KEY}
    if login is not None:
        password = login[1]
        found |= {password, quote(password, safe=""), b64encode(":".join(login).encode()).decode()}
    return tuple(sorted((secret for secret in found if len(secret) >= 4), key=len, reverse=True))
