"""What the commands print. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from harness_mdp.scoring.maturity_config import MaturityEvent

if TYPE_CHECKING:  # torch, pandas and d3rlpy are loaded by the command that needs them, not by printing
    from analysis.comparison import Comparison
    from analysis.report import Page
    from analysis.verdict import Verdict
    from buffers.export import Exported
    from buffers.verify import Report
    from controllers.learners import Learned
    from experiments.collection import Collection, DryRun
    from experiments.config import (
        CollectConfig,
        DemoConfig,
        EvaluateConfig,
        ScoreConfig,
        TrainConfig,
        VerifyConfig,
    )
    from experiments.evaluation import Evaluation
    from experiments.export_config import ExportConfig
    from experiments.refusals import Refusals
    from experiments.report_config import ReportConfig
    from experiments.running import Outcome
    from experiments.scoring import EventRate, Scoring
    from experiments.training import Training

__all__ = [
    "print_collection",
    "print_demo",
    "print_dry_run",
    "print_evaluation",
    "print_export",
    "print_headline",
    "print_report",
    "print_scoring",
    "print_training",
    "print_verification",
]

SHOWN = 20
"""Rows of a long listing that are printed."""


def _console() -> Console:
    """Standard output; wide enough for a table when it is no terminal, without colour there."""
    console = Console()
    return console if console.is_terminal else Console(width=220, color_system=None, force_terminal=False)


def print_headline(text: str) -> None:
    """A line that opens a part of the output."""
    console = _console()
    console.print(f"\n== {text}", style="bold", highlight=False)


def _counted(outcome: Outcome) -> str:
    return (
        f"{outcome.planned} planned, {outcome.done_before} there before, {outcome.run} run now, "
        f"{outcome.infra_missing} infra_missing"
        + (f", {outcome.elsewhere} stored by another process at the same time" if outcome.elsewhere else "")
    )


def _facts(rows: Sequence[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows:
        table.add_row(name, value)
    _console().print(table, highlight=False)


def print_collection(buffer: str, collection: Collection) -> None:
    """Episodes by status, mean return, slack, action coverage, where things were written."""
    from buffers import ReplayBuffer
    from experiments.summary import summarise

    outcome = collection.outcome
    rows = [
        ("executor", collection.executor + _simulated(collection.executor)),
        ("episodes", _counted(outcome)),
    ]
    summary = summarise(ReplayBuffer(buffer), collection.episode_ids)
    if summary is not None:
        slack = "unknown: no task has two episodes"
        if summary.slack is not None:
            slack = f"{summary.slack:.3f} (best minus mean return of a task: the most this buffer can teach)"
        cost = "unknown price" if summary.cost_usd is None else f"${summary.cost_usd:.4f}"
        rows += [
            ("status", f"{summary.scored} scored, {summary.invalid} invalid"),
            ("mean return", f"{summary.mean_return:.3f} over {summary.tasks} tasks, {summary.episodes} episodes"),
            ("slack", slack),
            ("actions taken", "  ".join(f"{name} {share:.0%}" for name, share in summary.coverage.items())),
            ("", "(share of the steps where the action was legal)"),
            ("steps, tokens, cost", f"{summary.mean_steps:.1f} an episode, {summary.tokens:,}, {cost}"),
        ]
    rows.append(("buffer", f"{buffer} (run {collection.run})"))
    if outcome.stopped:
        rows.append(("stopped", f"{outcome.stopped}; the same command with a higher limit goes on"))
    if outcome.infra_missing:
        rows += [("missing because", reason) for reason in outcome.reasons]
        rows.append(("", "the same command tries them again"))
    _facts(rows)


def _simulated(executor: str) -> str:
    return " (simulated)" if executor.startswith("simulated-") else ""


def print_dry_run(config: CollectConfig | EvaluateConfig, work: DryRun) -> None:
    """What would run, and the most it could cost."""
    tokens = "no bound: setting.tokens sets one" if work.tokens is None else f"at most {work.tokens:,}"
    usd = "unknown: no price for this model (executor.prices)" if work.usd is None else f"at most ${work.usd:.2f}"
    _facts(
        [
            ("dry run", "nothing was run, written or paid"),
            ("tasks", str(work.tasks)),
            ("episodes to run", f"{work.episodes} ({work.done_before} are in {config.buffer} already)"),
            ("executor calls", f"at most {work.calls:,}"),
            ("tokens", tokens),
            ("money", usd),
        ]
    )


def _mixed(horizons: Sequence[int]) -> tuple[str, ...]:
    """The horizons in words, where there are several."""
    return (" and ".join(map(str, horizons)),) if len(horizons) > 1 else ()


def print_training(config: TrainConfig, training: Training) -> None:
    """What was learned from, how the weights came out, and where the controller is."""
    arrays, slack = training.arrays, training.slack
    _facts(
        [
            ("method", f"{training.manifest.method}, seed {config.seed}, decides by {training.manifest.decision}"),
            (
                "learned from",
                f"{arrays.n_episodes} episodes, {arrays.n_steps} steps, {slack.n_tasks} tasks; "
                f"mean return {arrays.returns.mean():.3f}; {config.buffer} version {arrays.version}",
            ),
            ("executor", ", ".join(name + _simulated(name) for name in arrays.executors)),
            ("maximised", training.returns),
            ("slack", "unknown" if slack.is_unknown else f"{slack.slack:.3f}"),
            *(("note", remark) for remark in training.remarks),
            *(("note", f"episodes of horizons {h} are learned from together") for h in _mixed(arrays.horizons)),
            *_learning(training.learned),
            ("controller", str(training.out)),
        ]
    )
    if len(training.shifts):
        from analysis.shift_tables import render_predicted

        console = _console()
        console.print(render_predicted(training.shifts, plain=not console.is_terminal), highlight=False)


def _learning(learned: Learned) -> list[tuple[str, str]]:
    """What this kind of learner has to say of its training."""
    metrics: dict[str, Any] = dict(learned.metrics)
    policy = f"takes the base action with {metrics['agreement_with_base']:.1%}"
    facts: list[tuple[str, str]] = []
    if "ess" in metrics:
        facts = [
            (
                "weights",
                f"{metrics['weight_min']:.2f} to {metrics['weight_max']:.2f}, mean {metrics['weight_mean']:.2f}, "
                f"ESS {metrics['ess']:.0f} of {metrics['n_steps']} steps",
            ),
            ("loss", f"{metrics['loss'][0]:.4f} -> {metrics['loss'][-1]:.4f}"),
        ]
        policy = f"entropy {metrics['entropy']:.3f} nats, {policy}"
    if "states_without_support" in metrics:
        policy += f"; no action had enough data in {metrics['states_without_support']:.1%} of states (base there)"
    if learned.folds:
        facts.append(("folds", f"{len(learned.folds)} task-fold controllers, for off-policy evaluation"))
    if "refused_support" in metrics:
        support, advantage = metrics["refused_support"], metrics["refused_advantage"]
        share = f"{support + advantage:.1%} of the decisions (support {support:.1%}, advantage {advantage:.1%})"
        facts.append(("guard", f"refuses {share}, which go to base"))
    return [*facts, ("policy", policy)]


def print_evaluation(config: EvaluateConfig, evaluation: Evaluation, preset: str) -> None:
    """The comparison, quality and maturity (of `preset`) apart, and where it was written."""
    from experiments.evaluation import comparison_of, verdicts_of, write_table

    outcome = evaluation.outcome
    learned = ", tasks that controllers may have learned from" if config.on_learned_tasks else ""
    rows = [
        ("tasks", f"split {config.split} by {config.split_by}{learned}"),
        ("episodes", _counted(outcome)),
        *(("missing because", reason) for reason in outcome.reasons),
        ("buffer", f"{config.buffer} (phase eval, run {evaluation.run})"),
    ]
    if outcome.stopped is not None:
        rows.append(("stopped", f"{outcome.stopped}; the same command with a higher limit goes on, then compares"))
        _facts(rows)
        return
    comparison = comparison_of([evaluation], preset)
    _print_comparison(comparison, verdicts_of([evaluation]), events=config.events)
    if config.out is not None:
        write_table(comparison, config.out)
        rows.append(("table", config.out))
    if evaluation.shifts is not None:
        from analysis.shift_tables import render_realised

        console = _console()
        console.print(render_realised(evaluation.shifts, plain=not console.is_terminal), highlight=False)
        rows += [("shift", evaluation.shift_remark)] if evaluation.shift_remark else []
    rows += [(f"guard of {arm}", _refused(refusals)) for arm, refusals in evaluation.refusals.items()]
    _facts(rows)


def _refused(refusals: Refusals) -> str:
    """`refused 12.0% of 3,210 decisions (support 4.0%, advantage 8.0%), which went to base`."""
    reasons = ", ".join(f"{reason} {count / refusals.decisions:.1%}" for reason, count in refusals.by_reason.items())
    return f"refused {refusals.share:.1%} of {refusals.decisions:,} decisions ({reasons}), which went to base"


def _print_comparison(comparison: Comparison, judged: Sequence[Verdict], *, events: bool = False) -> None:
    from analysis.tables import render, render_events

    console = _console()
    plain = not console.is_terminal
    console.print(render(comparison, plain=plain), highlight=False)
    rates = render_events(comparison, plain=plain) if events else None
    if rates is not None:
        console.print(rates, highlight=False)
    for verdict in judged:
        console.print(verdict.sentence(), highlight=False)


def print_demo(config: DemoConfig, evaluations: Sequence[Evaluation]) -> None:
    """The settings side by side."""
    from experiments.evaluation import comparison_of, verdicts_of

    _print_comparison(comparison_of(evaluations), verdicts_of(evaluations))
    _facts(
        [
            ("written", f"{config.root}/<setting>/buffer (Delta tables), {config.root}/<setting>/controllers"),
            ("next", "README.md: your own endpoint, your own logs, your own setting"),
        ]
    )


_SEALED = "EarlySubmit reads the sealed quality here: for maturity against quality use maturity=strict"
_UNSEALED = "nothing sealed is read: these scores may be set against quality"


def print_scoring(config: ScoreConfig, scoring: Scoring) -> None:
    """How many episodes were scored, HMS and event rates beside the stored ones, and what to use for what."""
    used = scoring.config
    there = f", {scoring.episodes - scoring.added} had this score before" if scoring.added < scoring.episodes else ""
    done = f"{scoring.added} scored{there}" if scoring.added else "nothing added: all of them had this score before"
    _facts(
        [
            ("buffer", config.buffer),
            ("maturity", f"{used.preset}, config {used.hash}, {_differences(scoring.changed)}"),
            ("episodes", f"{scoring.episodes}: {done}; other scores are as they were"),
            *(("note", f"{key} changes nothing here: {why}") for key, why in scoring.idle.items()),
        ]
    )
    stored = scoring.stored_preset
    headings = ("setting", "policy", "phase", "n", "HMS", f"HMS stored ({stored})", "differ")
    table, rates = Table(*headings), Table("setting", "policy", "phase", *(event.value for event in MaturityEvent))
    for group in scoring.groups:
        names = (group.setting, group.policy, group.phase)
        changed = "-" if group.differ is None else str(group.differ)
        table.add_row(*names, str(group.n), _score(group.hms), _score(group.stored_hms), changed)
        rates.add_row(*names, *(_rate(rate) for rate in group.events))
    _console().print(table, highlight=False)
    _console().print(rates, highlight=False)
    _facts(
        [
            ("HMS", "mean over episodes where an event with a weight was applicable"),
            ("events", f"rate among n applicable episodes; a -> b: as stored ({stored}) and now"),
            ("quality", _SEALED if used.early_reads_quality else _UNSEALED),
            ("written", f"{scoring.written}; ReplayBuffer.rescores_df(config_hash={used.hash!r}) reads it"),
        ]
    )


def _differences(changed: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in changed.items()) or "as the preset has it"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _rate(rate: EventRate) -> str:
    if rate.applicable == 0:
        return "-"
    now = f"{rate.rate:.3f}"
    before = "" if rate.stored is None or rate.stored == rate.rate else f"{rate.stored:.3f} -> "
    return f"{before}{now} (n {rate.applicable})"


def print_verification(config: VerifyConfig, report: Report) -> None:
    """What replayed and what did not."""
    _facts(
        [
            ("buffer", config.buffer),
            ("folded again", f"{report.episodes} episodes, {report.steps} steps"),
            ("checked", "masks, base actions, features, propensities, artifacts, endings, totals, maturity"),
            (
                "policy asked again",
                f"in {report.asked_again} of {report.episodes} episodes (the others: a controller that is not where "
                "the run manifest says, seen from here)"
                if report.asked_again < report.episodes
                else "in every episode, from the run manifests",
            ),
            ("does not replay", f"{len(report.mismatches)} values in {report.damaged} episodes"),
        ]
    )
    if report.ok:
        return
    table = Table()
    for name in ("episode", "step", "what", "stored", "recomputed"):
        table.add_column(name, overflow="fold")  # an episode id that is cut cannot be looked up
    for mismatch in report.mismatches[:SHOWN]:
        where = str(mismatch.t) if mismatch.t else "-"
        table.add_row(mismatch.episode_id, where, mismatch.what, mismatch.stored, mismatch.recomputed)
    _console().print(table, highlight=False)
    if len(report.mismatches) > SHOWN:
        _console().print(f"... and {len(report.mismatches) - SHOWN} more", highlight=False)


def print_export(config: ExportConfig, exported: Exported) -> None:
    """What was written where, and what was left out."""
    missing = exported.infra_missing
    kept = f"; {missing} infra_missing have no return and are not among them" if missing else ""
    _facts(
        [
            ("buffer", f"{config.buffer} (version {exported.version})"),
            ("exported", f"{exported.episodes} episodes, {exported.steps} steps{kept}"),
            ("executor", "simulated, and no model" if exported.simulated else "no simulated one known"),
            ("written", f"{exported.out} ({exported.format}), with a dataset card in README.md"),
            *(("", note) for note in exported.notes),
        ]
    )


def print_report(config: ReportConfig, page: Page) -> None:
    """The verdict, what takes from it, and where the page is."""
    listed = f"{page.episodes:,} listed, {page.with_steps:,} can be opened step by step"
    _facts(
        [
            ("verdict", page.headline + (" (simulated)" if page.simulated else "")),
            *((caution.weight.value, caution.title) for caution in page.cautions),
            ("episodes", listed),
            ("report", f"{config.out} ({len(page.html.encode()) / 1e6:.1f} MB, no network needed)"),
        ]
    )
