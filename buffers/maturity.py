"""From the nested columns of a buffer to the two frames that maturity is judged on, and the judgement.

Only the leaf columns that the rules read are read; no episode is decoded.
"""

# pyarrow ships no type information.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from harness_mdp.scoring.maturity import MaturityConfig, SettingFacts, setting_facts

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MATURITY_LEAVES", "judge_rows"]

_EVENT = "steps.list.element.event."
MATURITY_LEAVES = (
    "episode_id",
    "setting",
    "horizon",
    "termination",
    "return",
    "rubric.list.element.score",
    "steps.list.element.action",
    *(
        _EVENT + leaf
        for leaf in (
            "status",
            "evidence.list.element",
            "tool.valid",
            "tool.ok",
            "tool.version",
            "tool.passed",
            "tool.total",
            "check.score",
            "check.version",
            "check.problems.list.element",
            "artifact.version",
            "claims.list.element.supported",
        )
    ),
)
"""What the seven rules read of a row."""


def judge_rows(rows: pa.Table, config: MaturityConfig, open_setting: Callable[[str], SettingFacts]) -> pl.DataFrame:
    """HMS and verdicts under `config`, as `harness_mdp.scoring.maturity_frame.judge` returns them.

    Args:
        rows: with `MATURITY_LEAVES`.
        config: thresholds and weights.
        open_setting: by name, for what applies in it.

    Raises:
        ConfigError: an unknown setting.
        InputError: an episode whose events contradict its termination or its horizon.
    """
    import polars as pl

    from harness_mdp.scoring.maturity_frame import judge

    frame = cast("pl.DataFrame", pl.from_arrow(rows))
    return judge(_steps(frame), _facts(frame, open_setting), config)


def _facts(frame: pl.DataFrame, open_setting: Callable[[str], SettingFacts]) -> pl.DataFrame:
    import polars as pl

    from harness_mdp.scoring.maturity_frame import FACTS

    names: list[str] = frame["setting"].unique().sort().to_list()
    of_settings = pl.DataFrame(
        [{"setting": name, **setting_facts(open_setting(name))} for name in names],
        schema={
            "setting": pl.String,
            "tests_code": pl.Boolean,
            "has_check": pl.Boolean,
            "requires_evidence": pl.Boolean,
        },
    )
    return (
        frame.join(of_settings, on="setting", how="left", maintain_order="left")
        .with_columns(
            quality=pl.col("return"),
            criteria=pl.col("rubric").list.eval(pl.element().struct.field("score")),
        )
        .select(pl.col(name).cast(kind) for name, kind in FACTS.items())
    )


def _steps(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    from harness_mdp.scoring.maturity_frame import STEPS

    event = pl.col("event").struct
    tool, check = event.field("tool").struct, event.field("check").struct
    claims = event.field("claims")
    steps = (
        frame.select("episode_id", "steps")
        .explode("steps", empty_as_null=True)
        .filter(pl.col("steps").is_not_null())  # an episode whose budget was spent at once has no step
        .unnest("steps")
    )
    return steps.select(
        "episode_id",
        "action",
        status=event.field("status"),
        evidence=event.field("evidence").list.len(),
        tool_valid=tool.field("valid"),
        tool_ok=tool.field("ok"),
        tool_version=tool.field("version"),
        tool_passed=tool.field("passed"),
        tool_total=tool.field("total"),
        check_score=check.field("score"),
        check_version=check.field("version"),
        check_problems=check.field("problems").list.len(),
        artifact_version=event.field("artifact").struct.field("version"),
        claims=claims.list.len(),
        claims_supported=claims.list.eval(pl.element().struct.field("supported")).list.sum(),
    ).select(pl.col(name).cast(kind) for name, kind in STEPS.items())
