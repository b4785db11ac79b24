"""A hand-written expert for every setting: what someone who knows the setting and its executor would do.

The yardstick of the attainable gain (DESIGN section 2), beside what long learning in the simulator reaches. One script
with few parameters, an `ExpertPlan`, which differ between settings because their actions do. The parameters were chosen
by `experiments.expert_search` on training tasks and the simulated executor `medium`: no evaluation task was looked at,
and on another executor another plan may be better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import digest
from harness_mdp.mdp import Action, LegalRules, Needs, State, legal_mask
from harness_mdp.settings.protocol import Setting
from harness_mdp.settings.scripts import ScriptPolicy

__all__ = ["PLANS", "Confirm", "ExpertPlan", "ExpertPolicy", "Remedy", "Verdict", "expert", "expert_policy"]


class Verdict(StrEnum):
    """How a version of the artifact is judged."""

    CHECK = "check"
    TOOL = "tool"
    """The tool runs on the version; only where `call_tool` needs an artifact."""
    TOOL_CHECK = "tool_check"
    """The tool, then the check where the tool finds nothing."""
    CHECK_TOOL = "check_tool"


class Remedy(StrEnum):
    """What follows a tool that found something wrong with the version."""

    REVISE = "revise"
    CHECK = "check"
    """A check may name the place, which a revision mends more often than a symptom; a new draft where it does not."""
    REDRAFT = "redraft"


class Confirm(StrEnum):
    """What is asked once more where a check found next to nothing."""

    NO = "no"
    CHECK = "check"
    TOOL = "tool"
    """Only where `call_tool` needs an artifact; a check otherwise."""


@dataclass(frozen=True, slots=True)
class ExpertPlan:
    """The parameters of the expert's script.

    Evidence first, then a draft; every version is judged; problems are mended and the new version is judged, until the
    verdicts are clean or the horizon ends the episode, which submits what there is without costing a step.
    """

    observes: int = 1
    """`observe` steps before the first draft."""
    retrieves: int = 1
    """`retrieve` steps before it, where they are offered."""
    tools: int = 0
    """`call_tool` steps before it, where they are legal then; a call that brings nothing new is the last."""
    late_tools: int = 0
    """`call_tool` steps after the first draft and before its first verdict, where the tool brings evidence."""
    verdict: Verdict = Verdict.CHECK
    failed_tool: Remedy = Remedy.REVISE
    redraft_problems: int = 0
    """From so many open problems on, a new draft instead of a revision; 0 is never."""
    redraft_score: float = 0.0
    """A new draft instead of a revision where the last check of this version scored below this."""
    rechecks: int = 0
    """Further checks of a version that a check found clean: a review misses faults."""
    confirm: Confirm = Confirm.NO
    """Before mending, where at most one check item failed: a review raises false alarms."""
    accept: bool = False
    """Submit where at most one check item failed, and it is the review or next to nothing."""
    last_revise: bool = True
    """Revise with one step left, when no verdict can follow."""

    def script(self, state: State, rules: LegalRules) -> Action:
        """The expert's action; total, since exploration may have put the episode into any state."""
        if state.artifact is None:
            return self._before_draft(state, rules)
        if self._wants_late_tool(state, rules):
            return Action.CALL_TOOL
        left = state.horizon - state.steps
        if (verdict := self._next_verdict(state, rules)) is not None:
            return verdict if left > 1 else Action.SUBMIT
        if _tool_failed(state) and self._judges_by_tool(rules):
            return self._after_failed_tool(state, left)
        if state.open_problems == 0:
            again = state.version_checked and state.stalled < self.rechecks and left > 2
            return Action.CHECK if again else Action.SUBMIT
        if _minor(state) and left > 2 and (again := self._second_opinion(state, rules)) is not None:
            return again
        if self.accept and _minor(state):
            return Action.SUBMIT
        return self._mend(state, left)

    def _second_opinion(self, state: State, rules: LegalRules) -> Action | None:
        if self.confirm is Confirm.NO:
            return None
        if self.confirm is Confirm.TOOL and rules.tool_needs is Needs.ARTIFACT:
            return None if state.version_tested else Action.CALL_TOOL
        return Action.CHECK if state.stalled == 0 else None

    def _before_draft(self, state: State, rules: LegalRules) -> Action:
        left = state.horizon - state.steps
        if left <= 1 or state.count(Action.DRAFT) > 0:
            return Action.DRAFT
        if state.count(Action.OBSERVE) < self.observes:
            return Action.OBSERVE
        if rules.offers_retrieve and state.count(Action.RETRIEVE) < self.retrieves:
            return Action.RETRIEVE
        fruitless = state.last_action is Action.CALL_TOOL and state.stalled > 0
        if state.count(Action.CALL_TOOL) < self.tools and not fruitless and legal_mask(rules, state)[Action.CALL_TOOL]:
            return Action.CALL_TOOL
        return Action.DRAFT

    def _wants_late_tool(self, state: State, rules: LegalRules) -> bool:
        first = state.version == 1 and not state.version_checked
        if not first or rules.tool_needs is Needs.ARTIFACT or not legal_mask(rules, state)[Action.CALL_TOOL]:
            return False
        fruitless = state.last_action is Action.CALL_TOOL and state.stalled > 0
        return not fruitless and state.count(Action.CALL_TOOL) < self.tools + self.late_tools

    def _judges_by_tool(self, rules: LegalRules) -> bool:
        return rules.tool_needs is Needs.ARTIFACT and self.verdict is not Verdict.CHECK

    def _next_verdict(self, state: State, rules: LegalRules) -> Action | None:
        """The verdict that the current version still lacks; None when it has one, or one found a problem."""
        pending = {
            Verdict.CHECK: (Action.CHECK,),
            Verdict.TOOL: (Action.CALL_TOOL,),
            Verdict.TOOL_CHECK: (Action.CALL_TOOL, Action.CHECK),
            Verdict.CHECK_TOOL: (Action.CHECK, Action.CALL_TOOL),
        }[self.verdict if rules.tool_needs is Needs.ARTIFACT else Verdict.CHECK]
        given = {Action.CHECK: state.version_checked, Action.CALL_TOOL: state.version_tested}
        for action in pending:
            if not given[action]:
                return action
            if state.open_problems > 0 or (action is Action.CALL_TOOL and _tool_failed(state)):
                return None
        return None

    def _after_failed_tool(self, state: State, left: int) -> Action:
        match self.failed_tool:
            case Remedy.REVISE:
                return self._mend(state, left)
            case Remedy.REDRAFT:
                return Action.DRAFT
            case Remedy.CHECK:
                if not state.version_checked and left > 2:
                    return Action.CHECK
                return self._mend(state, left) if state.open_problems > 0 else Action.DRAFT

    def _mend(self, state: State, left: int) -> Action:
        if left <= 1 and not self.last_revise:
            return Action.SUBMIT
        many = 0 < self.redraft_problems <= state.open_problems
        check = state.last_check
        poor = state.version_checked and check is not None and check.score < self.redraft_score
        return Action.DRAFT if many or poor else Action.REVISE


def _tool_failed(state: State) -> bool:
    return state.version_tested and state.last_tool is not None and state.last_tool.failed


def _minor(state: State) -> bool:
    check = state.last_check
    return state.version_checked and check is not None and check.total - check.passed <= 1


PLANS: Mapping[str, ExpertPlan] = {
    # The search over sources brings what a draft needs; a query, or the request itself, costs a step of mending.
    "knowledge_work": ExpertPlan(observes=0, retrieves=2),
    # All that is to be seen, since tests show symptoms only; the check after them reviews what they cannot reach; a
    # draft that fails two of them is written anew.
    "coding": ExpertPlan(observes=3, verdict=Verdict.TOOL_CHECK, redraft_problems=2, rechecks=1),
    # One document opened lets the check see whether a cited one holds the answer; more cost steps of mending.
    "research": ExpertPlan(observes=0, late_tools=1),
    # One result at hand lets the check trace figures; more cost steps of mending.
    "multi_tool": ExpertPlan(late_tools=1),
    # Eight hits rather than four: a session that no hit names is not found by mending.
    "long_memory": ExpertPlan(retrieves=2),
    # The what-if raises no false alarm, as the review of a right schedule does, and a lone revision seldom breaks one.
    "planning": ExpertPlan(verdict=Verdict.TOOL),
    # All or nothing: one fault left is worth nothing and a review misses half of them, so it is asked again until the
    # horizon; and once more before a right draft is touched.
    "tau_retail": ExpertPlan(rechecks=9, confirm=Confirm.CHECK),
    # All or nothing as well, with sample rows and matching values to write from.
    "dbbench": ExpertPlan(retrieves=2, rechecks=2),
}
"""By setting, as found by `experiments.expert_search` and by hand from there; the reasons are what the code of setting
and executor suggests for what was found."""


@dataclass(frozen=True)
class ExpertPolicy(ScriptPolicy):
    """An expert plan as a policy of one setting."""

    plan: ExpertPlan = ExpertPlan()

    @property
    def fingerprint(self) -> str:
        """Plan, setting and setting version."""
        return digest(["expert", 1, asdict(self.plan), self.setting, self.setting_version], 16)


def expert_policy(setting: Setting, plan: ExpertPlan) -> ExpertPolicy:
    """`plan` as a policy of `setting`."""
    return ExpertPolicy("expert", setting.name, setting.version, setting.rules, plan.script, plan)


def expert(setting: Setting) -> ExpertPolicy:
    """The expert of `setting`, with the plan of `PLANS`.

    Raises:
        ConfigError: nobody has written one down.
    """
    if setting.name not in PLANS:
        raise ConfigError(f"setting {setting.name} has no expert; expected one of {', '.join(PLANS)}")
    return expert_policy(setting, PLANS[setting.name])
