"""The generator of `planning`: mix, determinism, difficulty, optima and faults, against an independent computation."""

import subprocess
import sys
from collections import Counter
from itertools import pairwise

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.hashing import canonical_json, digest
from harness_mdp.scoring.rubric import rubric_value
from harness_mdp.settings.planning import Planning
from harness_mdp.settings.planning.draft import parse_schedule
from harness_mdp.settings.planning.instance import Instance, Order
from harness_mdp.settings.planning.optimum import shortest
from harness_mdp.settings.planning.scoring import grade, quality
from harness_mdp.settings.planning.tasks import generate, lazy_schedules
from harness_mdp.settings.tasks import split_tasks
from tests.planning_oracle import ends_by, feasible, length, optimum, starts_of

PLANNING = Planning()
STORE = PLANNING.tasks(seed=0, n=100, path=None)


def sealed(task):
    return STORE.sealed[task.id].values


def text(task):
    return STORE.answers[task.id].text


def content(store):
    tasks = [[t.id, t.template, t.difficulty, dict(t.public)] for t in store.tasks]
    return canonical_json([tasks, {i: dict(s.values) for i, s in store.sealed.items()}, [repr(store.answers)]])


def single_faults(task):
    """(slot, wrong text) for every single wrong choice."""
    slots = text(task).slots
    for place, slot in enumerate(slots):
        for wrong in range(1, len(slot.options)):
            yield slot, [wrong if i == place else 0 for i in range(len(slots))]


def test_a_hundred_tasks_are_a_fifth_easy_and_a_fifth_hard_over_seven_templates():
    assert Counter(task.difficulty for task in STORE.tasks) == {"easy": 20, "standard": 60, "hard": 20}
    assert len({task.template for task in STORE.tasks}) == 7
    assert Counter(task.difficulty for task in generate(3, 10).tasks) == {"easy": 2, "standard": 6, "hard": 2}
    assert STORE.tasks[37].id == "standard-037"


def test_every_template_is_there_for_training_and_for_evaluation():
    tasks = split_tasks(STORE.tasks, by="task")
    for split in ("train", "eval"):
        assert len({task.template for task in tasks if task.split == split}) == 7
    assert sum(task.split == "eval" for task in tasks) == 20


def test_the_same_seed_gives_the_same_bytes_in_another_process_and_another_seed_others():
    code = "from tests.test_planning_tasks import *; print(digest([content(generate(7, 20))]))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "5"}
    )
    assert out.stdout.strip() == digest([content(generate(7, 20))])
    assert content(generate(8, 20)) != content(generate(7, 20))


def test_no_two_tasks_are_the_same_problem():
    problems = {canonical_json({k: v for k, v in task.public.items() if k != "title"}) for task in STORE.tasks}
    assert len(problems) == 100


def test_a_harder_task_has_more_to_plan_and_more_places_to_go_wrong():
    def mean(difficulty, count):
        chosen = [task for task in STORE.tasks if task.difficulty == difficulty]
        return sum(map(count, chosen)) / len(chosen)

    for count in (
        lambda task: len(task.public["durations"]),
        lambda task: len(task.public["orders"]),
        lambda task: len(text(task).slots),
        lambda task: sealed(task)["optimum"],
    ):
        easy, standard, hard = (mean(difficulty, count) for difficulty in ("easy", "standard", "hard"))
        assert easy < standard < hard
    assert all(3 <= len(text(task).slots) <= 8 for task in STORE.tasks)


def test_every_reference_keeps_all_rules_and_has_the_sealed_makespan():
    for task in STORE.tasks:
        plan = starts_of(sealed(task)["reference"])
        assert feasible(task.public, plan), task.id
        assert length(task.public, plan) == sealed(task)["optimum"], task.id
        assert text(task).reference == sealed(task)["reference"]


def few_ways(task):
    """Small enough to try every sequence on every machine in well under a second."""
    public = task.public
    return len(public["durations"]) <= 6 or all(len(able) == 1 for able in public["machines"].values())


@pytest.mark.parametrize("difficulty", ["easy", "standard", "hard"])
def test_nothing_is_shorter_than_the_optimum_by_trying_everything(difficulty):
    tried = [task for task in STORE.tasks if task.difficulty == difficulty and few_ways(task)]
    assert len({task.template for task in tried}) >= 5
    for task in tried:
        assert not ends_by(task.public, sealed(task)["optimum"] - 1), task.id


HAND_MADE = [
    ("two after each other", Instance({"A": 2, "B": 3}, (Order("B", "A", 1),)), 6),
    ("two on one machine", Instance({"A": 2, "B": 3}, machines={"A": ("M1",), "B": ("M1",)}), 5),
    ("two on two machines", Instance({"A": 2, "B": 3}, machines=dict.fromkeys("AB", ("M1", "M2"))), 3),
    ("three on two machines", Instance(dict.fromkeys("ABC", 2), machines=dict.fromkeys("ABC", ("M1", "M2"))), 4),
    ("crew of 3", Instance(dict.fromkeys("ABC", 2), crew=3, needs={"A": 2, "B": 2, "C": 1}), 4),
    ("release", Instance({"A": 2, "B": 3}, releases={"A": 4}), 6),
    (
        "a deadline that forces the longer way round",
        Instance(
            {"A": 2, "B": 1, "C": 3},
            (Order("A", "C"),),
            {"A": ("M1",), "B": ("M1",), "C": ("M2",)},
            deadlines={"B": 1},
        ),
        6,
    ),
]


@pytest.mark.parametrize(("why", "instance", "expected"), HAND_MADE, ids=[case[0] for case in HAND_MADE])
def test_the_optimum_of_small_problems_is_what_a_person_would_say(why, instance, expected):
    found = shortest(instance, 12)
    assert found.makespan == expected == optimum(instance.public(), 12)
    assert shortest(instance, expected - 1) is None
    assert quality(instance, found.entries, expected) == 1.0


def test_a_problem_without_a_solution_has_no_optimum():
    assert shortest(Instance({"A": 3}, releases={"A": 2}, deadlines={"A": 4}), 9) is None
    assert shortest(Instance({"A": 1, "B": 1}, (Order("A", "B"), Order("B", "A"))), 9) is None
    assert shortest(Instance({"A": 2}, crew=1, needs={"A": 2}), 9) is None


def test_in_a_reference_no_task_can_start_earlier_while_the_others_stay():
    for task in STORE.tasks[::7]:
        plan = starts_of(sealed(task)["reference"])
        for name, (start, machine) in plan.items():
            for earlier in range(start):
                assert not feasible(task.public, {**plan, name: (earlier, machine)}), (task.id, name)


def test_every_single_wrong_choice_lowers_the_score_and_every_right_one_scores_one():
    for task in STORE.tasks:
        instance, best = Instance.read(task.public), sealed(task)["optimum"]
        assert rubric_value(grade(instance, parse_schedule(text(task).reference), best)) == 1.0
        for slot, choices in single_faults(task):
            score = quality(instance, parse_schedule(text(task).render(choices)), best)
            assert score < 1.0, (task.id, slot)


def test_a_fault_lowers_the_score_because_a_rule_breaks_or_the_schedule_gets_longer():
    """The same verdict from the independent computation."""
    kinds = Counter()
    for task in STORE.tasks[::5]:
        for slot, choices in single_faults(task):
            plan = starts_of(text(task).render(choices))
            broken = not feasible(task.public, plan)
            assert broken or length(task.public, plan) > sealed(task)["optimum"], (task.id, slot)
            kinds["broken" if broken else "longer"] += 1
            kinds["machine" if slot.correct.startswith(("M", "W")) else "start"] += 1
    assert min(kinds["broken"], kinds["longer"], kinds["machine"], kinds["start"]) > 0


def test_slots_are_helped_by_the_evidence_that_names_their_task():
    for task in STORE.tasks[::3]:
        public = task.public
        for slot in text(task).slots:
            name = slot.problem.split()[0]
            if "machine" in slot.problem:
                assert slot.helped_by == ("durations", "machines")
                continue
            binds = {
                "durations": True,
                "order": any(name in order[:2] for order in public["orders"]),
                "machines": name in public["machines"] or bool(public["needs"].get(name)),
                "times": name in public["releases"] or name in public["deadlines"],
            }
            assert slot.helped_by == tuple(piece for piece, does in binds.items() if does), (task.id, slot)


def test_the_simulator_reads_its_own_drafts_back():
    for task in STORE.tasks:
        reference = text(task)
        for _, choices in single_faults(task):
            parsed = PLANNING.parse(reference.reply(choices))
            assert parsed == reference.render(choices)
            assert reference.read(parsed) == choices


def test_lazy_schedules_score_below_a_half():
    for task in STORE.tasks:
        instance = Instance.read(task.public)
        for lazy in lazy_schedules(instance):
            assert quality(instance, lazy, sealed(task)["optimum"]) < 0.5, task.id


def test_the_alphabet_does_not_tell_the_order_of_the_work():
    forward = [before < after for task in STORE.tasks for before, after, _ in task.public["orders"]]
    assert 0.4 < sum(forward) / len(forward) < 0.6


def test_rules_contain_no_cycle_and_nothing_that_cannot_be():
    for task in STORE.tasks:
        public = task.public
        names = set(public["durations"])
        assert names == {chr(ord("A") + i) for i in range(len(names))}
        for key in ("machines", "needs", "releases", "deadlines"):
            assert set(public[key]) <= names
        assert all(need <= public["crew"] for need in public["needs"].values())
        assert all(first != second for first, second in pairwise(sorted(map(tuple, public["orders"]))))


def test_an_impossible_number_of_tasks_or_a_path_is_refused_in_plain_words(tmp_path):
    with pytest.raises(ConfigError, match="0 tasks were asked of setting planning"):
        PLANNING.tasks(seed=0, n=0, path=None)
    with pytest.raises(ConfigError, match="no benchmark files"):
        PLANNING.tasks(seed=0, n=5, path=tmp_path)
