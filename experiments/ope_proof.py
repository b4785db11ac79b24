"""Off-policy estimators on the setting `tabular`, where the exact value is known: bias, coverage, share refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.ope import Logged, Models, SupportVerdict, logged
from analysis.ope.fitted_q import FittedQConfig
from analysis.ope.proof import Proof, prove
from controllers.exploration import Explore, Uniform, epsilon_policy, portfolio_policy
from experiments.ope_config import OpeProofConfig
from harness_mdp.errors import ConfigError, InputError
from harness_mdp.hashing import generator
from harness_mdp.mdp import Probs
from harness_mdp.settings.scripts import script_policy
from harness_mdp.settings.tabular import (
    Tabular,
    TabularMDP,
    TabularSample,
    exact_value,
    expected_statistic,
    sample_buffer,
    tabular_mdp,
)
from harness_mdp.settings.tabular.world import LEVELS, level_shares

__all__ = ["draw_buffer", "exact_return", "main", "ope_proof", "proof_logs", "proof_policy"]

BEGIN, END = "<!-- ope_proof: begin -->", "<!-- ope_proof: end -->"
HALF = "half_"
UNBIASED = ("is", "per_decision", "dr")
"""Estimators that theory calls unbiased: their mean must lie within 3 standard errors of the exact value."""


def ope_proof(config: OpeProofConfig) -> str:
    """The table as Markdown.

    Raises:
        ConfigError: a policy that is not known, or numbers that cannot be.
    """
    for name, least in (("buffers", 2), ("tasks", 2), ("rollouts", 1), ("draws", 100), ("refits", 1), ("folds", 2)):
        if getattr(config, name) < least:
            raise ConfigError(f"{name}={getattr(config, name)}; expected at least {least}")
    mdp = tabular_mdp()
    behaviour = proof_policy(mdp, config.behaviour)
    tables = {name: _target(mdp, name, behaviour) for name in config.targets}
    rows: list[str] = []

    def fit(log: Logged) -> Models:
        return Models(log, FittedQConfig(folds=config.folds))

    for name, target in tables.items():
        exact = exact_return(mdp, target, config.step_cost)
        logs = proof_logs(mdp, behaviour, target, config)
        rows += _rows(name, prove(logs, exact, draws=config.draws, refits=config.refits, fit=fit))
    header = (
        "| target | verdicts: supported, weak, insufficient | exact | estimator | mean − exact | standard errors | "
        "standard deviation | 95% interval covers, where supported | width |"
    )
    note = (
        f"{config.buffers:,} independent buffers of `tabular`, {config.tasks} tasks (difficulties drawn anew) x "
        f"{config.rollouts} rollouts, behaviour `{config.behaviour}`; return: quality minus {config.step_cost:g} "
        f"a step; fitted Q with {config.folds} folds. An estimator with * is unbiased by theory."
    )
    return "\n".join([note, "", header, f"|{' --- |' * (header.count('|') - 1)}", *rows])


def proof_policy(mdp: TabularMDP, name: str) -> Probs:
    """(3, n, 7) of a behaviour policy, `random` or a script.

    Raises:
        ConfigError: another name.
    """
    setting = Tabular()
    match name:
        case "portfolio":
            return mdp.table(portfolio_policy(setting))
        case "paper":
            return mdp.table(epsilon_policy(setting, "base", 0.25, Explore.LEGAL))
        case "random":
            return mdp.table(Uniform())
        case _:
            return mdp.table(script_policy(setting, name))


def exact_return(mdp: TabularMDP, target: Probs, step_cost: float) -> float:
    """Exact expectation of quality minus `step_cost` a step."""
    return exact_value(mdp, target) - step_cost * expected_statistic(mdp, target, lambda state: float(state.steps))


def proof_logs(mdp: TabularMDP, behaviour: Probs, target: Probs, config: OpeProofConfig) -> Iterator[Logged]:
    """Independent buffers beside the target; the last step earns the quality, and every step costs."""
    for index in range(config.buffers):
        buffer = draw_buffer(mdp, behaviour, config.tasks, config.rollouts, seed=config.seed + index)
        last = np.append(np.diff(buffer.episode) > 0, True)
        rewards = np.where(last, buffer.returns[buffer.episode], 0.0) - config.step_cost
        costly = replace(buffer, returns=buffer.returns - config.step_cost * buffer.lengths)
        yield logged(costly, target[buffer.level[buffer.episode], buffer.state], rewards=rewards)


def draw_buffer(mdp: TabularMDP, behaviour: Probs, n_tasks: int, rollouts: int, *, seed: int) -> TabularSample:
    """A buffer whose tasks are a random sample: what a bootstrap over tasks takes them for.

    `sample_buffer` deals difficulties in fixed shares; intervals for tasks like these would then cover too often.
    """
    wanted = generator("ope proof tasks", seed).multinomial(n_tasks, level_shares(None))
    fifths = int(np.ceil(wanted / np.round(level_shares(None) * 5)).max())
    pool = sample_buffer(mdp, behaviour, n_tasks=5 * fifths, rollouts=rollouts, seed=seed)
    level_of_task = pool.level[np.unique(pool.task, return_index=True)[1]]
    tasks = np.concatenate([np.flatnonzero(level_of_task == level)[: wanted[level]] for level in range(len(LEVELS))])
    episodes = np.flatnonzero(np.isin(pool.task, tasks))
    rows = np.isin(pool.episode, episodes)
    steps = ("features", "mask", "base_action", "action", "propensities", "t", "state")
    whole = ("lengths", "returns", "seed", "rollout", "horizon", "level", "final")
    return replace(
        pool,
        **{name: getattr(pool, name)[rows] for name in steps},
        **{name: getattr(pool, name)[episodes] for name in whole},
        task=np.searchsorted(tasks, pool.task[episodes]),
        episode=np.searchsorted(episodes, pool.episode[rows]),
    )


def _target(mdp: TabularMDP, name: str, behaviour: Probs) -> Probs:
    if name == "behaviour":
        return behaviour
    if name.startswith(HALF):
        return 0.5 * behaviour + 0.5 * proof_policy(mdp, name.removeprefix(HALF))
    return proof_policy(mdp, name)


def _rows(name: str, proofs: Sequence[Proof]) -> list[str]:
    rows: list[str] = []
    for proof in proofs:
        first = proof is proofs[0]
        verdicts = ", ".join(str(proof.verdicts.get(verdict, 0)) for verdict in SupportVerdict)
        covers = f"{proof.coverage:.1%} of {proof.n_supported}" if proof.n_supported else "-"
        cells = [
            f"`{name}`" if first else "",
            verdicts if first else "",
            f"{proof.exact:.4f}" if first else "",
            f"{proof.estimator}{' *' if proof.estimator in UNBIASED else ''}",
            f"{proof.bias:+.4f}",
            f"{proof.errors:+.1f}",
            f"{proof.spread:.4f}",
            covers,
            f"{proof.width:.3f}" if proof.n_supported else "-",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _write(config: OpeProofConfig) -> int:
    text = ope_proof(config)
    print(text)  # noqa: T201
    if config.out is not None:
        path = Path(config.out)
        page = path.read_text() if path.is_file() else ""
        if BEGIN not in page or END not in page:
            raise InputError("holds no place for the table", file=path, expected=f"the lines {BEGIN} and {END}")
        head, _, rest = page.partition(BEGIN)
        path.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")
    return 0


def main() -> None:
    """Run the command."""
    from experiments.hydra_app import run_command

    run_command("ope_proof", _write)


if __name__ == "__main__":
    main()
