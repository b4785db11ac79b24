"""What explaining prints. Nothing is computed here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness_mdp.features import FEATURE_UNITS

if TYPE_CHECKING:  # scikit-learn, pandas and the buffer are loaded by the command that needs them
    import pandas as pd

    from controllers.explain import Fidelity
    from experiments.explain import Explained, Explanations
    from experiments.explain_config import ExplainConfig

__all__ = ["print_explanations"]


def print_explanations(config: ExplainConfig, result: Explanations) -> None:
    """The policies one after the other: the tree with its fidelity, then the differences from base."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=200, color_system=None, force_terminal=False)
    arrays = result.arrays
    simulated = ", simulated executor" if result.simulated else ""
    facts = Table(box=None, show_header=False, pad_edge=False)
    rows = [
        ("buffer", f"{config.buffer} (version {arrays.version}), {result.setting}, split {config.split}{simulated}"),
        ("states", f"{arrays.n_steps:,} of {arrays.n_episodes:,} episodes, {len(arrays.task_hashes)} tasks"),
        ("features", FEATURE_UNITS),
        *(("note", remark) for remark in result.remarks),
    ]
    for name, what in rows:
        facts.add_row(name, what)
    console.print(facts, highlight=False, markup=False)
    for explained in result.policies:
        _print_policy(console, explained, config.rows, simulated)


def _print_policy(console: Console, explained: Explained, rows: int, simulated: str) -> None:
    shown = explained.explanation
    console.print()
    console.print(Text(f"== {explained.name}", style="bold"))
    if shown.certainty < 1:
        console.print(f"Shown is its most probable action, of mean probability {shown.certainty:.2f}.", highlight=False)
    console.print(Text(f"\n{shown.tree.text()}\n"))
    if shown.fidelity is not None:
        console.print(Text(_fidelity(shown.fidelity)))
    console.print()
    table = shown.differences
    if table.empty:
        console.print("It does what base does in all of these states.", highlight=False)
        return
    console.print(_differences(table.head(rows), f"differences from base{simulated}"), highlight=False)
    if len(table) > rows:
        left = table.iloc[rows:]
        console.print(
            f"... in further rows {left['share'].sum():.1%} of the states; rows={len(table)} shows all",
            highlight=False,
        )
    console.print(
        "taken: states where the log has that action. "
        + (f"advantage: mean Q(s, action) - Q(s, base) by {explained.values_of}." if explained.values_of else ""),
        highlight=False,
    )


def _fidelity(fidelity: Fidelity) -> str:
    differs = (
        "it never differs from base"
        if math.isnan(fidelity.where_it_differs)
        else f"{fidelity.where_it_differs:.1%} where it differs from base"
    )
    return (
        f"Fidelity: a tree of this size agrees with it in {fidelity.agreement:.1%} of {fidelity.n_states:,} states of "
        f"tasks held out from the tree ({fidelity.n_tasks} tasks), {differs}; base does in {fidelity.base:.1%}."
    )


def _differences(differences: pd.DataFrame, title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="", header_style="")
    table.add_column("where", overflow="fold", max_width=90)
    for name in ("base", "instead"):
        table.add_column(name)
    for name in ("states", "share", "tasks", "taken", "advantage", "known in"):
        table.add_column(name, justify="right")
    for row in cast("list[dict[str, float | str]]", differences.to_dict(orient="records")):
        advantage = float(row["advantage"])
        table.add_row(
            Text(str(row["state"])),
            str(row["base_action"]),
            str(row["action"]),
            f"{row['n_states']:,}",
            f"{float(row['share']):.1%}",
            str(row["n_tasks"]),
            f"{row['n_taken']:,}",
            "-" if math.isnan(advantage) else f"{advantage:+.3f}",
            f"{row['n_valued']:,}",
        )
    return table
