"""Events and facts as the frames of `harness_mdp.scoring.maturity_frame`, to compare it with the scalar rules."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from harness_mdp.mdp import Event
from harness_mdp.scoring.maturity import EpisodeFacts, MaturityConfig, MaturityEvent, maturity
from harness_mdp.scoring.maturity_frame import FACTS, STEPS, judge

Verdicts = tuple[float | None, tuple[tuple[bool, bool], ...]]
"""(HMS, (applicable, fired) of each event in the order of the table)"""


def at_once(episodes: Sequence[tuple[Sequence[Event], EpisodeFacts]], config: MaturityConfig) -> list[Verdicts]:
    """What `judge` says of all episodes in one call."""
    facts = pl.DataFrame(
        [
            {
                "episode_id": str(i),
                "horizon": facts.horizon,
                "termination": facts.termination.value,
                "tests_code": facts.tests_code,
                "has_check": facts.has_check,
                "requires_evidence": facts.requires_evidence,
                "quality": facts.quality,
                "criteria": list(facts.criteria),
            }
            for i, (_, facts) in enumerate(episodes)
        ],
        schema=dict(FACTS),
    )
    rows = [_step(str(i), event) for i, (events, _) in enumerate(episodes) for event in events]
    found = judge(pl.DataFrame(rows, schema=dict(STEPS)), facts, config)
    assert found["episode_id"].to_list() == facts["episode_id"].to_list()
    return [verdicts(row) for row in found.iter_rows(named=True)]


def one_by_one(episodes: Sequence[tuple[Sequence[Event], EpisodeFacts]], config: MaturityConfig) -> list[Verdicts]:
    """What the scalar rules say."""
    scores = [maturity(events, facts, config) for events, facts in episodes]
    return [(score.hms, tuple((applies, fired) for _, applies, fired in score.verdicts)) for score in scores]


def verdicts(row: dict) -> Verdicts:
    """Of a row of `judge` or of a re-score."""
    return row["hms"], tuple((row[e.value] is not None, bool(row[e.value])) for e in MaturityEvent)


def _step(episode_id: str, event: Event) -> dict[str, object]:
    tool, check, claims = event.tool, event.check, event.claims
    return {
        "episode_id": episode_id,
        "action": int(event.action),
        "status": event.status.value,
        "evidence": len(event.evidence),
        "tool_valid": tool and tool.valid,
        "tool_ok": tool and tool.ok,
        "tool_version": tool and tool.version,
        "tool_passed": tool and tool.passed,
        "tool_total": tool and tool.total,
        "check_score": check and check.score,
        "check_version": check and check.version,
        "check_problems": check and len(check.problems),
        "artifact_version": event.artifact and event.artifact.version,
        "claims": None if claims is None else len(claims),
        "claims_supported": None if claims is None else sum(claim.supported for claim in claims),
    }
