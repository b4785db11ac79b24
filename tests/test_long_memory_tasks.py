"""long_memory: generated logs, and questions whose answers an independent reading of the whole log confirms."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import canonical_json
from harness_mdp.scoring.rubric import rubric_value
from harness_mdp.settings.answers import says
from harness_mdp.settings.long_memory import LongMemory
from harness_mdp.settings.long_memory.reading import statements
from harness_mdp.settings.long_memory.search import rank
from harness_mdp.settings.long_memory.sessions import Log, excerpt, log_of, snippet
from harness_mdp.settings.long_memory.tasks import generate, queries_of
from harness_mdp.settings.long_memory.words import (
    ACTIVITIES,
    ASSISTANT_CHATTER,
    PEOPLE,
    ROLES,
    THINGS,
    TOPICS,
    USER_CHATTER,
)
from harness_mdp.settings.tasks import split_tasks
from tests.long_memory_oracle import solve

SETTING = LongMemory()
STORE = SETTING.tasks(seed=0, n=100, path=None)
KINDS = {"current", "previous", "as_of", "count", "chain", "latest_change", "whose"}


def score(task, text, store=STORE):
    return rubric_value(asyncio.run(SETTING.criteria(task, store.sealed[task.id], SETTING.parse(text))))


def test_100_tasks_of_seven_templates_and_three_difficulties():
    assert Counter(task.difficulty for task in STORE.tasks) == {"easy": 20, "standard": 60, "hard": 20}
    spread = defaultdict(set)
    for task in STORE.tasks:
        spread[task.template].add(task.difficulty)
        assert task.id.startswith(f"{task.difficulty}-")
    assert spread == {kind: {"easy", "standard", "hard"} for kind in KINDS}
    halves = split_tasks(STORE.tasks)
    assert {t.template for t in halves if t.split == "eval"} == {t.template for t in halves if t.split == "train"}


def test_other_numbers_of_tasks_keep_the_ratio():
    tasks = SETTING.tasks(seed=3, n=10, path=None).tasks
    assert Counter(task.difficulty for task in tasks) == {"easy": 2, "standard": 6, "hard": 2}


def test_the_same_seed_gives_the_same_tasks_and_the_same_logs_and_another_seed_others():
    again = generate.__wrapped__(0, 20)
    assert again.tasks == SETTING.tasks(seed=0, n=20, path=None).tasks
    assert again.sealed == SETTING.tasks(seed=0, n=20, path=None).sealed
    first = again.tasks[0]
    assert Log.read(first.public).sessions == log_of(first).sessions
    assert {t.hash for t in again.tasks}.isdisjoint(t.hash for t in SETTING.tasks(seed=1, n=20, path=None).tasks)


def test_no_two_tasks_share_log_question_and_answer():
    def key(task):
        texts = "".join(session.text for session in log_of(task).sessions)
        return canonical_json([texts, task.public["question"], STORE.sealed[task.id].values["answers"]])

    assert len({key(task) for task in STORE.tasks}) == 100


@pytest.mark.parametrize("seed", [0, 7])
def test_every_reference_follows_from_the_whole_log(seed):
    store = SETTING.tasks(seed=seed, n=100, path=None)
    for task in store.tasks:
        sessions = log_of(task).sessions
        for query, key in zip(task.public["queries"], store.sealed[task.id].values["answers"], strict=True):
            answer, numbers = solve(query, sessions)
            assert (key["answer"], set(key["sessions"])) == (answer, {f"S{n}" for n in numbers}), task.id
            assert set(key["dates"]) == {sessions[n - 1].date for n in numbers}
            assert all(date < task.public["asked_on"] for date in key["dates"])
            assert key["answer"] not in key["rivals"]


def test_a_harder_task_has_more_sessions_more_questions_and_more_that_misleads():
    measures = defaultdict(list)
    for task in STORE.tasks:
        sealed = STORE.sealed[task.id].values["answers"]
        slots = len(STORE.answers[task.id].text.slots)
        assert slots in (3, 6)
        rivals = sum(len(key["rivals"]) for key in sealed if not key["answer"].isdecimal())
        measures[task.difficulty].append((len(log_of(task)), slots, rivals))
    easy, standard, hard = (
        [sum(column) / len(column) for column in zip(*measures[name], strict=True)]
        for name in ("easy", "standard", "hard")
    )
    assert all(a < b < c for a, b, c in zip(easy, standard, hard, strict=True))


def test_logs_are_long_and_tasks_small():
    for task in STORE.tasks[::9]:
        log = log_of(task)
        assert 30 <= len(log) <= 60
        assert all(10 <= len(session.turns) <= 40 for session in log.sessions)
        assert [session.date for session in log.sessions] == sorted({session.date for session in log.sessions})
        assert sum(len(session.text) for session in log.sessions) > 30_000
        assert len(canonical_json(dict(task.public))) < 6_000


def test_chatter_names_no_thing_person_or_activity():
    chatter = " ".join((*USER_CHATTER, *ASSISTANT_CHATTER, *(word for words in TOPICS.values() for word in words)))
    assert statements(chatter) == ()
    for name in (*THINGS, *ROLES, *PEOPLE, *(a.split()[-1] for a in ACTIVITIES)):
        assert not says(chatter, name), name


def test_no_value_is_part_of_another():
    for thing, values in THINGS.items():
        assert not [(a, b) for a in values for b in values if a != b and says(a, b)], thing


def test_evidence_that_helps_a_slot_really_holds_what_it_needs():
    for task in STORE.tasks:
        sessions, question = log_of(task).sessions, task.public["question"]
        topics = {name for q in queries_of(task) for name in (q.thing, q.role, *q.options)}
        for slot in STORE.answers[task.id].text.slots:
            assert slot.helped_by
            for name in slot.helped_by if not slot.problem.startswith("the date") else ():
                session = sessions[int(name.removeprefix("hit-")[1:]) - 1]
                shown = snippet(session, question) if name.startswith("hit-") else excerpt(session, question)
                assert any(said.thing in topics for said in statements(shown)), (task.id, name, shown)


def test_opening_the_source_shows_the_answer():
    for task in STORE.tasks:
        for query, key in zip(queries_of(task), STORE.sealed[task.id].values["answers"], strict=True):
            for name in key["sessions"] if query.kind != "count" else ():
                session = log_of(task).sessions[int(name[1:]) - 1]
                assert says(excerpt(session, task.public["question"]), key["answer"]), (task.id, name)


def test_search_finds_most_sources_within_three_retrieves():
    ranks = [
        rank(task, query.text).index(int(key["sessions"][-1][1:]))
        for task in STORE.tasks
        for query, key in zip(queries_of(task), STORE.sealed[task.id].values["answers"], strict=True)
        if query.kind != "chain"
    ]
    assert sum(at < 12 for at in ranks) / len(ranks) > 0.85
    assert sum(at >= 4 for at in ranks) > 10, "some need more than one search"


def test_the_reference_scores_1_and_every_single_fault_less():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        right = [0] * len(text.slots)
        assert score(task, text.reply(right)) == 1.0
        for place, slot in enumerate(text.slots):
            for choice in range(1, len(slot.options)):
                choices = [*right[:place], choice, *right[place + 1 :]]
                assert score(task, text.reply(choices)) < 1.0
                assert SETTING.parse(text.reply(choices)) == text.render(choices)
                assert text.read(SETTING.parse(text.reply(choices))) == choices


def test_outdated_and_mistaken_answers_score_below_half_even_with_the_right_source():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        values = [int(place % 3 == 0) for place in range(len(text.slots))]
        assert score(task, text.reply(values)) == pytest.approx(0.4)
        assert score(task, text.reply([1] * len(text.slots))) == 0.0


def test_a_path_and_no_tasks_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no benchmark files"):
        SETTING.tasks(seed=0, n=10, path=tmp_path)
    with pytest.raises(ConfigError, match="at least 1"):
        SETTING.tasks(seed=0, n=0, path=None)
