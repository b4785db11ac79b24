"""Schedules are read from replies as models write them; anything else is unparsable and never another error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.planning import Planning
from harness_mdp.settings.planning.draft import parse_schedule, schedule_text
from harness_mdp.settings.planning.instance import Entry
from harness_mdp.settings.prompts import Unparsable

PLANNING = Planning()
PLAN = '{"schedule": [{"task": "A", "start": 0}, {"task": "B", "start": 3}]}'
ON_MACHINES = '{"schedule": [{"task": "A", "start": 0, "machine": "M1"}, {"task": "B", "start": 3, "machine": "M2"}]}'


@pytest.mark.parametrize(
    "reply",
    [
        PLAN,
        f"```json\n{PLAN}\n```",
        f"```\n{PLAN}",
        f"Here is the plan:\n\n```json\n{PLAN}\n```\nAll rules are kept.",
        f"Sure! {PLAN} I hope this helps {{smile}}.",
        json.dumps(json.loads(PLAN), indent=4),
        '{"schedule":[{"start":3,"task":"B"},{"start":0,"task":"A"}]}',
        '[{"task": "A", "start": 0}, {"task": "B", "start": 3}]',
        '{"A": 0, "B": 3}',
        '{"A": 0, "B": 3, "makespan": 7}',
        '{"schedule": {"A": 0, "B": 3}}',
        '{"A": {"start": 0}, "B": {"start": 3, "end": 5}}',
        '{"schedule": [{"task": "task a", "start": "0"}, {"Task": " b ", "Start_Time": 3.0, "end": 9, "note": "x"}]}',
        '{"schedule": [{"task": "A", "start": 0, "machine": null}, {"task": "B", "start": "3.0", "machine": ""}]}',
        f'Rules seen: [A, B]. Not {{"A": 1}}, but {PLAN}',
        f"First try: {PLAN.replace('3', '2')}. Corrected: {PLAN}",
    ],
)
def test_a_schedule_is_read_in_every_form(reply):
    assert PLANNING.parse(reply) == PLAN


@pytest.mark.parametrize(
    "reply",
    [ON_MACHINES, '{"A": [0, "M1"], "B": [3, "machine m2"]}', '{"A": {"start": 0, "machine": "M1"}, "B": [3, "M2"]}'],
)
def test_machines_are_read_as_well(reply):
    assert PLANNING.parse(reply) == ON_MACHINES


def test_numbers_are_read_as_people_write_them():
    assert PLANNING.parse('{"A": "1,234.0", "B": 1234, "C": 1234.0}') == PLANNING.parse(
        '{"A":1234,"B":1234,"C":1.234e3}'
    )
    assert parse_schedule('{"A": 2.5, "B": -1}') == (Entry("A", 2.5), Entry("B", -1))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("I am sorry, I cannot help with that.", "no JSON schedule"),
        ("A starts at 0, B at 3.", "no JSON schedule"),
        ("{}", "no JSON schedule"),
        ("[]", "no JSON schedule"),
        ("null", "no JSON schedule"),
        ('{"schedule": []}', "no JSON schedule"),
        ('{"schedule": null}', "no JSON schedule"),
        ('{"schedule": ["A", "B"]}', "no JSON schedule"),
        ('{"answer": 5}', "no JSON schedule"),
        ('{"schedule": [{"task": "A", "start": "soon"}]}', "the start of A is no time"),
        ('{"schedule": [{"task": "A"}]}', "the start of A is no time"),
        ('{"schedule": [{"task": "A", "start": true}]}', "the start of A is no time"),
        ('{"schedule": [{"task": "A", "start": NaN}]}', "the start of A is no time"),
        ('{"schedule": [{"task": "A", "start": 1e999}]}', "the start of A is no time"),
        ('{"schedule": [{"task": "A", "start": [1]}]}', "the start of A is no time"),
        ('{"schedule": [{"task": "", "start": 1}, {"task": "A", "start": 0}]}', "names no task"),
        ('{"schedule": [{"task": 4, "start": 1}]}', "names no task"),
        (json.dumps({"schedule": [{"task": f"T{i}", "start": 0} for i in range(60)]}), "60 entries"),
    ],
)
def test_what_is_no_schedule_is_unparsable_with_a_reason(reply, reason):
    with pytest.raises(Unparsable, match=reason):
        PLANNING.parse(reply)


@pytest.mark.parametrize("form", [PLAN, ON_MACHINES, '{"A": 0, "B": 3}', '[{"task": "A", "start": 0}]'])
def test_truncated_output_is_never_taken_for_a_schedule(form):
    whole = form.index("]") if "]" in form else len(form) - 1
    for end in range(whole + 1):
        for start in ("", "```json\n", "The plan: "):
            with pytest.raises(Unparsable):
                PLANNING.parse(start + form[:end])


def test_a_schedule_that_lacks_only_its_last_bracket_has_all_entries_and_is_read():
    assert PLANNING.parse(PLAN[:-1]) == PLAN


@pytest.mark.parametrize(
    "reply", ["[" * 100_000, "{" * 100_000, '{"A":' * 5000, f'{{"A": {"9" * 6000}}}', '{"A": 1' + "\ud800"]
)
def test_hostile_replies_are_unparsable_and_quickly_so(reply):
    with pytest.raises(Unparsable):
        PLANNING.parse(reply)


def test_a_schedule_inside_too_many_brackets_is_no_crash():
    deep = '{"schedule": ' * 900 + PLAN + "}" * 900
    with pytest.raises(Unparsable):
        PLANNING.parse(deep)


def test_a_task_that_is_planned_twice_is_kept_for_the_check_to_name():
    twice = '{"schedule": [{"task": "A", "start": 0}, {"task": "A", "start": 4}]}'
    assert PLANNING.parse(twice) == twice


@given(st.text(max_size=300))
def test_any_text_gives_an_artifact_or_unparsable(reply):
    try:
        artifact = PLANNING.parse(reply)
    except Unparsable:
        return
    assert PLANNING.parse(artifact) == artifact


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["schedule", "task", "start", "machine", "A", "B", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSONS)
def test_any_json_gives_an_artifact_or_unparsable(value):
    try:
        artifact = PLANNING.parse(json.dumps(value))
    except Unparsable:
        return
    assert PLANNING.parse(artifact) == artifact


@given(
    st.dictionaries(
        st.sampled_from("ABCDEFGHI"), st.tuples(st.integers(0, 99), st.sampled_from(["", "M1", "W2"])), min_size=1
    )
)
def test_what_is_written_down_is_read_back(plan):
    entries = tuple(Entry(task, start, machine) for task, (start, machine) in sorted(plan.items()))
    assert parse_schedule(schedule_text(entries)) == entries
