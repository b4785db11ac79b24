"""Hand-written policies (DESIGN section 3): base, forced_check, check_revise, tool_first, more_evidence.

Each is a few lines over the typed state. All are total: exploration may put them into any state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness_mdp.errors import ConfigError
from harness_mdp.features import N_FLAGS, features
from harness_mdp.hashing import digest
from harness_mdp.mdp import (
    N_ACTIONS,
    Action,
    DecisionBatch,
    DecisionPoint,
    LegalRules,
    Needs,
    Probs,
    State,
    legal_mask,
)
from harness_mdp.settings.protocol import Script, Setting

__all__ = [
    "MAX_REVISIONS",
    "SCRIPTS",
    "ScriptPolicy",
    "base",
    "check_revise",
    "decision_point",
    "forced_check",
    "make_more_evidence",
    "more_evidence",
    "script_policy",
    "tool_first",
]

MAX_REVISIONS = 2
"""A script revises at most twice; more is left to learned policies."""


def base(state: State, rules: LegalRules) -> Action:
    """observe, (retrieve), draft, submit: what most harnesses do. A failed draft is tried again."""
    if state.artifact is not None:
        return Action.SUBMIT
    if state.count(Action.OBSERVE) == 0:
        return Action.OBSERVE
    if rules.offers_retrieve and state.count(Action.RETRIEVE) == 0:
        return Action.RETRIEVE
    return Action.DRAFT


def forced_check(state: State, rules: LegalRules) -> Action:
    """base, but an unchecked version is checked first; then submitted whatever was found."""
    action = base(state, rules)
    return Action.CHECK if action is Action.SUBMIT and not state.version_checked else action


def check_revise(state: State, rules: LegalRules) -> Action:
    """The rule of thumb: check before submitting, revise while problems are named (at most twice), check again."""
    action = base(state, rules)
    if action is not Action.SUBMIT:
        return action
    if not state.version_checked:
        return Action.CHECK
    return _revise_or_submit(state)


def tool_first(state: State, rules: LegalRules) -> Action:
    """Use the tool before relying on the model: before the draft where that is legal, else on every version."""
    action = base(state, rules)
    if rules.tool_needs is Needs.ARTIFACT:
        if action is not Action.SUBMIT:
            return action
        if not state.version_tested:
            return Action.CALL_TOOL
        return _revise_or_submit(state)
    wants_tool = action is Action.DRAFT and state.count(Action.DRAFT) == 0 and state.count(Action.CALL_TOOL) < 2
    return Action.CALL_TOOL if wants_tool and legal_mask(rules, state)[Action.CALL_TOOL] else action


def make_more_evidence(observes: int, retrieves: int) -> Script:
    """Base with up to `observes` observe and `retrieves` retrieve steps before the first draft."""

    def more_evidence(state: State, rules: LegalRules) -> Action:
        action = base(state, rules)
        if action is not Action.DRAFT or state.count(Action.DRAFT) > 0:
            return action
        if state.count(Action.OBSERVE) < observes:
            return Action.OBSERVE
        if rules.offers_retrieve and state.count(Action.RETRIEVE) < retrieves:
            return Action.RETRIEVE
        return action

    return more_evidence


more_evidence = make_more_evidence(observes=2, retrieves=2)
"""base with twice the evidence."""

SCRIPTS: Mapping[str, Script] = {
    "base": base,
    "forced_check": forced_check,
    "check_revise": check_revise,
    "tool_first": tool_first,
    "more_evidence": more_evidence,
}
"""The five that every setting has; a setting replaces or adds what differs."""


def _revise_or_submit(state: State) -> Action:
    """With a verdict on the current version: revise while it names problems, at most `MAX_REVISIONS` times."""
    if state.open_problems > 0 and state.count(Action.REVISE) < MAX_REVISIONS:
        return Action.REVISE
    return Action.SUBMIT


def decision_point(setting: Setting, state: State) -> DecisionPoint:
    """What a policy sees in `state`: features, legal mask and base action, each computed here and carried on.

    Raises:
        ValueError: no action is legal, or the base action is not (a programming error of the setting).
    """
    mask = legal_mask(setting.rules, state)
    base_action = setting.scripts["base"](state, setting.rules)
    if not mask[base_action]:
        raise ValueError(f"{setting.name}: base chose the illegal action {base_action.label}")
    flags = setting.flags(state)
    # A user's setting may be untyped, and a wrong flag would only show when a learner meets it.
    if len(flags) != N_FLAGS or any(type(flag) not in (bool, np.bool_) for flag in flags):
        raise ValueError(f"{setting.name}: flags() gave {flags!r}; expected {N_FLAGS} booleans")
    return DecisionPoint(state, features(state, flags), mask, base_action)


@dataclass(frozen=True)
class ScriptPolicy:
    """A script of a setting as a policy: all probability on one action."""

    name: str
    setting: str
    setting_version: int
    rules: LegalRules
    script: Script

    @property
    def fingerprint(self) -> str:
        """Name, setting and setting version (a setting's version is bumped when a script changes)."""
        return digest(["script", self.name, self.setting, self.setting_version], 16)

    def probs(self, point: DecisionPoint) -> Probs:
        """(7,) one-hot.

        Raises:
            ValueError: the script chose an illegal action.
        """
        action = self.script(point.state, self.rules)
        if not point.mask[action]:
            raise ValueError(f"script {self.name} of {self.setting} chose the illegal action {action.label}")
        probs = np.zeros(N_ACTIONS)
        probs[action] = 1.0
        return probs

    def probs_batch(self, batch: DecisionBatch) -> Probs:
        """(n, 7) one-hot; needs `batch.states`."""
        if len(batch.states) != len(batch):
            raise ValueError(f"script {self.name} reads states; the batch has {len(batch.states)} of {len(batch)}")
        rows = zip(batch.states, batch.features, batch.mask, batch.base_action, strict=True)
        points = (DecisionPoint(state, x, mask, Action(int(base))) for state, x, mask, base in rows)
        return np.stack([self.probs(point) for point in points])


def script_policy(setting: Setting, name: str) -> ScriptPolicy:
    """The script `name` of `setting`.

    Raises:
        ConfigError: the setting has no such script.
    """
    if name not in setting.scripts:
        raise ConfigError(
            f"setting {setting.name} has no script {name!r}; expected one of {', '.join(setting.scripts)}"
        )
    return ScriptPolicy(name, setting.name, setting.version, setting.rules, setting.scripts[name])
