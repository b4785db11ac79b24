"""What off-policy evaluation prints. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # scikit-learn and the buffer are loaded by the command that needs them
    from analysis.ope import Estimate, Support
    from analysis.statistics import Interval
    from experiments.ope import Ope, TargetValue
    from experiments.ope_config import OpeConfig

__all__ = ["print_ope"]

ESTIMAND = (
    "value: mean quality on the buffer's tasks, tasks weighing equally, if the policy had run there instead; "
    "gain: the same minus the buffer's mean return"
)


def print_ope(config: OpeConfig, result: Ope) -> None:
    """The policies one after the other: verdict, estimates side by side, support by action."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160, color_system=None, force_terminal=False)
    arrays = result.arrays
    facts = Table(box=None, show_header=False, pad_edge=False)
    simulated = ", simulated executor" if result.simulated else ""
    rows = [
        ("buffer", f"{config.buffer} (version {arrays.version}), {result.setting}, split {config.split}{simulated}"),
        (
            "episodes",
            f"{arrays.n_episodes} of {len(arrays.task_hashes)} tasks, {arrays.n_steps} steps, mean return "
            f"{_interval(result.targets[0].value.behaviour)}",
        ),
        ("estimand", ESTIMAND),
        ("intervals", f"{config.level:.0%}, bootstrap over tasks: for tasks like these, so wide for these very tasks"),
        *(("note", remark) for remark in result.remarks),
    ]
    for name, what in rows:
        facts.add_row(name, what)
    console.print(facts, highlight=False, markup=False)
    for target in result.targets:
        _print_target(console, target, result.simulated)
    if config.out is not None:
        console.print(f"\nwritten  {config.out}", highlight=False, markup=False)


def _print_target(console: Console, target: TargetValue, simulated: bool) -> None:
    value = target.value
    console.print()
    console.print(Text(f"== {target.name}: {value.support.sentence()}", style="bold"))
    if target.asked:
        console.print(f"asked: {target.asked}", highlight=False, markup=False)
    if value.best is None:
        console.print(
            "no number: the buffer does not hold what this policy would do; `support` with the same buffer and policy "
            "says what is missing and how to collect it",
            highlight=False,
            markup=False,
        )
    else:
        console.print(_estimates(value.estimates, value.level, simulated), highlight=False)
    console.print(_actions(value.support, simulated), highlight=False)


def _estimates(estimates: Sequence[Estimate], level: float, simulated: bool) -> Table:
    table = _table(f"estimates{', simulated executor' if simulated else ''}")
    table.add_column("estimator")
    for title in (f"value [{level:.0%}]", f"gain [{level:.0%}]", "ESS", "largest weight"):
        table.add_column(title, justify="right")
    table.add_column("")
    for each in estimates:
        shown = not each.withheld
        table.add_row(
            each.estimator,
            _interval(each.value) if shown else "-",
            _interval(each.gain, signed=True) if shown else "-",
            "-" if each.ess is None else f"{each.ess:.0f}",
            "-" if each.largest_share is None else f"{each.largest_share:.1%}",
            f"withheld: {each.withheld}" if each.withheld else each.value.degeneracy.value,
        )
    return table


def _actions(support: Support, simulated: bool) -> Table:
    table = _table(f"support by action{', simulated executor' if simulated else ''}")
    table.add_column("action")
    for title in ("logged steps", "tasks", "behaviour takes", "this policy takes", "of it on well-visited cells"):
        table.add_column(title, justify="right")
    for each in support.actions:
        table.add_row(
            each.action,
            f"{each.visits:,}",
            str(each.tasks),
            f"{each.behaviour:.1%}",
            f"{each.target:.1%}",
            "-" if each.on_support is None else f"{each.on_support:.1%}",
        )
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="", header_style="")


def _interval(value: Interval, *, signed: bool = False) -> str:
    if math.isnan(value.mean):
        return "-"
    form = "{:+.3f} [{:+.3f}, {:+.3f}]" if signed else "{:.3f} [{:.3f}, {:.3f}]"
    return form.format(value.mean, value.low, value.high)
