"""The page: everything computed elsewhere, put into the templates beside this module."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import cast

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from analysis.report.cautions import Caution, belief, cautions_of, in_words
from analysis.report.collected import collected_of
from analysis.report.episode_details import Details, embed, feature_names
from analysis.report.episode_index import Index, episode_index
from analysis.report.evaluated import evaluations_of
from analysis.report.families import Family, families_of
from analysis.report.figures import Axis, Point, axis_over, interval_bar, interval_scale, scatter
from analysis.report.findings import Finding, Row, finding_of, rows_of
from analysis.report.packing import pack
from analysis.report.process import ArmActions, Support, arm_actions, steps_of, support
from analysis.report.provenance import MadeBy, controllers_of, origins_of, pretty
from analysis.report.sources import Source, open_sources
from analysis.verdict import Judgement, judge
from harness_mdp.hashing import Json
from harness_mdp.mdp import ACTIONS

__all__ = ["Page", "build_page"]

_SCRIPTS = ("unpack.js", "episodes.js", "episode.js", "page.js")
_STYLES = ("page.css", "browser.css")


@dataclass(frozen=True, slots=True)
class Page:
    """A finished report."""

    html: str
    headline: str
    episodes: int
    with_steps: int
    """Of the episodes, those whose steps are embedded."""
    cautions: tuple[Caution, ...]
    simulated: bool


@dataclass(frozen=True, eq=False)
class _Process:
    """What one evaluation shows of the process."""

    label: str
    arms: tuple[str, ...]
    actions: tuple[ArmActions, ...]
    events: Mapping[str, Mapping[str, Row]]
    """Event -> arm -> row of the comparison."""
    supports: tuple[Support, ...]

    @property
    def starred(self) -> bool:
        """Some rate stands on too few tasks, or on too little spread between them."""
        return any(_unsure(row) for arms in self.events.values() for row in arms.values())


@dataclass(frozen=True, eq=False)
class _Section:
    """A family as the template shows it."""

    finding: Finding
    quality: list[Row]
    maturity: list[Row]
    quality_axis: Axis
    maturity_axis: Axis
    frontiers: list[tuple[str, Markup, Markup]]
    """(label, cost against quality, strict maturity against quality)"""
    process: list[_Process]


def build_page(
    path: str,
    *,
    made_by: MadeBy,
    rule: str = "check_revise",
    preset: str = "paper",
    runs: Sequence[str] = (),
    details_bytes: int = 8_000_000,
) -> Page:
    """The report of the buffer at `path`, or of all buffers beneath it.

    Args:
        path: a buffer, or a folder that holds buffers.
        made_by: how this report itself was made, for its last section.
        rule: the arm that a learned controller has to beat.
        preset: of maturity in the tables.
        runs: only evaluations of these runs.
        details_bytes: how much of the page may be steps and artifacts.

    Raises:
        HarnessError: nothing there, nothing finished, versions mixed, one task, or arms that are not matched.
    """
    sources = open_sources(path)
    evaluations = evaluations_of(sources, runs)
    steps = [steps_of(source) for source in sources]
    collected = collected_of(sources, steps)
    families = families_of(evaluations, sources, rule=rule, preset=preset)
    sections = [_section(family, rule, sources, steps) for family in families]
    supports = [each for section in sections for process in section.process for each in process.supports]
    cautions = cautions_of(sources, families, collected, supports, rule)
    ordered = [each for family in families for each in family.evaluations]
    index = episode_index(sources, ordered)
    details = embed(sources, index, details_bytes)
    with_steps = sum(each in details.places for each in index.rows["episode_id"])
    simulated = any(caution.title.startswith("Simulated") for caution in cautions)
    headline = sections[0].finding.helped.word if sections else "Not evaluated yet"
    settings = sorted(set(index.rows["setting"]))
    script, style = _joined(_SCRIPTS), _joined(_STYLES)
    html = (
        _environment()
        .get_template("report.html")
        .render(
            path=path,
            rule=rule,
            preset=preset,
            settings=settings,
            simulated=simulated,
            headline=headline,
            sections=sections,
            collected=collected,
            sources=sources,
            cautions=cautions,
            belief=belief(cautions, families),
            n_episodes=len(index.rows),
            n_details=with_steps,
            origins=origins_of(sources),
            controllers=controllers_of(sources),
            made_by=made_by,
            made_config=pretty(dict(made_by.resolved)),
            draws=families[0].comparison.draws if families else 0,
            actions=[action.label for action in ACTIONS],
            index=_index(index, details, sources),
            blocks=details.blocks,
            script=Markup(script),  # noqa: S704  (our own files)
            style=Markup(style),  # noqa: S704
            policy=_content_policy(script, style),
        )
    )
    return Page(html, headline, len(index.rows), with_steps, cautions, simulated)


def _section(family: Family, rule: str, sources: Sequence[Source], steps: Sequence[pl.DataFrame]) -> _Section:
    quality, maturity = rows_of(family.comparison, "quality"), rows_of(family.comparison, "maturity")
    return _Section(
        finding=finding_of(family, rule),
        quality=quality,
        maturity=maturity,
        quality_axis=_axis(quality),
        maturity_axis=_axis(maturity),
        frontiers=[_frontier(family, each.label) for each in family.evaluations],
        process=_processes(family, sources, steps),
    )


def _processes(family: Family, sources: Sequence[Source], steps: Sequence[pl.DataFrame]) -> list[_Process]:
    found: list[_Process] = []
    rows = cast("list[Row]", family.comparison.events.to_dict(orient="records"))
    for each in family.evaluations:
        taken = steps[each.source]
        events: dict[str, dict[str, Row]] = {}
        for row in rows:
            if row["setting"] == each.label:
                events.setdefault(str(row["event"]), {})[str(row["arm"])] = row
        applicable = {event: arms for event, arms in events.items() if any(r["n_applicable"] for r in arms.values())}
        found.append(
            _Process(
                label=each.label,
                arms=each.arms,
                actions=arm_actions(each, taken),
                events=applicable,
                supports=support(each, sources[each.source], taken),
            )
        )
    return found


def _axis(rows: Sequence[Row]) -> Axis:
    return axis_over([float(row[end]) for row in rows for end in ("ci_low", "ci_high", "delta")], zero=True)


def _frontier(family: Family, label: str) -> tuple[str, Markup, Markup]:
    quality = {str(r["arm"]): r for r in rows_of(family.comparison, "quality") if r["setting"] == label}
    strict = rows_of(family.strict, "maturity") if family.strict is not None else []
    maturity = {str(r["arm"]): r for r in strict if r["setting"] == label}
    tokens = {cost.arm: cost.mean for cost in family.costs if cost.label == label and cost.what == "tokens"}
    y = "quality, 0 to 1"
    cost = scatter(
        [_point(family, arm, tokens[arm], row) for arm, row in quality.items() if arm in tokens],
        title=f"{label}: tokens an episode against quality",
        x_label="tokens an episode",
        y_label=y,
        x_zero=True,
    )
    process = scatter(
        [_point(family, arm, float(maturity[arm]["mean"]), row) for arm, row in quality.items() if arm in maturity],
        title=f"{label}: maturity against quality",
        x_label="maturity, preset strict, -1 to 1",
        y_label=y,
    )
    return label, cost, process


def _point(family: Family, arm: str, x: float, row: Row) -> Point:
    mean, low, high = (float(row[name]) for name in ("mean", "mean_low", "mean_high"))
    return Point(arm, x, mean, low, high, arm in family.learners)


def _index(index: Index, details: Details, sources: Sequence[Source]) -> str:
    names: Json = {
        "actions": [action.label for action in ACTIONS],
        "sources": [source.label or source.path for source in sources],
        "features": feature_names(sources),
        "columns": index.columns(details.places),
    }
    return pack(names)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("analysis.report", "template"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The stubs of Jinja type both as dicts of what it comes with.
    cast("dict[str, object]", environment.filters).update(
        {"signed": _signed, "plain": _plain, "p": _p, "percent": _percent, "shade": _shade, "in_words": in_words}
    )
    cast("dict[str, object]", environment.globals).update(
        {
            "interval_bar": interval_bar,
            "interval_scale": interval_scale,
            "judged": judge,
            "sign": {Judgement.BETTER: "▲", Judgement.WORSE: "▼", Judgement.UNDECIDED: "○"},
            "unsure": _unsure,
            "isnan": math.isnan,
        }
    )
    return environment


def _unsure(row: Row) -> bool:
    """A rate that differs from the reference's, or seems not to, where the tasks cannot tell."""
    told = judge(float(row["ci_low"]), float(row["ci_high"])) is not Judgement.UNDECIDED
    note = str(row["note"])
    return "applicable" in note or ("delta" in note and not told and float(row["delta"]) != 0)


def _signed(value: float, digits: int = 3) -> str:
    return "" if math.isnan(value) else f"{value:+z.{digits}f}".replace("-", "−")


def _plain(value: float, digits: int = 3) -> str:
    return "" if math.isnan(value) else f"{value:z,.{digits}f}".replace("-", "−")


def _p(value: float) -> str:
    return "" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{100 * value:.0f} %"


def _shade(value: float, most: float = 1.0) -> int:
    """0 to 9, for the background of a cell."""
    return 0 if math.isnan(value) or most <= 0 else min(9, max(0, round(9 * value / most)))


def _joined(names: Sequence[str]) -> str:
    folder = resources.files("analysis.report").joinpath("template")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _content_policy(script: str, style: str) -> str:
    """Only this page's own script and style run, and nothing is fetched: text from a model can do neither."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
