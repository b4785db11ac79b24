"""The configured executor: simulated, or any OpenAI-compatible endpoint behind the completion cache."""

from __future__ import annotations

from pathlib import Path

from experiments.config import ExecutorConfig, OpenAIConfig, SimulatedConfig
from experiments.tasks import TaskSet
from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Executor, Sampling

__all__ = ["make_executor", "price_bound", "tokens_bound", "with_cache"]


def make_executor(config: ExecutorConfig, tasks: TaskSet, concurrency: int) -> Executor:
    """The executor of `config` for the tasks at hand, without a cache; nothing is called or written yet.

    Raises:
        ConfigError: unknown kind or profile, or no key for an endpoint that needs one.
    """
    match config:
        case SimulatedConfig():
            from harness_mdp.executors.simulated import SimulatedExecutor
            from harness_mdp.executors.skill import skill_profile

            difficulties = {task.id: task.difficulty for task in tasks.store.tasks}
            return SimulatedExecutor(skill_profile(config.profile), tasks.store.answers, difficulties)
        case OpenAIConfig():
            return _openai(config, concurrency)
        case _:
            raise ConfigError(f"unknown kind of executor {config.kind!r}; expected simulated or openai")


def with_cache(executor: Executor, config: ExecutorConfig, path: Path) -> Executor:
    """`executor` behind the completion cache at `path`; a simulated one is a pure function and needs none.

    Raises:
        InputError: the cache file is damaged, or cannot be made.
    """
    if not isinstance(config, OpenAIConfig) or not config.cache:
        return executor
    from harness_mdp.executors.cache import CachedExecutor, CompletionCache

    return CachedExecutor(executor, CompletionCache(path))


def _openai(config: OpenAIConfig, concurrency: int) -> Executor:
    from harness_mdp.executors.openai import OpenAIExecutor
    from harness_mdp.executors.reply import Price

    for model, price in config.prices.items():
        if len(price) != 2 or min(price) < 0:
            raise ConfigError(
                f"executor.prices[{model}] is {price}; expected [USD per million prompt tokens, completion tokens]"
            )
    return OpenAIExecutor(
        model=config.model,
        base_url=config.base_url,
        label=config.label,
        sampling=Sampling(config.temperature, config.top_p, config.max_tokens),
        timeout=config.timeout,
        step_timeout=config.step_timeout,
        max_retries=config.max_retries,
        concurrency=concurrency,
        requests_per_minute=config.requests_per_minute,
        send_seed=config.send_seed,
        token_limit_field=config.token_limit_field,
        extra=config.extra,
        api_key_env=config.api_key_env,
        prices={model: Price(price[0], price[1]) for model, price in config.prices.items()},
    )


def tokens_bound(config: ExecutorConfig, horizon: int, budget: int | None) -> int | None:
    """Upper bound of the tokens of one episode; None where nothing bounds it.

    At most one call a step, each at most the context; and an episode ends once its budget is spent, so that
    the last call alone can pass it.
    """
    if not isinstance(config, OpenAIConfig):
        return None if budget is None else budget + _SIMULATED_CALL
    bound = horizon * config.context_tokens
    return bound if budget is None else min(bound, budget + config.context_tokens)


def price_bound(config: ExecutorConfig, tokens: int) -> float | None:
    """Upper bound in USD of `tokens` at the dearer of the two prices; None when the price is unknown."""
    if not isinstance(config, OpenAIConfig):
        return 0.0
    price = config.prices.get(config.model)
    return None if price is None else tokens * max(price) / 1e6


_SIMULATED_CALL = 8192
