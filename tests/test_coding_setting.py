"""How an episode of `coding` goes: what is seen when, what tool, check and rubric say, and what stays sealed."""

import asyncio
import json
import re

import numpy as np
import pytest

from harness_mdp.executors.protocol import Completion, Purpose
from harness_mdp.hashing import canonical_json
from harness_mdp.mdp import Action, Status, advance, legal_mask, start
from harness_mdp.settings import open_setting
from harness_mdp.settings.acting import act
from harness_mdp.settings.coding.setting import Coding
from harness_mdp.settings.coding.tasks import single_faults
from harness_mdp.settings.prompts import Unparsable, bracketed_ids, read_sections
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import decision_point
from harness_mdp.settings.tasks import Sealed

CODING = Coding()
STORE = CODING.tasks(seed=0, n=100, path=None)
TASK = STORE.tasks[-1]
TEXT = STORE.answers[TASK.id].text
RIGHT = [0] * len(TEXT.slots)


class Episode:
    """Carries out actions with an executor whose replies are given in advance; keeps every prompt."""

    def __init__(self, *replies, task=TASK, setting=CODING):
        self.setting, self.workspace = setting, Workspace(task)
        self.replies, self.prompts = list(replies), []
        self.state = start(setting.horizon, setting.budgets)

    async def ask(self, purpose, messages):
        self.prompts.append((purpose, messages))
        return Completion(self.replies.pop(0), 1, 1, None, 0.0, "stop", "fixed")

    def act(self, action):
        event = asyncio.run(act(self.setting, action, self.workspace, self.ask))
        self.state = advance(self.state, event)
        return event

    def flags(self):
        return dict(zip(self.setting.schema.flags, self.setting.flags(self.state), strict=True))


def score(task, source, store=STORE):
    (criterion,) = asyncio.run(CODING.criteria(task, store.sealed[task.id], source))
    assert (criterion.id, criterion.weight) == ("hidden_tests", 1.0)
    return criterion.score


def test_the_setting_is_found_by_name():
    assert isinstance(open_setting("coding"), Coding)


def test_observe_brings_statement_examples_and_edge_cases_then_nothing():
    episode = Episode()
    brought = [episode.act(Action.OBSERVE).evidence for _ in range(4)]
    assert brought == [("statement",), ("examples",), ("edge_cases",), ()]
    assert episode.workspace.evidence["statement"] == TASK.public["statement"]
    assert episode.workspace.evidence["edge_cases"] == TASK.public["edge_cases"]
    assert episode.workspace.evidence["examples"].count(" -> ") == 3


def test_examples_are_python_that_holds():
    scope = {}
    exec(TEXT.reference, scope)
    episode = Episode()
    for _ in range(2):
        episode.act(Action.OBSERVE)
    for line in episode.workspace.evidence["examples"].splitlines():
        call, _, expected = line.partition(" -> ")
        assert eval(call, scope) == pytest.approx(eval(expected))


def test_legal_actions_follow_the_table():
    episode = Episode(TEXT.reply(RIGHT))

    def legal():
        return {Action(i).label for i in np.flatnonzero(legal_mask(CODING.rules, episode.state))}

    assert legal() == {"observe", "draft"}
    episode.act(Action.DRAFT)
    assert legal() == {"observe", "draft", "call_tool", "check", "revise", "submit"}


def test_the_reference_passes_everything_in_the_real_sandbox():
    async def main():
        return await asyncio.gather(
            *(CODING.criteria(t, STORE.sealed[t.id], STORE.answers[t.id].text.reference) for t in STORE.tasks)
        )

    assert all(criteria[0].score == 1.0 for criteria in asyncio.run(main()))


@pytest.mark.parametrize("task", STORE.tasks[::12], ids=lambda task: task.id)
def test_a_fault_scores_below_one_in_the_real_sandbox(task):
    faults = single_faults(STORE.answers[task.id].text)
    assert score(task, faults[0]) < 1.0
    assert score(task, faults[-1]) < 1.0


def test_texts_that_do_not_try_score_low():
    signature = TASK.public["signature"]
    assert score(TASK, "") == 0.0
    assert score(TASK, "no code at all") == 0.0
    assert score(TASK, f"{signature}\n    pass") < 0.3
    assert score(TASK, TEXT.render([1] * len(RIGHT))) < 0.7


def test_answers_learned_by_heart_from_the_examples_score_low():
    for task in STORE.tasks[::25]:
        table = {json.dumps(case["args"]): case["expected"] for case in task.public["visible_tests"]}
        name = task.public["function"]
        source = f"import json\ndef {name}(*args):\n    return {table!r}[str(list(args)).replace(chr(39), chr(34))]"
        assert score(task, source) < 0.3


SEARCH = """\
    import gc, re, sys
    seen, frame = sys.argv + [o for o in gc.get_objects() if isinstance(o, str)], sys._getframe()
    while frame:
        seen += [repr(frame.f_locals), repr(frame.f_globals)]
        frame = frame.f_back
    found = re.search("EXPECTED" + "-[0-9]+", " ".join(seen))
    return found and found[0]
"""


def test_code_that_searches_its_process_finds_no_expected_value():
    told = {"args": ["EXPECTED-1"], "expected": "EXPECTED-1"}
    secret = Sealed({"hidden_tests": [{"args": [1], "expected": "EXPECTED-4711"}, told]})
    source = f"def {TASK.public['function']}(x):\n{SEARCH}"
    (criterion,) = asyncio.run(CODING.criteria(TASK, secret, source))
    assert criterion.score == 0.5  # it finds what is among the inputs, so it would have found the other one


def test_the_tool_runs_the_visible_tests_and_names_what_failed():
    fault = next(
        choices
        for choices in ([int(i == place) for i in range(len(RIGHT))] for place in range(len(RIGHT)))
        if _visible_failures(choices)
    )
    episode = Episode(TEXT.reply(fault), TEXT.reply(RIGHT))
    episode.act(Action.DRAFT)
    tool = episode.act(Action.CALL_TOOL).tool
    assert (tool.name, tool.valid, tool.ok, tool.version, tool.total) == ("visible_tests", True, True, 1, 3)
    assert tool.passed == 3 - len(tool.problems) < 3
    for problem in tool.problems:
        assert re.match(rf"{TASK.public['function']}\(.*\) (returned|failed with) .*, expected ", problem)
    assert episode.workspace.problems == tool.problems
    assert episode.flags() == {
        "tests_run": True,
        "tests_failing": True,
        "tested_current": True,
        "check_named_problems": False,
    }
    episode.act(Action.REVISE)
    assert episode.flags() == {
        "tests_run": True,
        "tests_failing": False,
        "tested_current": False,
        "check_named_problems": False,
    }
    assert not episode.act(Action.CALL_TOOL).tool.failed


def _visible_failures(choices):
    episode = Episode(TEXT.reply(choices))
    episode.act(Action.DRAFT)
    return episode.act(Action.CALL_TOOL).tool.problems


def test_a_check_compiles_lints_and_asks_for_a_review():
    episode = Episode(TEXT.reply(RIGHT), "OK", "```python\ndef wrong(x) return\n```", "- it is wrong")
    episode.act(Action.DRAFT)
    good = episode.act(Action.CHECK).check
    assert (good.score, good.problems, good.total) == (1.0, (), 7)
    assert not episode.flags()["check_named_problems"]
    episode.act(Action.DRAFT)
    bad = episode.act(Action.CHECK).check
    assert bad.score == 0.0
    assert len(bad.problems) == 2
    assert bad.problems[1] == "it is wrong"
    assert episode.flags()["check_named_problems"]


def test_prompts_hold_only_what_is_at_hand():
    episode = Episode(TEXT.reply(RIGHT), "- line 3 is wrong", TEXT.reply(RIGHT))
    episode.act(Action.DRAFT)
    episode.act(Action.OBSERVE)
    episode.act(Action.CALL_TOOL)
    episode.act(Action.CHECK)
    episode.act(Action.REVISE)
    draft, check, revise = [(purpose, read_sections(messages)) for purpose, messages in episode.prompts]
    assert (draft[0], set(draft[1])) == (Purpose.DRAFT, {"Task", "Instructions"})
    assert (check[0], set(check[1])) == (
        Purpose.CHECK,
        {"Task", "Evidence", "Tool results", "Draft", "Instructions"},
    )
    assert (revise[0], set(revise[1])) == (Purpose.REVISE, {*check[1], "Problems"})
    assert bracketed_ids(revise[1]["Evidence"]) == ("statement",)
    assert bracketed_ids(revise[1]["Tool results"]) == ("tool1",)
    assert revise[1]["Problems"] == "- line 3 is wrong"
    assert TEXT.read(revise[1]["Draft"]) == RIGHT


def test_prompts_are_short_enough_for_a_small_model():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        episode = Episode(text.reply([1] * len(text.slots)), text.reply([0] * len(text.slots)), task=task)
        for action in (Action.OBSERVE, Action.OBSERVE, Action.OBSERVE, Action.DRAFT):
            episode.act(action)
        messages = CODING.messages(Purpose.REVISE, episode.workspace)
        assert sum(len(message.content) for message in messages) < 4000


def test_nothing_sealed_is_in_the_public_part_or_in_any_prompt():
    for task in STORE.tasks:
        answer, values = STORE.answers[task.id], STORE.sealed[task.id].values
        wrong = answer.text.reply([1] * len(answer.text.slots))
        episode = Episode(wrong, "- something", wrong, task=task)
        actions = [Action.OBSERVE] * 3 + [Action.DRAFT, Action.CHECK, Action.REVISE]
        for action in actions:
            episode.act(action)
        seen = [message.content for _, messages in episode.prompts for message in messages]
        seen.append(canonical_json(dict(task.public)))
        public = {canonical_json(case["args"]) for case in task.public["visible_tests"]}
        for text in seen:
            assert values["reference"] not in text
            for case in values["hidden_tests"]:
                assert canonical_json(case["args"]) not in public
                if len(canonical_json(case["args"])) > 12:  # shorter ones, as [[]], are no secret
                    assert f"{case['args']!r}"[1:-1] not in text


def test_changing_every_sealed_value_changes_returns_only():
    """The same actions and replies in front of other hidden tests: events and prompts stay the same."""
    wrong = TEXT.reply([1] * len(RIGHT))
    episode = Episode(wrong, "OK", wrong)
    events = [episode.act(a) for a in (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.CHECK, Action.REVISE)]
    assert all(event.status is Status.OK for event in events)
    other = Sealed({"reference": "", "hidden_tests": [{"args": [1], "expected": "other"}]})
    (criterion,) = asyncio.run(CODING.criteria(TASK, other, episode.workspace.artifact))
    assert criterion.score == 0.0
    again = Episode(wrong, "OK", wrong)
    assert [
        again.act(a) for a in (Action.OBSERVE, Action.DRAFT, Action.CALL_TOOL, Action.CHECK, Action.REVISE)
    ] == events
    assert again.prompts == episode.prompts


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ("```python\ndef f(x):\n    return x\n```", "def f(x):\n    return x"),
        ("Here it is:\n```\ndef f(x):\n    return x\n```\nIt adds.", "def f(x):\n    return x"),
        ("```python\nimport math\n\ndef f(x):\n    return x", "import math\n\ndef f(x):\n    return x"),
        ("def f(x):\n    return x", "def f(x):\n    return x"),
    ],
)
def test_code_is_read_from_replies_as_models_write_them(reply, source):
    assert CODING.parse(reply) == source


@pytest.mark.parametrize("reply", ["", "   ", "I cannot do that.", "```python\nx = 1\n```", "The default is 3."])
def test_a_reply_without_a_function_is_an_error_step_that_changes_nothing(reply):
    with pytest.raises(Unparsable):
        CODING.parse(reply)
    episode = Episode(TEXT.reply(RIGHT), reply)
    episode.act(Action.DRAFT)
    event = episode.act(Action.REVISE)
    assert (event.status, event.error) == (Status.ERROR, "parse")
    assert episode.workspace.artifact == TEXT.reference
    assert episode.workspace.version == 1


def test_code_makes_no_claims():
    episode = Episode(TEXT.reply(RIGHT))
    episode.act(Action.DRAFT)
    assert CODING.claims(episode.workspace) == ()
    assert episode.state.claims == ()


@pytest.mark.parametrize("name", sorted(CODING.scripts))
def test_every_script_ends_in_a_submission(name):
    episode = Episode(*[TEXT.reply(RIGHT), *["OK", TEXT.reply(RIGHT)] * 4])
    taken = []
    while Action.SUBMIT not in taken:
        point = decision_point(CODING, episode.state)
        action = CODING.scripts[name](episode.state, CODING.rules)
        assert point.mask[action]
        episode.act(action)
        taken.append(action)
        assert len(taken) <= CODING.horizon
    expected = {
        "base": "observe draft submit",
        "forced_check": "observe draft check submit",
        "check_revise": "observe draft check submit",
        "tool_first": "observe draft call_tool submit",
        "more_evidence": "observe observe observe draft submit",
    }
    assert " ".join(action.label for action in taken) == expected[name]
