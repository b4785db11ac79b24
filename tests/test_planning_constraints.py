"""The validator and the what-if of planning, by example and against an independent computation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.settings.planning import Planning
from harness_mdp.settings.planning.constraints import verdicts
from harness_mdp.settings.planning.draft import parse_schedule
from harness_mdp.settings.planning.instance import Entry, Instance, Order
from harness_mdp.settings.planning.whatif import what_if
from tests.planning_oracle import feasible, starts_of

STORE = Planning().tasks(seed=0, n=100, path=None)

SHOP = Instance(
    {"A": 3, "B": 2, "C": 2, "D": 1},
    (Order("A", "B"), Order("B", "C", 1)),
    {"A": ("M1",), "B": ("M1", "M2"), "D": ("M2",)},
    releases={"D": 2},
    deadlines={"C": 9},
)
CREW = Instance({"A": 3, "B": 2, "C": 2}, crew=3, needs={"A": 2, "B": 1, "C": 2})
GOOD = {"A": (0, "M1"), "B": (3, "M1"), "C": (6, ""), "D": (2, "M2")}


def entries(plan):
    return [Entry(task, start, machine) for task, (start, machine) in plan.items()]


def broken(instance, plan):
    return {v.id: v.problem for v in verdicts(instance, entries(plan)) if not v.kept}


def test_every_stated_constraint_is_one_item():
    assert [v.id for v in verdicts(SHOP, entries(GOOD))] == [
        "tasks",
        "order:A>B",
        "order:B>C",
        "machine_choice",
        "machine:M1",
        "machine:M2",
        "release:D",
        "deadline:C",
    ]
    assert broken(SHOP, GOOD) == {}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"B": (2, "M2"), "D": (5, "M2")}, {"order:A>B": "B starts at 2, before A ends at 3"}),
        ({"C": (5, "")}, {"order:B>C": "C starts at 5, before B ends at 5 and a wait of 1"}),
        ({"D": (3, "M2"), "B": (3, "M2")}, {"machine:M2": "B and D overlap on M2 at 3"}),
        ({"D": (1, "M2")}, {"release:D": "D starts at 1, but cannot start before 2"}),
        ({"C": (8, "")}, {"deadline:C": "C ends at 10, after its deadline 9"}),
        ({"A": (0, "M2")}, {"machine_choice": "A is on M2; it can use M1"}),
        (
            {"B": (3, "")},
            {
                "machine_choice": "B names no machine; it can use M1 or M2",
                "machine:M1": "B names no machine",
                "machine:M2": "B names no machine",
            },
        ),
        ({"A": (-1, "M1")}, {"tasks": "A starts before 0"}),
        ({"X": (0, "")}, {"tasks": "X is no task here"}),
    ],
)
def test_what_is_broken_is_named(change, expected):
    assert broken(SHOP, {**GOOD, **change}) == expected


def test_a_machine_need_not_be_named_where_there_is_no_choice():
    assert broken(SHOP, {**GOOD, "A": (0, ""), "D": (2, "")}) == {}


def test_a_crew_is_never_larger_than_it_is():
    assert broken(CREW, {"A": (0, ""), "B": (0, ""), "C": (3, "")}) == {}
    assert broken(CREW, {"A": (0, ""), "B": (0, ""), "C": (2, "")}) == {
        "crew": "at 2 A, C need 4 people, 3 are there",
    }


def test_a_start_between_two_whole_numbers_breaks_the_rule_for_starts():
    assert broken(SHOP, {**GOOD, "C": (6.5, "")}) == {"tasks": "C starts at 6.5, which is no whole number"}
    found = what_if(SHOP, entries({**GOOD, "C": (6.5, "")})).problems
    assert found == ("C starts at the wrong time", "C starts at 6.5, which is no whole number")
    assert broken(SHOP, {**GOOD, "B": (2.5, "M2"), "D": (5, "M2")}) == {
        "tasks": "B starts at 2.5, which is no whole number",
        "order:A>B": "B starts at 2.5, before A ends at 3",
    }


@pytest.mark.parametrize("plan", [{k: v for k, v in GOOD.items() if k != "B"}, {}])
def test_what_is_missing_breaks_every_rule_that_binds_it(plan):
    found = broken(SHOP, plan)
    assert {"tasks", "order:A>B", "order:B>C", "machine_choice", "machine:M1", "machine:M2"} <= set(found)
    assert "B is not planned once" in found["tasks"] or not plan


def test_a_task_planned_twice_counts_as_missing():
    twice = [*entries(GOOD), Entry("A", 20, "M1")]
    problems = {v.id: v.problem for v in verdicts(SHOP, twice) if not v.kept}
    assert problems["tasks"] == problems["order:A>B"] == "A is not planned once"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_validator_agrees_with_counting_minute_by_minute(data):
    """Near-miss schedules of generated problems: reference starts moved a little, machines swapped."""
    task = data.draw(st.sampled_from(STORE.tasks))
    instance = Instance.read(task.public)
    plan = starts_of(STORE.sealed[task.id].values["reference"])
    for name in data.draw(st.lists(st.sampled_from(instance.tasks), max_size=3)):
        start, machine = plan[name]
        moved = max(0, start + data.draw(st.integers(-3, 3)))
        plan[name] = (moved, data.draw(st.sampled_from(instance.machine_names)) if machine else "")
    found = broken(instance, plan)
    assert (not found) == feasible(task.public, plan), found


def test_a_problem_survives_its_public_form():
    for task in STORE.tasks:
        instance = Instance.read(task.public)
        assert {"title": task.public["title"], **instance.public()} == dict(task.public)
        assert Instance.read(instance.public()) == instance


@pytest.mark.parametrize(
    ("instance", "plan", "problems"),
    [
        (SHOP, GOOD, ()),
        (
            SHOP,
            {**GOOD, "B": (2, "M2"), "D": (4, "M2")},  # the first step in time that breaks a rule
            ("B starts at the wrong time", "B starts at 2, before A ends at 3"),
        ),
        (
            SHOP,
            {**GOOD, "B": (2, "M2"), "D": (4, "M2"), "C": (4, "")},  # only one step is reported
            ("B starts at the wrong time", "B starts at 2, before A ends at 3"),
        ),
        (
            SHOP,
            {**GOOD, "A": (0, "M2")},
            ("A is on the wrong machine", "A is on M2; it can use M1"),
        ),
        (
            SHOP,
            {**GOOD, "C": (7, "")},  # feasible, later than needed
            ("C starts at the wrong time", "C could start at 6, 1 earlier"),
        ),
        (
            CREW,
            {"A": (0, ""), "B": (1, ""), "C": (2, "")},
            ("C starts at the wrong time", "at 2 A, B, C need 5 people, 3 are there"),
        ),
        (SHOP, {**GOOD, "X": (0, "")}, ("X is no task here",)),
    ],
)
def test_what_if_reports_one_step(instance, plan, problems):
    found = what_if(instance, entries(plan))
    assert found.problems == problems
    assert found.text.startswith("What if")
    for problem in problems[1:]:
        assert problem in found.text


def test_a_missing_task_does_not_stop_the_what_if():
    plan = {name: place for name, place in GOOD.items() if name != "C"}
    assert what_if(SHOP, entries(plan)).problems == ()


def test_references_pass_the_what_if():
    for task in STORE.tasks:
        reference = parse_schedule(STORE.sealed[task.id].values["reference"])
        assert what_if(Instance.read(task.public), reference).problems == (), task.id


def test_a_rule_is_broken_exactly_when_the_what_if_says_so():
    for task in STORE.tasks[::4]:
        instance, text = Instance.read(task.public), STORE.answers[task.id].text
        for place in range(len(text.slots)):
            plan = parse_schedule(text.render([int(i == place) for i in range(len(text.slots))]))
            found = what_if(instance, plan).problems
            is_broken = any(not verdict.kept for verdict in verdicts(instance, plan))
            assert is_broken == (bool(found) and "could start at" not in found[1])


def test_a_broken_rule_says_which_tasks_break_it_and_a_kept_one_blames_none():
    found = {v.id: v.broken_by for v in verdicts(SHOP, entries({**GOOD, "D": (1, "M2"), "B": (1, "M2")}))}
    blamed = {name: tasks for name, tasks in found.items() if tasks}
    assert blamed == {"order:A>B": ("A", "B"), "machine:M2": ("B", "D"), "release:D": ("D",)}
