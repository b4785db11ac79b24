"""A hard stop on what a run may spend."""

from __future__ import annotations

from dataclasses import dataclass

from harness_mdp.executors.protocol import Completion, Executor, ExecutorStopped, Request

__all__ = ["LimitedExecutor", "SpendingLimit", "SpendingLimitReached"]


class SpendingLimitReached(ExecutorStopped):
    """The limit of the run is spent; what is finished stays, the same command with a higher limit goes on."""

    exit_code = 0


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """Upper bounds of a whole run; None is no limit."""

    tokens: int | None = None
    usd: float | None = None


class LimitedExecutor:
    """Counts what every completion costs, replayed ones included, and refuses the next call once a limit is spent.

    Replayed completions count, so the limit belongs to the work and not to the invocation: the same command
    run again spends nothing more. Calls already under way finish, so the limit can be passed by at most one
    completion per episode in flight.
    """

    def __init__(self, inner: Executor, limit: SpendingLimit, *, tokens: int = 0, usd: float | None = 0.0) -> None:
        """`tokens` and `usd` are what finished episodes of the same work have cost already."""
        self._inner = inner
        self._limit = limit
        self.tokens = tokens
        self.usd = usd

    @property
    def fingerprint(self) -> str:
        """The inner executor's."""
        return self._inner.fingerprint

    @property
    def simulated(self) -> bool:
        """The inner executor's."""
        return self._inner.simulated

    async def complete(self, request: Request) -> Completion:
        """Complete, unless a limit is spent.

        Raises:
            SpendingLimitReached: tokens or USD of the run are spent, or the USD limit cannot be watched
                because the price of a completion is unknown.
        """
        limit = self._limit
        if limit.tokens is not None and self.tokens >= limit.tokens:
            raise SpendingLimitReached(f"limits.tokens={limit.tokens} is spent ({self.tokens} tokens used)")
        if limit.usd is not None:
            if self.usd is None:
                raise ExecutorStopped(
                    "limits.usd is set but the price of this model is unknown, so it cannot be watched. "
                    "Give executor.prices, or use limits.tokens"
                )
            if self.usd >= limit.usd:
                raise SpendingLimitReached(f"limits.usd={limit.usd} is spent ({self.usd:.4f} USD used)")
        completion = await self._inner.complete(request)
        self.tokens += completion.prompt_tokens + completion.completion_tokens
        known = self.usd is not None and completion.cost_usd is not None
        self.usd = self.usd + completion.cost_usd if known else None  # type: ignore[operator]
        return completion

    async def close(self) -> None:
        """Close the inner executor."""
        await self._inner.close()
