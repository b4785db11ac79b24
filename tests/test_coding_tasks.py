"""The generated coding problems: right, different, hard as they say, and telling about every fault."""

import copy
import os
import subprocess
import sys
from collections import Counter

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import canonical_json, digest, generator
from harness_mdp.sandbox import same
from harness_mdp.settings.coding.setting import Coding
from harness_mdp.settings.coding.tasks import FAMILIES, HIDDEN, VISIBLE, single_faults
from tests.coding_oracle import solve

CODING = Coding()
STORE = CODING.tasks(seed=0, n=100, path=None)


def hidden(task, store=STORE):
    return store.sealed[task.id].values["hidden_tests"]


def share_passed(source, function, cases):
    """Runs our own texts in this process: the same verdict as the sandbox, a hundred times as fast."""
    scope = {}
    exec(source, scope)

    def passed(case):
        try:
            return same(case["expected"], scope[function](*copy.deepcopy(case["args"])))
        except Exception:  # noqa: BLE001  (a fault may fail in any way)
            return False

    return sum(map(passed, cases)) / len(cases)


def contents(store):
    parts = [[task.hash, store.sealed[task.id].values, store.answers[task.id].text.reference] for task in store.tasks]
    return digest(parts)


def test_twenty_easy_sixty_standard_twenty_hard():
    assert Counter(task.difficulty for task in STORE.tasks) == {"easy": 20, "standard": 60, "hard": 20}


def test_every_family_takes_part():
    assert len(FAMILIES) >= 12
    assert {task.template for task in STORE.tasks} == {family.name for family in FAMILIES}


def test_harder_problems_have_more_places_to_go_wrong():
    slots = {"easy": set(), "standard": set(), "hard": set()}
    for task in STORE.tasks:
        slots[task.difficulty].add(len(STORE.answers[task.id].text.slots))
    assert slots == {"easy": {3}, "standard": {4, 5}, "hard": {6, 7}}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_independent_implementation_agrees_with_every_expected_value(seed):
    """The oracle reads the public text only, so this shows too that the text says all there is to know."""
    store = CODING.tasks(seed=seed, n=100, path=None)
    for task in store.tasks:
        for case in [*task.public["visible_tests"], *hidden(task, store)]:
            got = solve(task.public, copy.deepcopy(case["args"]))
            assert same(case["expected"], got), (task.id, task.public, case, got)


def test_every_single_fault_lowers_the_score_of_every_task():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        assert share_passed(text.reference, task.template, hidden(task)) == 1.0
        for fault in single_faults(text):
            assert share_passed(fault, task.template, hidden(task)) < 1.0, (task.id, fault)


def test_visible_tests_catch_some_faults_and_not_all():
    caught = [
        share_passed(fault, task.template, task.public["visible_tests"]) < 1.0
        for task in STORE.tasks
        for fault in single_faults(STORE.answers[task.id].text)
    ]
    assert 0.5 < sum(caught) / len(caught) < 0.9


def test_faults_cost_more_when_there_are_more():
    rng = generator("test", "faults")
    means = []
    for wrong in (0, 1, 3):
        scores = []
        for task in STORE.tasks:
            text = STORE.answers[task.id].text
            choices = [0] * len(text.slots)
            for place in rng.permutation(len(text.slots))[:wrong]:
                choices[place] = 1
            scores.append(share_passed(text.render(choices), task.template, hidden(task)))
        means.append(sum(scores) / len(scores))
    assert means[0] == 1.0 > means[1] > means[2]


def test_a_reply_can_be_read_back_to_its_faults():
    rng = generator("test", "read")
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        choices = [int(rng.integers(len(slot.options))) for slot in text.slots]
        assert text.read(CODING.parse(text.reply(choices))) == choices, task.id


def test_every_fault_has_a_name_and_a_source_that_would_help():
    for answer in STORE.answers.values():
        for slot in answer.text.slots:
            assert slot.problem
            assert set(slot.helped_by) < {"statement", "examples", "edge_cases"}


def test_hidden_and_visible_tests_do_not_overlap():
    for task in STORE.tasks:
        visible = [canonical_json(case["args"]) for case in task.public["visible_tests"]]
        sealed = [canonical_json(case["args"]) for case in hidden(task)]
        assert (len(visible), len(sealed)) == (VISIBLE, HIDDEN)
        assert len({*visible, *sealed}) == VISIBLE + HIDDEN


def test_no_task_occurs_twice():
    for store in (STORE, CODING.tasks(seed=3, n=150, path=None)):
        texts = [(t.template, t.public["statement"], t.public["edge_cases"]) for t in store.tasks]
        assert len(set(texts)) == len(texts)
        assert len({task.hash for task in store.tasks}) == len(texts)


def test_another_seed_gives_other_tasks():
    assert contents(CODING.tasks(seed=1, n=20, path=None)) != contents(CODING.tasks(seed=2, n=20, path=None))


def test_the_same_seed_gives_the_same_tasks_in_other_processes():
    code = (
        "from harness_mdp.settings.coding.setting import Coding\n"
        "from harness_mdp.hashing import digest\n"
        "s = Coding().tasks(seed=0, n=100, path=None)\n"
        "print(digest([[t.hash, s.sealed[t.id].values, s.answers[t.id].text.reference] for t in s.tasks]))"
    )
    prints = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert prints == [contents(STORE)] * 2


@pytest.mark.parametrize("n", [1, 5, 10, 33])
def test_other_numbers_of_tasks_keep_the_shares(n):
    counts = Counter(task.difficulty for task in CODING.tasks(seed=0, n=n, path=None).tasks)
    assert sum(counts.values()) == n
    assert counts["easy"] == counts["hard"] == round(n / 5)


def test_a_path_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no benchmark files.*leave setting.path out"):
        CODING.tasks(seed=0, n=100, path=tmp_path)


def test_fewer_than_one_task_is_refused():
    with pytest.raises(ConfigError, match="expected at least 1"):
        CODING.tasks(seed=0, n=0, path=None)
