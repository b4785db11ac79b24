"""What the support command prints. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from analysis.collection_support import Addition, StatePair
    from experiments.support import CollectionSupport
    from experiments.support_config import SupportConfig

__all__ = ["print_support"]

ESTIMATOR = (
    "importance weighting of the logged steps; what follows an action that was never taken is not seen, so rare states "
    "come out low, and a mixture with a small ESS rests on few episodes"
)


def print_support(config: SupportConfig, result: CollectionSupport) -> None:
    """Pairs that lack data with what each mixture would add, the mixtures, and one command."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=200, color_system=None, force_terminal=False)
    arrays, lacking = result.arrays, result.lacking
    simulated = ", simulated executor" if result.simulated else ""
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, what in (
        ("buffer", f"{config.buffer} (version {arrays.version}), {result.setting}, split {config.split}{simulated}"),
        ("episodes", f"{arrays.n_episodes} of {len(arrays.task_hashes)} tasks, {arrays.n_steps} steps"),
        (
            "sensible",
            f"{len(result.pairs)} pairs of a state and an action that a policy proposes there or that is cheap",
        ),
        ("lacking", f"{len(lacking)} of them: fewer than {config.visits} visits or {config.tasks} tasks"),
    ):
        facts.add_row(name, what)
    console.print(facts, highlight=False, markup=False)
    if result.suggestion is None:
        console.print("\nnothing is missing: every sensible pair has enough data", highlight=False, markup=False)
    else:
        _print_lack(console, config, result)
    if config.out is not None:
        console.print(f"\nwritten  {config.out}", highlight=False, markup=False)


def _print_lack(console: Console, config: SupportConfig, result: CollectionSupport) -> None:
    suggestion, lacking, additions = result.suggestion, result.lacking, result.additions
    assert suggestion is not None
    simulated = ", simulated executor" if result.simulated else ""
    console.print()
    console.print(_pairs(lacking[: config.rows], additions, simulated), highlight=False)
    if len(lacking) > config.rows:
        console.print(f"... and {len(lacking) - config.rows} more; rows=N prints them, out=FILE writes all")
    console.print()
    console.print(_mixtures(additions, lacking, suggestion.episodes, suggestion.mixture, simulated), highlight=False)
    console.print(f"estimated by {ESTIMATOR}", highlight=False, markup=False, soft_wrap=True)
    reach = f"{suggestion.filled} of {len(lacking)} pairs are then expected to have enough"
    rest = "" if suggestion.filled == len(lacking) else "; ask again afterwards, since rare states become less rare"
    console.print(
        Text(f"\nsuggestion: {suggestion.mixture}, {suggestion.episodes} episodes; {reach}{rest}", style="bold")
    )
    console.print(suggestion.command, highlight=False, markup=False, soft_wrap=True)


def _pairs(pairs: Sequence[StatePair], additions: Sequence[Addition], simulated: str) -> Table:
    title = f"pairs that lack data; A, B, ... : expected visits per 100 episodes of each mixture below{simulated}"
    table = Table(title=title, title_justify="left", title_style="", header_style="")
    table.add_column("state", overflow="fold")
    table.add_column("action")
    for name in ("states", "visits", "tasks"):
        table.add_column(name, justify="right")
    table.add_column("proposed by", overflow="fold")
    for letter, _ in zip(ascii_uppercase, additions, strict=False):
        table.add_column(letter, justify="right", no_wrap=True)
    for place, pair in enumerate(pairs):
        table.add_row(
            pair.state,
            pair.action.label,
            f"{pair.states:,}",
            str(pair.visits),
            str(pair.tasks),
            Text(", ".join(pair.proposed_by) or "(cheap)"),
            *(_rate(100 * each.visits[place]) for each in additions[: len(ascii_uppercase)]),
        )
    return table


def _mixtures(
    additions: Sequence[Addition], lacking: Sequence[StatePair], episodes: int, suggested: str, simulated: str
) -> Table:
    title = f"mixtures, for {episodes} episodes each{simulated}"
    table = Table(title=title, title_justify="left", title_style="", header_style="")
    table.add_column("")
    table.add_column("mixture", overflow="fold")
    for name in ("pairs filled", "of what is missing", "steps an episode", "tokens an episode", "ESS"):
        table.add_column(name, justify="right")
    table.add_column("")
    for letter, each in zip(ascii_uppercase, additions, strict=False):
        table.add_row(
            letter,
            Text(each.name),
            f"{each.filled(lacking, episodes)} of {len(lacking)}",
            f"{each.share(lacking, episodes):.0%}",
            f"{each.steps:.1f}",
            f"{each.tokens:,.0f}",
            f"{each.ess:,.0f}",
            "suggested" if each.name == suggested else "",
        )
    return table


def _rate(value: float) -> str:
    return f"{value:.1f}" if value >= 0.05 or value == 0 else "<0.1"
