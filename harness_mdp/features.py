"""The named float32 features of a state, and the id of their schema (DESIGN section 3).

A learned policy sees these and nothing else of a state. Order and names are fixed; a change of either, or of
the setting's version, changes the schema id, which is stored with every row and every controller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness_mdp.hashing import digest
from harness_mdp.mdp import ACTIONS, Action, State

__all__ = ["CLOCKS", "FEATURE_UNITS", "HAS_ARTIFACT", "N_FLAGS", "STEPS_LEFT", "FeatureSchema", "features"]

N_FLAGS = 4
"""Setting-specific structural flags, each 0 or 1."""

_COMMON = (
    "steps_used",
    "steps_left",
    "tokens_used",
    "cost_used",
    "has_artifact",
    "revisions",
    "artifact_length",
    "evidence_items",
    "evidence_new",
    "claims_supported",
    "tool_calls",
    "tool_errors",
    "last_tool_status",
    "tool_unread",
    "version_checked",
    "check_score",
    "open_problems",
    "checks",
    "executor_errors",
    "stalled",
)

STEPS_LEFT = _COMMON.index("steps_left")
"""Place of the share of H that is left, this step included."""

HAS_ARTIFACT = _COMMON.index("has_artifact")
"""Place of the flag of a state with an artifact."""

CLOCKS = tuple(_COMMON.index(name) for name in ("steps_used", "steps_left", "tokens_used", "cost_used"))
"""Places of the features that say how much is spent, not what was found."""

# Scales bring the usual range to about [0, 1]; they are constants, so that a stored feature needs no fit.
_LENGTH_SCALE = math.log1p(4000.0)
_EVIDENCE_SCALE = math.log1p(20.0)
_PROBLEM_SCALE = 5.0

FEATURE_UNITS = (
    f"counts are shares of the horizon (open_problems: of {_PROBLEM_SCALE:g}), length and evidence logarithms, "
    "tokens and cost shares of their budgets: about 0 to 1 each"
)
"""What a person has to know to read a number of a tree."""


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """Names of the features of one setting and version."""

    setting: str
    setting_version: int
    flags: tuple[str, ...]
    """Names of the four setting-specific flags."""

    def __post_init__(self) -> None:
        if len(self.flags) != N_FLAGS or len(set(self.flags)) != N_FLAGS:
            raise ValueError(f"setting {self.setting!r} names flags {self.flags}; expected {N_FLAGS} distinct names")

    @property
    def names(self) -> tuple[str, ...]:
        """D feature names, in order."""
        last = tuple(f"last_{action.label}" for action in ACTIONS)
        return _COMMON + last + tuple(f"flag_{flag}" for flag in self.flags)

    @property
    def id(self) -> str:
        """16 hex digits over names, setting and setting version."""
        return digest([*self.names, self.setting, self.setting_version], 16)

    def __len__(self) -> int:
        return len(_COMMON) + len(ACTIONS) + N_FLAGS


def features(state: State, flags: tuple[bool, bool, bool, bool]) -> npt.NDArray[np.float32]:
    """(d,) float32 features of `state`, in the order of `FeatureSchema.names`.

    Counts of steps are divided by H, spending by its budget (0 where there is no budget or the price is
    unknown). `last_tool_status` is 0 (none), 1 (fine), -1 (error or failed test); `check_score` is -1 before
    the first check. `claims_supported` is 1 for an artifact without claims, 0 without an artifact.
    """
    horizon = float(state.horizon)
    budgets = state.budgets
    has_artifact = state.artifact is not None
    if state.claims:
        supported = sum(claim.supported for claim in state.claims) / len(state.claims)
    else:
        supported = 1.0 if has_artifact else 0.0
    tool_status = 0.0 if state.last_tool is None else (-1.0 if state.last_tool.failed else 1.0)
    values = [
        state.steps / horizon,
        (horizon - state.steps) / horizon,
        state.tokens / budgets.tokens if budgets.tokens else 0.0,
        state.cost_usd / budgets.usd if budgets.usd and state.cost_usd is not None else 0.0,
        float(has_artifact),
        state.revisions / horizon,
        math.log1p(state.artifact.chars) / _LENGTH_SCALE if state.artifact else 0.0,
        math.log1p(len(state.evidence)) / _EVIDENCE_SCALE,
        math.log1p(state.evidence_new) / _EVIDENCE_SCALE,
        supported,
        state.count(Action.CALL_TOOL) / horizon,
        state.tool_errors / horizon,
        tool_status,
        float(state.unread_tool),
        float(state.version_checked),
        state.last_check.score if state.last_check else -1.0,
        min(1.0, state.open_problems / _PROBLEM_SCALE),
        state.count(Action.CHECK) / horizon,
        state.executor_errors / horizon,
        state.stalled / horizon,
    ]
    values.extend(float(state.last_action is action) for action in ACTIONS)
    values.extend(float(flag) for flag in flags)
    return np.array(values, dtype=np.float32)
