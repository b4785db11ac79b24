"""The retail setting on generated tasks: right references, a sealed native rubric, evidence, check and dry run."""

import asyncio
import json
import statistics
from collections import Counter

import pytest

from harness_mdp.executors.protocol import DrawKey, Purpose, Request
from harness_mdp.hashing import canonical_json
from harness_mdp.mdp import Action, Artifact, Event, ToolResult, fold, start
from harness_mdp.settings import open_setting
from harness_mdp.settings.prompts import bracketed_ids, read_sections
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.scripts import script_policy
from harness_mdp.settings.tasks import split_tasks
from harness_mdp.settings.tau_retail.data import database
from harness_mdp.settings.tau_retail.draft import call_json
from harness_mdp.settings.tau_retail.generate import TEMPLATES, generated_specs
from harness_mdp.settings.tau_retail.setting import TauRetail
from tests.retail_oracle import solve
from tests.runs import run, simulated

SETTING = TauRetail()
STORE = SETTING.tasks(seed=0, n=100, path=None)
TASKS = {task.id: task for task in STORE.tasks}


def score(task, artifact):
    (criterion,) = asyncio.run(SETTING.criteria(task, STORE.sealed[task.id], artifact))
    assert (criterion.id, criterion.weight) == ("native", 1.0)
    return criterion.score


def reference(task):
    return STORE.answers[task.id].text.reference


def workspace(task, artifact, *, observes=0, retrieves=0):
    space = Workspace(task)
    for _ in range(observes):
        space.evidence.update((item.id, item.text) for item in SETTING.observe(space))
    for _ in range(retrieves):
        space.evidence.update((item.id, item.text) for item in SETTING.retrieve(space))
    space.artifact, space.version = artifact, 1
    return space


def problems(task, artifact):
    items = asyncio.run(SETTING.check_items(workspace(task, artifact)))
    return {item.id: item.problem for item in items if not item.passed}


def dry_run(task, artifact):
    return asyncio.run(SETTING.call_tool(workspace(task, artifact), None))


def draft(*calls, respond="Done."):
    return canonical_json({"calls": [{"name": n, "arguments": a} for n, a in calls], "respond": respond})


def test_twenty_easy_sixty_standard_twenty_hard_and_the_ratio_holds_for_other_sizes():
    assert Counter(task.difficulty for task in STORE.tasks) == {"easy": 20, "standard": 60, "hard": 20}
    small = SETTING.tasks(seed=1, n=10, path=None)
    assert Counter(task.difficulty for task in small.tasks) == {"easy": 2, "standard": 6, "hard": 2}
    assert "standard-017" in TASKS


def test_every_template_takes_part_and_most_are_in_both_parts_of_a_split():
    assert {task.template for task in STORE.tasks} == set(TEMPLATES)
    parts = {"train": set(), "eval": set()}
    for task in split_tasks(STORE.tasks):
        parts[task.split].add(task.template)
    assert len(parts["train"] & parts["eval"]) >= 6


def test_the_same_seed_gives_the_same_tasks_byte_for_byte_and_another_seed_others():
    again, other = (SETTING.tasks(seed=seed, n=100, path=None) for seed in (0, 1))

    def text(store):
        return canonical_json(
            [
                [t.id, t.hash, t.public, store.sealed[t.id].values, store.answers[t.id].text.reference]
                for t in store.tasks
            ]
        )

    assert text(again) == text(STORE) != text(other)


def test_no_two_tasks_share_request_and_answer():
    pairs = [(t.public["instruction"], canonical_json(STORE.sealed[t.id].values)) for t in STORE.tasks]
    assert len(set(pairs)) == len({request for request, _ in pairs}) == 100


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_references_are_what_wording_and_records_demand(seed):
    base, specs = generated_specs(seed, 100)
    for spec in specs:
        calls, outputs = solve(base, spec.instruction)
        assert [(call.name, call.arguments) for call in spec.actions] == calls, spec.instruction
        assert len(outputs) == len(spec.outputs)
        for said, wanted in zip(outputs, spec.outputs, strict=True):
            assert float(said) == float(wanted)
            assert wanted in said


def test_harder_requests_are_longer_chains_with_more_places_to_go_wrong():
    slots, wishes, orders = {}, {}, {}
    for task in STORE.tasks:
        slots.setdefault(task.difficulty, []).append(len(STORE.answers[task.id].text.slots))
        wishes.setdefault(task.difficulty, set()).add(task.public["instruction"].count("You want"))
        orders.setdefault(task.difficulty, []).append(task.public["instruction"].count("#W"))
    assert wishes == {"easy": {1}, "standard": {2}, "hard": {3}}
    assert all(3 <= n <= 8 for counts in slots.values() for n in counts)
    assert statistics.mean(slots["easy"]) < statistics.mean(slots["standard"]) < statistics.mean(slots["hard"])
    assert set(orders["hard"]) == {0}, "hard requests name an order by what is in it"


def test_the_reference_scores_one_and_every_single_fault_nothing():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        right = [0] * len(text.slots)
        assert score(task, SETTING.parse(text.reply(right))) == 1.0
        for number, slot in enumerate(text.slots):
            for choice in range(1, len(slot.options)):
                wrong = [*right]
                wrong[number] = choice
                rendered = text.render(wrong)
                assert SETTING.parse(text.reply(wrong)) == rendered
                assert text.read(rendered) == wrong
                assert score(task, rendered) == 0.0, (task.id, slot)


def test_the_rubric_is_blind_to_style():
    for task in STORE.tasks[::7]:
        value = json.loads(reference(task))
        value["respond"] = "WELL, " + value["respond"].upper() + "  Have a nice day!"
        shuffled = {"respond": value["respond"], "calls": [dict(reversed(call.items())) for call in value["calls"]]}
        assert score(task, SETTING.parse(json.dumps(shuffled, indent=3))) == 1.0


def test_amounts_may_have_thousands_separators_and_trailing_zeros():
    task = next(t for t in STORE.tasks if any("." in o for o in STORE.sealed[t.id].values["outputs"]))
    value = json.loads(reference(task))
    amount = next(o for o in STORE.sealed[task.id].values["outputs"] if "." in o)
    value["respond"] = value["respond"].replace(amount, f"{float(amount):,.2f}")
    assert score(task, canonical_json(value)) == 1.0


def test_look_ups_and_failing_calls_change_no_verdict():
    task = TASKS["easy-000"]
    value = json.loads(reference(task))
    value["calls"].insert(0, {"name": "list_all_product_types", "arguments": {}})
    value["calls"].insert(1, {"name": "cancel_pending_order", "arguments": {"order_id": "#W0", "reason": "x"}})
    assert score(task, canonical_json(value)) == 1.0


def test_saying_nothing_or_something_plausible_scores_nothing():
    changing = [task for task in STORE.tasks if STORE.sealed[task.id].values["actions"]]
    assert all(score(task, draft()) == 0.0 for task in changing)
    assert all(score(task, draft(respond=" ")) == 0.0 for task in STORE.tasks)
    easy = next(task for task in changing if task.template == "cancel" and task.difficulty == "easy")
    value = json.loads(reference(easy))
    value["calls"][-1]["arguments"]["reason"] = "changed my mind"
    assert score(easy, canonical_json(value)) == 0.0


def test_an_empty_list_of_calls_is_right_where_nothing_may_change():
    task = next(t for t in STORE.tasks if t.template == "refused" and t.difficulty == "easy")
    assert score(task, draft(respond="That order cannot be cancelled any more.")) == 1.0


def test_nothing_sealed_is_public():
    for task in STORE.tasks:
        sealed = STORE.sealed[task.id].values
        shown = task.public["instruction"] + json.dumps(task.public["observe"])
        for call in sealed["actions"]:
            for name in ("item_ids", "new_item_ids"):
                assert not any(item in shown for item in call["arguments"].get(name, []))
            assert call["arguments"].get("payment_method_id", "?") not in shown


def test_evidence_that_a_slot_names_holds_what_the_slot_needs():
    helped = 0
    for task in STORE.tasks:
        space = workspace(task, None, observes=3, retrieves=8)
        for slot in STORE.answers[task.id].text.slots:
            helped += bool(slot.helped_by)
            assert set(slot.helped_by) <= set(space.evidence)
            if slot.correct.startswith('"#W') or (slot.correct.startswith('"') and slot.correct.strip('"').isdigit()):
                assert any(slot.correct.strip('"') in space.evidence[name] for name in slot.helped_by)
    assert helped > 300


def test_observe_and_retrieve_bring_each_item_once_and_then_nothing():
    task = TASKS["hard-001"]
    space = Workspace(task)
    first, second, third = (SETTING.observe(space) for _ in range(3))
    assert [item.id for item in first] == ["request", "policy-general"]
    assert all(item.id.startswith("policy-") for item in second)
    assert third == []
    rounds = [SETTING.retrieve(space) for _ in range(10)]
    ids = [item.id for items in rounds for item in items]
    assert [item.id for item in rounds[0]] == ["user"]
    assert all(item.id.startswith("order-") for item in rounds[1])
    assert len(ids) == len(set(ids))
    assert list(rounds[-1]) == []


def test_prompts_are_short_and_name_what_is_at_hand():
    lengths = []
    for task in STORE.tasks:
        space = workspace(task, reference(task), observes=1, retrieves=1)
        prompt = SETTING.messages(Purpose.DRAFT, space)
        lengths.append(sum(len(message.content) for message in prompt))
        sections = read_sections(prompt)
        assert bracketed_ids(sections["Evidence"]) == tuple(space.evidence)
        assert "Draft" not in sections
        assert read_sections(SETTING.messages(Purpose.CHECK, space))["Draft"] == reference(task)
    assert max(lengths) < 4000
    full = workspace(TASKS["hard-001"], None, observes=2, retrieves=9)
    assert sum(len(message.content) for message in SETTING.messages(Purpose.DRAFT, full)) < 9000


def test_the_check_passes_every_reference_and_the_dry_run_too():
    for task in STORE.tasks:
        assert problems(task, reference(task)) == {}
        assert not dry_run(task, reference(task)).result.failed


def test_claims_are_the_ids_used_and_count_as_supported_once_looked_up():
    task = next(t for t in STORE.tasks if t.template == "exchange")
    bare = SETTING.claims(workspace(task, reference(task)))
    assert bare
    assert not any(claim.supported for claim in bare)
    known = SETTING.claims(workspace(task, reference(task), observes=2, retrieves=9))
    assert [claim.text for claim in known] == [claim.text for claim in bare]
    assert all(claim.supported for claim in known)
    assert all(len(claim.text) <= 80 for claim in known)
    assert SETTING.claims(workspace(task, draft())) == ()


def test_what_the_check_names():
    task = TASKS["easy-000"]
    base = database(task.public)
    known = json.loads(reference(task))["calls"][0]
    identify = (known["name"], known["arguments"])
    last = json.loads(reference(task))["calls"][-1]
    mine = last["arguments"]["order_id"]
    stranger = next(o for o in base.orders.values() if o["user_id"] != base.orders[mine]["user_id"])
    address = {**stranger["address"], "user_id": stranger["user_id"]}
    cancel = ("cancel_pending_order", {"order_id": mine, "reason": "no longer needed"})

    assert set(problems(task, draft(identify, cancel, respond=""))) == {"respond"}
    assert set(problems(task, draft(identify, ("open_the_safe", {})))) == {"tools_known"}
    assert set(problems(task, draft(identify, ("cancel_pending_order", {"order_id": 5, "reason": "x"})))) == {
        "arguments"
    }
    assert set(problems(task, draft(cancel))) == {"authenticated"}
    assert set(problems(task, draft(identify, ("modify_user_address", address)))) == {"one_customer"}
    assert set(problems(task, draft(identify, cancel, cancel))) == {"calls_work"}
    after = draft(identify, ("transfer_to_human_agents", {"summary": "s"}), cancel)
    assert set(problems(task, after)) == {"transfer_last"}
    assert all(len(text) <= 200 for text in problems(task, draft(("x" * 500, {}))).values())


def test_the_check_names_an_item_swapped_for_itself_and_an_empty_list():
    task = next(t for t in STORE.tasks if t.template == "exchange" and t.difficulty == "easy")
    value = json.loads(reference(task))
    swap = value["calls"][-1]["arguments"]
    swap["item_ids"] = swap["new_item_ids"] = []
    assert set(problems(task, canonical_json(value))) == {"real_change"}


def test_a_dry_run_tells_what_happens_and_fails_as_the_tools_do():
    task = TASKS["easy-000"]
    call = dry_run(task, reference(task))
    assert "becomes cancelled" in call.text
    assert call.result.version == 1
    value = json.loads(reference(task))
    value["calls"][-1]["arguments"]["order_id"] = "#W0"
    failed = dry_run(task, canonical_json(value)).result
    assert (failed.valid, failed.ok, failed.passed, failed.total) == (True, False, 1, 2)
    assert "#W0" in failed.problems[0]
    del value["calls"][-1]["arguments"]["order_id"]
    assert not dry_run(task, canonical_json(value)).result.valid
    nothing = dry_run(task, draft()).result
    assert (nothing.ok, nothing.total, nothing.failed) == (True, 0, False)


def test_a_dry_run_and_a_check_leave_the_shop_as_it_is():
    task = TASKS["easy-000"]
    before = database(task.public).state_digest({})
    dry_run(task, reference(task))
    problems(task, reference(task))
    assert database(task.public).state_digest({}) == before
    assert score(task, reference(task)) == 1.0


def test_flags_follow_from_the_state():
    failed = ToolResult("dry_run", valid=True, ok=False, version=1)
    events = [
        Event(Action.RETRIEVE, evidence=("user",)),
        Event(Action.RETRIEVE, evidence=("order-#W1",)),
        Event(Action.RETRIEVE, evidence=("product-1",)),
        Event(Action.DRAFT, artifact=Artifact(1, "a", 2)),
        Event(Action.CALL_TOOL, tool=failed),
        Event(Action.REVISE, artifact=Artifact(2, "b", 2)),
    ]
    flags = [SETTING.flags(state) for state in fold(events, start(10))]
    assert flags == [
        (False, False, False, False),
        (True, False, False, False),
        (True, True, False, False),
        (True, True, True, False),
        (True, True, True, False),
        (True, True, True, True),
        (True, True, True, False),
    ]


def test_a_task_of_a_shop_that_is_not_loaded_is_a_programming_error():
    with pytest.raises(ValueError, match="is not loaded"):
        database({"database": "0" * 16})


def test_simulated_episodes_end_to_end_are_neither_hopeless_nor_solved():
    setting = open_setting("tau_retail")
    means = {}
    for name in setting.scripts:
        episodes = run(setting, STORE.tasks[::2], script_policy(setting, name), simulated(STORE), STORE.sealed)
        means[name] = statistics.mean(episode.return_ for episode in episodes)
        assert {episode.return_ for episode in episodes} == {0.0, 1.0}
    assert 0.15 < means["base"] < 0.95


def test_more_evidence_makes_fewer_faults():
    with_evidence, without = [], []
    for task in STORE.tasks:
        executor = simulated(STORE)
        for observes, retrieves, found in ((2, 6, with_evidence), (0, 0, without)):
            prompt = SETTING.messages(Purpose.DRAFT, workspace(task, None, observes=observes, retrieves=retrieves))
            for rollout in range(5):
                request = Request(prompt, Purpose.DRAFT, task.id, task.hash, DrawKey(0, rollout, 0))
                text = asyncio.run(executor.complete(request)).text
                choices = STORE.answers[task.id].text.read(text.removeprefix("```json\n").removesuffix("\n```"))
                found += [choice > 0 for choice in choices or ()]
    assert statistics.mean(with_evidence) < 0.8 * statistics.mean(without)


def test_a_call_is_written_as_it_is_parsed():
    assert call_json("think", {"thought": "so"}) == '{"arguments":{"thought":"so"},"name":"think"}'
