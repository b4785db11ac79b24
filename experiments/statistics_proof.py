"""Do the statistics hold what they promise? Coverage, p under the null and Holm, each by simulation.

`python -m experiments.statistics_proof [out=docs/analysis.md]`: data of a known mean are drawn many times, with
rollouts that are correlated within tasks, and the interval of `analysis.statistics` is asked how often it holds that
mean. The interval over rollouts, which takes them for independent, is computed only here, to show what it would do.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from analysis.statistics import Floats, bootstrap_t_rows, holm, resample_counts, sign_flip_p
from experiments.statistics_proof_config import StatisticsProofConfig
from harness_mdp.errors import ConfigError, InputError
from harness_mdp.hashing import generator

__all__ = ["NULLS", "SCENARIOS", "Coverage", "Scenario", "coverage", "holm_differences", "main", "null_p", "proof"]

ROLLOUTS = 9
TASKS = (20, 100)
BEGIN, END = "<!-- statistics_proof: begin -->", "<!-- statistics_proof: end -->"

Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]
"""(generator, (r, n)) -> (r, n, 9): r repeats of n tasks with 9 rollouts, a value each."""


@dataclass(frozen=True)
class Scenario:
    """Data of a known mean."""

    name: str
    what: str
    draw: Draw
    mean: float
    """Of a task that is drawn anew."""
    support: tuple[float, float]
    few: bool = False
    """Of 20 tasks so few differ from the rest that samples without spread are common: the interval is on the wide
    side then."""


def _beta_binomial(mean: float, within: float) -> Draw:
    """Success probability of a task ~ Beta of that mean; `within` is the correlation of its rollouts."""
    size = 1 / within - 1

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        p = rng.beta(mean * size, (1 - mean) * size, shape)
        return (rng.random((*shape, ROLLOUTS)) < p[..., None]).astype(np.float64)

    return draw


def _paired(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Two arms on the same tasks; the second solves more of what the first does not, in some tasks much more."""
    p, more = rng.beta(1.0, 1.0, shape)[..., None], rng.beta(0.3, 0.7, shape)[..., None]
    first = rng.random((*shape, ROLLOUTS)) < p
    second = rng.random((*shape, ROLLOUTS)) < p + more * (1 - p)
    return second.astype(np.float64) - first


def _gains(gain: tuple[float, float], loss: tuple[float, float] | None = None) -> Draw:
    """Differences of two arms that share their draws: mostly 0; how often they gain or lose is the task's own Beta.

    What is gained or lost varies and is 0.6 on average.
    """

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        gains = rng.beta(*gain, shape)[..., None]
        losses = rng.beta(*loss, shape)[..., None] if loss else 0.0
        size = rng.beta(3.0, 2.0, (*shape, ROLLOUTS))
        u = rng.random((*shape, ROLLOUTS))
        return np.where(u < gains, size, np.where(u > 1 - (1 - gains) * losses, -size, 0.0))

    return draw


def _gain_in_few_tasks(share: float) -> Draw:
    """Differences of two arms that share their draws: 0, but in a share of the tasks every other rollout gains 1."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
        moves = rng.random(shape) < share
        return (moves[..., None] & (rng.random((*shape, ROLLOUTS)) < 0.5)).astype(np.float64)

    return draw


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("beta-binomial, even", "Beta(1.17, 1.17)", _beta_binomial(0.5, 0.3), 0.5, (0, 1)),
    Scenario("beta-binomial, high", "Beta(0.7, 0.3)", _beta_binomial(0.7, 0.5), 0.7, (0, 1)),
    Scenario("beta-binomial, low", "Beta(0.23, 2.1)", _beta_binomial(0.1, 0.3), 0.1, (0, 1)),
    Scenario("difference of two arms", "the better one gains Beta(0.3, 0.7) of the rest", _paired, 0.15, (-1, 1)),
    Scenario("rare gains and losses", "10 % gain, 4.5 % lose", _gains((0.3, 2.7), (0.2, 3.8)), 0.033, (-1, 1)),
    Scenario("rare gains", "10 % gain", _gains((0.3, 2.7)), 0.06, (-1, 1)),
    Scenario("rarer gains", "5 % gain", _gains((0.2, 3.8)), 0.03, (-1, 1)),
    Scenario(
        "gains in few tasks", "1 task in 5, half of its rollouts", _gain_in_few_tasks(0.2), 0.1, (-1, 1), few=True
    ),
    Scenario("in fewer tasks", "1 task in 10, half of its rollouts", _gain_in_few_tasks(0.1), 0.05, (-1, 1), few=True),
    Scenario("rare successes", "Beta(0.18, 8.8): 2 %", _beta_binomial(0.02, 0.1), 0.02, (0, 1), few=True),
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals held the mean; all are shares of the repeats but `width`."""

    tasks: float
    """`bootstrap_t` over tasks."""
    correlation: float
    """Of the rollouts of a task, over all repeats."""
    below: float
    """Intervals that lay wholly below the mean ..."""
    above: float
    """... and above."""
    width: float
    """Median."""
    flagged: float
    """Share of the intervals that rest on less than the spread, and say so."""
    point: float
    """The same interval, were it a point where all tasks agree."""
    rollouts: float
    """Student's t over rollouts, as if they were independent."""


def coverage(scenario: Scenario, n: int, *, repeats: int, draws: int, seed: int = 0) -> Coverage:
    """Draw `repeats` data sets of `n` tasks and see which intervals of 95 % hold the mean."""
    rng = generator("statistics proof", seed, scenario.name, n)
    counts = resample_counts(n, draws, seed)
    values = scenario.draw(rng, (repeats, n))
    found = bootstrap_t_rows(values.mean(axis=2), counts, support=scenario.support)
    low, high = (np.array([getattr(interval, end) for interval in found]) for end in ("low", "high"))
    held = (low <= scenario.mean) & (scenario.mean <= high)
    equal = np.array([interval.degeneracy == "zero variance" for interval in found])
    every = values.reshape(repeats, -1)
    error = every.std(axis=1, ddof=1) / np.sqrt(every.shape[1]) * stdtrit(every.shape[1] - 1, 0.975)
    return Coverage(
        tasks=float(held.mean()),
        correlation=_within_tasks(values),
        below=float((high < scenario.mean).mean()),
        above=float((low > scenario.mean).mean()),
        width=float(np.median(high - low)),
        flagged=float(np.mean([bool(interval.degeneracy) for interval in found])),
        point=float((held & ~equal).mean()),
        rollouts=float((np.abs(every.mean(axis=1) - scenario.mean) <= error).mean()),
    )


def _within_tasks(values: Floats) -> float:
    """Correlation of two rollouts of a task, from (r, n, m) values: the share of variance that is the task's."""
    m = values.shape[2]
    within = float(values.var(axis=2, ddof=1).mean())
    between = max(float(values.mean(axis=2).var(ddof=1)) - within / m, 0.0)
    return between / (between + within)


def _exchangeable(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Two arms of one success probability: differences are symmetric."""
    p = rng.beta(1.0, 1.0, shape)[..., None]
    arms = rng.random((2, *shape, ROLLOUTS)) < p
    return arms[0].astype(np.float64) - arms[1]


def _noise(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Scores with a grain too fine for ties: the task's own offset, and a rollout's."""
    task = rng.normal(0, 0.1, shape)[..., None]
    return task + rng.normal(0, 0.2, (*shape, ROLLOUTS))


NULLS: dict[str, Draw] = {"equal arms, returns 0 or 1": _exchangeable, "equal arms, fine scores": _noise}
"""Differences of mean 0."""


def null_p(draw: Draw, n: int, *, repeats: int, flips: int, seed: int = 0) -> Floats:
    """(repeats,) sign-flip p of data without a difference."""
    values = draw(generator("statistics proof, null", seed, n), (repeats, n)).mean(axis=2)
    return np.array([sign_flip_p(row, draws=flips, seed=seed + at) for at, row in enumerate(values)])


def holm_differences(families: int, seed: int = 0) -> float:
    """Largest difference of our Holm to statsmodels' over random families of 1 to 12 p-values.

    Raises:
        ConfigError: statsmodels is not installed.
    """
    try:
        from statsmodels.stats.multitest import multipletests
    except ImportError as missing:
        raise ConfigError(
            "Holm is compared with statsmodels, which is not installed: pip install statsmodels"
        ) from missing
    rng = generator("statistics proof, Holm", seed)
    largest = 0.0
    gc.freeze()  # `multipletests` collects garbage at every call, which takes a second where much is loaded
    try:
        for _ in range(families):
            p = rng.random(int(rng.integers(1, 13))) ** float(rng.integers(1, 5))
            if len(p) > 2:
                p[1] = p[0]  # ties
            theirs = np.asarray(multipletests(p, method="holm")[1], dtype=np.float64)
            largest = max(largest, float(np.abs(holm(p) - theirs).max()))
    finally:
        gc.unfreeze()
    return largest


def proof(config: StatisticsProofConfig) -> str:
    """All three, as Markdown.

    Raises:
        ConfigError: too few repeats to say anything, or statsmodels is not installed.
    """
    if config.repeats < 100 or config.draws < 200:
        raise ConfigError(f"repeats={config.repeats}, draws={config.draws}; expected at least 100 and 200")
    return "\n\n".join([_coverage_table(config), _null_table(config), _holm_sentence(config)])


def _coverage_table(config: StatisticsProofConfig) -> str:
    head = ["data", "", "r", "tasks", "covers", "missed below, above", "width", "flagged"]
    lines = [_line([*head, "with points", "over rollouts"]), "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for scenario in SCENARIOS:
        for n in TASKS:
            found = coverage(scenario, n, repeats=config.repeats, draws=config.draws, seed=config.seed)
            cells = [scenario.name, scenario.what, f"{found.correlation:.2f}", str(n), f"**{found.tasks:.3f}**"]
            cells += [f"{found.below:.3f}, {found.above:.3f}", f"{found.width:.3f}", f"{found.flagged:.0%}"]
            lines.append(_line([*cells, f"{found.point:.3f}", f"{found.rollouts:.3f}"]))
    error = np.sqrt(0.95 * 0.05 / config.repeats)
    about = (
        f"Coverage of the 95 % interval: {config.repeats:,} repeats of {ROLLOUTS} rollouts a task with correlation r, "
        f"{config.draws:,} resamples. The standard error of a coverage is {error:.3f}."
    )
    return "\n".join([about, "", *lines])


def _null_table(config: StatisticsProofConfig) -> str:
    levels = (0.01, 0.05, 0.1, 0.5)
    head = ["null", "tasks", *(f"p <= {level}" for level in levels), "largest distance to uniform"]
    lines = [_line(head), "|---|--:|--:|--:|--:|--:|--:|"]
    for name, draw in NULLS.items():
        for n in TASKS:
            p = np.sort(null_p(draw, n, repeats=config.null_repeats, flips=config.flips, seed=config.seed))
            below = [float(np.mean(p <= level)) for level in levels]
            lines.append(_line([name, str(n), *(f"{share:.3f}" for share in below), f"{distance_to_uniform(p):.3f}"]))
    bound = 1.358 / np.sqrt(config.null_repeats)
    about = (
        f"Sign-flip p without a difference: {config.null_repeats:,} repeats, exact up to 20 tasks, {config.flips:,} "
        f"flips beyond. Uniform draws stay below {bound:.3f} 95 % of the time (Kolmogorov-Smirnov)."
    )
    return "\n".join([about, "", *lines])


def distance_to_uniform(p: Floats) -> float:
    """Kolmogorov-Smirnov distance of p-values (k,) to the uniform distribution on [0, 1]."""
    ordered, k = np.sort(p), len(p)
    steps = np.arange(1, k + 1) / k
    return float(max(np.abs(steps - ordered).max(), np.abs(ordered - steps + 1 / k).max()))


def _holm_sentence(config: StatisticsProofConfig) -> str:
    from importlib.metadata import version

    largest = holm_differences(config.families, config.seed)
    return (
        f"Holm against statsmodels {version('statsmodels')} on {config.families:,} random families of 1 to 12 p-values "
        f"with ties: largest difference {largest:.1e}."
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write(config: StatisticsProofConfig) -> int:
    page = None if config.out is None else _page(Path(config.out))  # before minutes of computing, not after
    text = proof(config)
    print(text)  # noqa: T201
    if page is not None:
        head, rest = page
        Path(str(config.out)).write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest}", encoding="utf-8")
    return 0


def _page(path: Path) -> tuple[str, str]:
    """What stands before and after the marks."""
    try:
        page = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot be read ({problem.strerror})", file=path, expected="a Markdown file") from problem
    head, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError("holds no place for the tables", file=path, expected=f"the lines {BEGIN} and {END}")
    return head, after


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("statistics_proof", _write)


if __name__ == "__main__":
    main()
