"""What every rubric owes: 1 for the reference, less for each fault, 0 for nothing, and no eye for style.

The settings' own tests try every fault of every task; here a sample goes through the scorer, in each setting alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

import pytest

from harness_mdp.mdp import EvalStatus
from harness_mdp.scoring.rubric import RubricScore, Scorer
from harness_mdp.settings.slots import SlottedText
from harness_mdp.settings.tasks import Task
from tests.runs import SETTING_NAMES, opened

every_setting = pytest.mark.parametrize("name", SETTING_NAMES)
STRIDE = 9  # of 100 tasks in order of difficulty: 2 easy, 7 standard, 3 hard, of most templates


def sample(name: str) -> list[tuple[Task, SlottedText]]:
    _, store = opened(name)
    return [(task, store.answers[task.id].text) for task in store.tasks[::STRIDE]]


def scores(name: str, drafts: Sequence[tuple[Task, str | None]]) -> list[RubricScore]:
    """One score per draft, as an episode gets it."""
    setting, store = opened(name)
    scorer = Scorer(setting, store.sealed)

    async def all_of_them() -> list[RubricScore]:
        room = asyncio.Semaphore(4)

        async def one(task: Task, draft: str | None) -> RubricScore:
            async with room:
                return await scorer.score(task, draft)

        return await asyncio.gather(*(one(task, draft) for task, draft in drafts))

    return asyncio.run(all_of_them())


def reference(name: str, text: SlottedText) -> str:
    return opened(name)[0].parse(text.reply([0] * len(text.slots)))


def single_faults(text: SlottedText) -> list[list[int]]:
    n = len(text.slots)
    return [
        [option if place == at else 0 for place in range(n)]
        for at, slot in enumerate(text.slots)
        for option in range(1, len(slot.options))
    ]


@every_setting
def test_the_reference_scores_one_and_every_single_fault_less(name):
    parse = opened(name)[0].parse
    drafts = [[(task, parse(text.reply(wrong))) for wrong in single_faults(text)] for task, text in sample(name)]
    references = [(task, reference(name, text)) for task, text in sample(name)]
    assert {(s.eval_status, s.value) for s in scores(name, references)} == {(EvalStatus.SCORED, 1.0)}
    faulty = list(chain.from_iterable(drafts))
    for (task, draft), score in zip(faulty, scores(name, faulty), strict=True):
        assert score.eval_status is EvalStatus.SCORED
        assert score.value < 1.0, (task.id, draft)


@every_setting
def test_a_draft_with_every_slot_wrong_scores_below_a_half(name):
    parse = opened(name)[0].parse
    drafts = [
        (task, parse(text.reply([pick % len(slot.wrong) + 1 for slot in text.slots])))
        for task, text in sample(name)
        for pick in (0, 1)
    ]
    high = [
        (task.id, draft)
        for (task, draft), score in zip(drafts, scores(name, drafts), strict=True)
        if score.value >= 0.5
    ]
    # Two wrongs can make a right, as two negations do in SQL.
    assert len(high) <= 0.05 * len(drafts), high


@every_setting
@pytest.mark.parametrize("draft", [None, "", " \n\t\r\n"])
def test_nothing_is_invalid_and_scores_zero(name, draft):
    drafts = [(task, draft) for task, _ in sample(name)]
    assert {(s.eval_status, s.value, s.criteria) for s in scores(name, drafts)} == {(EvalStatus.INVALID, 0.0, ())}


@every_setting
def test_the_rubric_is_blind_to_blank_space_and_line_ends_around_a_reply(name):
    parse = opened(name)[0].parse
    replies = [(task, text.reply([0] * len(text.slots))) for task, text in sample(name)[::3]]
    drafts = [
        (task, parse(styled))
        for task, reply in replies
        for styled in (f"\n\n \n{reply}", f"{reply}  \n\n\t\n", f" \n{reply}\n ", reply.replace("\n", "\r\n"))
    ]
    assert {score.value for score in scores(name, drafts)} == {1.0}
