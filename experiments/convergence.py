"""Do `plan` and `fitted_q` reach the exact optimum, and `one_step` the exact one-step improvement, as data grow?

`python -m experiments.convergence [out=docs/tabular.md]`: buffers of growing size are drawn from the known transitions
of the setting `tabular`, learned from, and the policies that come out are valued by dynamic programming, not by running
them. A learner with a fixed number of cells cannot be exact, so here the configuration grows with the data (`growing`);
the presets, which are made for buffers of a fixed size, stand beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from controllers.config import LearnerConfig, Method, PlanConfig, QConfig
from controllers.exploration import Explore, Uniform, portfolio_policy
from controllers.learners import learn
from controllers.presets import preset
from experiments.convergence_config import ConvergenceConfig
from experiments.markdown import replace_between, table
from harness_mdp.errors import ConfigError
from harness_mdp.mdp import Probs
from harness_mdp.settings.tabular import (
    Tabular,
    TabularMDP,
    exact_q,
    exact_value,
    one_step_improvement,
    optimal_policy,
    optimal_q,
    optimal_value,
    sample_buffer,
    tabular_mdp,
    visit_probabilities,
)
from harness_mdp.settings.tabular.world import level_shares

__all__ = ["LEARNERS", "Reached", "behaviour_table", "convergence", "growing", "main", "reach", "target_value"]

LEARNERS = (Method.PLAN, Method.FITTED_Q, Method.ONE_STEP)

WEIGHTS = {"base": 0.05, "check_revise": 0.35, "tool_first": 0.1}
EPSILON = 0.5
"""The behaviour: half scripts, half uniform over the legal actions. Every action has at least 0.08 in every state, and
the ways of the optimum are not rare: scripts with ε = 0.1 need some 15 times the data, and so does chance alone."""


@dataclass(frozen=True)
class Reached:
    """What a learner made of one buffer."""

    value: float
    """Exact value of the policy."""
    loss: float
    """Σ_s d(s) [max_a Q(s, a) - Q(s, π(s))] with d the states that π comes to: Q is the optimal one for `plan` and
    `fitted_q`, and then this is exactly how far the value is below the optimum; for `one_step` it is the behaviour's,
    and 0 says that π is a one-step improvement wherever it comes to."""


def growing(method: Method, episodes: int) -> LearnerConfig:
    """What makes `method` consistent on n episodes: 2·√n cells, and n^(1/3)/2 steps in a leaf or cell and visits of a
    pair, so that in the end a state has a cell of its own, and ever more visits. Pessimism is a fixed number of
    standard errors or deviations, which vanish by themselves. Chosen among some ten schedules (docs/tabular.md).

    Raises:
        ConfigError: none of the three learners.
    """
    cells = max(2, round(2 * episodes**0.5))
    steps = round(episodes ** (1 / 3) / 2)
    visits = max(5, steps)
    match method:
        case Method.PLAN:
            return PlanConfig(
                members=4, cells=cells, cell_steps=visits, rounds=2, z=1.0, min_visits=visits, min_tasks=1
            )
        case Method.FITTED_Q | Method.ONE_STEP:
            return QConfig(
                method,
                bags=5,
                trees=5,
                leaf_steps=max(2, steps),
                z=0.5,
                min_visits=visits,
                min_tasks=1,
                cells=cells,
            )
        case _:
            raise ConfigError(f"methods holds {method.value!r}; expected some of {', '.join(LEARNERS)}")


def behaviour_table(mdp: TabularMDP, name: str = "scripts") -> Probs:
    """(3, n, 7) the behaviour that a buffer comes from, half of it uniform over the legal actions.

    `scripts`: the other half is scripts. `optimum`: it is the optimal policy, so that support is no limit, and what is
    missing is due to the learner.

    Raises:
        ConfigError: another name.
    """
    match name:
        case "scripts":
            return mdp.table(portfolio_policy(Tabular(), WEIGHTS, EPSILON, Explore.LEGAL))
        case "optimum":
            return (1.0 - EPSILON) * mdp.table(optimal_policy(mdp)) + EPSILON * mdp.table(Uniform())
        case _:
            raise ConfigError(f"behaviours holds {name!r}; expected some of scripts, optimum")


def target_value(mdp: TabularMDP, behaviour: Probs, method: Method) -> float:
    """What `method` must come to: the exact one-step improvement on the behaviour, or the exact optimum."""
    if method is Method.ONE_STEP:
        return exact_value(mdp, one_step_improvement(mdp, behaviour))
    return optimal_value(mdp)


def reach(
    mdp: TabularMDP, behaviour: Probs, config: LearnerConfig, *, episodes: int, rollouts: int = 20, seed: int = 0
) -> Reached:
    """Draw a buffer, learn, and value the policy exactly.

    Args:
        mdp: the MDP.
        behaviour: (3, n, 7), see `behaviour_table`.
        config: one of the three learners.
        episodes: of the buffer, in tasks of `rollouts`.
        rollouts: episodes of a task.
        seed: of buffer and learner.
    """
    buffer = sample_buffer(mdp, behaviour, n_tasks=max(1, episodes // rollouts), rollouts=rollouts, seed=seed)
    policy = mdp.table(learn(buffer, config, seed=seed).controller)
    q = exact_q(mdp, behaviour) if config.method is Method.ONE_STEP else optimal_q(mdp)
    lost = np.where(mdp.mask, q, -np.inf).max(axis=2) - (policy * q).sum(axis=2)
    loss = float(level_shares(None) @ (visit_probabilities(mdp, policy) * lost).sum(axis=1))
    return Reached(exact_value(mdp, policy), loss)


def convergence(config: ConvergenceConfig, behaviour: str) -> str:
    """The table of one behaviour as Markdown; says on the way what is finished.

    Raises:
        ConfigError: numbers that cannot be, or a name that is not known.
    """
    methods = _methods(config)
    mdp = tabular_mdp()
    acts = behaviour_table(mdp, behaviour)
    header = ["episodes"]
    for method in methods:
        target = target_value(mdp, acts, method)
        header += [f"`{method}` (exact: {target:.4f})", "loss, each buffer", "with the preset"]
    rows: list[list[str]] = []
    for episodes in config.sizes:
        row = [f"{episodes:,}"]
        for method in methods:
            found = _reached(mdp, acts, growing(method, episodes), episodes, config)
            fixed: Sequence[Reached] = ()
            if episodes <= config.presets_up_to:
                fixed = _reached(mdp, acts, preset(method), episodes, config)
            row += [_mean(found), ", ".join(f"{each.loss:.4f}" for each in found), _mean(fixed) if fixed else ""]
        rows.append(row)
    note = (
        f"Behaviour `{behaviour}`, whose value is {exact_value(mdp, acts):.4f}; values are means over {config.seeds} "
        f"buffers with {config.rollouts} episodes a task."
    )
    return f"{note}\n\n{table(header, rows)}\n"


def _methods(config: ConvergenceConfig) -> list[Method]:
    for name, value in (("seeds", config.seeds), ("rollouts", config.rollouts)):
        if value < 1:
            raise ConfigError(f"{name}={value}; expected at least 1")
    if small := [size for size in config.sizes if size < 5 * config.rollouts]:
        raise ConfigError(
            f"sizes holds {small[0]}; expected at least {5 * config.rollouts}: five tasks of {config.rollouts} "
            "rollouts, so that every difficulty occurs"
        )
    if not config.sizes or not config.methods:
        raise ConfigError("sizes or methods is empty: nothing to show")
    if odd := [name for name in config.methods if name not in LEARNERS]:
        raise ConfigError(f"methods holds {odd[0]!r}; expected some of {', '.join(LEARNERS)}")
    return [Method(name) for name in config.methods]


def _reached(
    mdp: TabularMDP, behaviour: Probs, learner: LearnerConfig, episodes: int, config: ConvergenceConfig
) -> list[Reached]:
    found: list[Reached] = []
    for seed in range(config.seeds):
        one = reach(mdp, behaviour, learner, episodes=episodes, rollouts=config.rollouts, seed=seed)
        kind = "preset" if learner == preset(learner.method) else "growing"
        print(  # noqa: T201
            f"{episodes} {learner.method} {kind} {seed}: value {one.value:.4f}, loss {one.loss:.4f}", flush=True
        )
        found.append(one)
    return found


def _mean(reached: Sequence[Reached]) -> str:
    return f"{np.mean([each.value for each in reached]):.4f}"


def _write(config: ConvergenceConfig) -> int:
    for behaviour in config.behaviours:
        text = convergence(config, behaviour)
        print(text)  # noqa: T201
        if config.out is not None:
            replace_between(Path(config.out), f"convergence_{behaviour}", text)
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("convergence", _write)


if __name__ == "__main__":
    main()
