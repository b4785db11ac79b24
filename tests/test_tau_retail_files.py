"""Reading the upstream retail files, replaying their reference actions, and what happens to damaged ones."""

import json
from pathlib import Path

import pytest

from harness_mdp import retail_replay
from harness_mdp.errors import InputError
from harness_mdp.settings.tau_retail.generate import generated_specs
from harness_mdp.settings.tau_retail.lookup import find_user
from harness_mdp.settings.tau_retail.scoring import native_score
from harness_mdp.settings.tau_retail.setting import TauRetail
from harness_mdp.settings.tau_retail.tasks import read_database, read_specs
from tests.commands import command

SHARED = Path(__file__).parents[2] / "shared/data/tau_bench_retail"
BASE, SPECS = generated_specs(3, 12)

needs_files = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the tau-bench retail files in {SHARED.name}/")


def rows():
    return [
        {
            "user_id": spec.user_id,
            "instruction": spec.instruction,
            "actions": [{"name": call.name, "kwargs": dict(call.arguments)} for call in spec.actions],
            "outputs": list(spec.outputs),
        }
        for spec in SPECS
    ]


def dump(file, value):
    file.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    for name, table in (("orders", BASE.orders), ("products", BASE.products), ("users", BASE.users)):
        dump(tmp_path / f"{name}.json", table)
    dump(tmp_path / "tasks_test.json", rows())
    dump(tmp_path / "tasks_dev.json", rows()[:3])
    states = [retail_replay.final_state(BASE, spec, index) for index, spec in enumerate(SPECS)]
    dump(tmp_path / "expected_final_state.json", {"note": "", "tasks_test": states[::2], "tasks_dev": states[:3]})
    return tmp_path


def test_a_folder_gives_the_test_tasks_and_a_file_its_own(folder):
    setting = TauRetail()
    assert [task.id for task in setting.tasks(seed=0, n=5, path=folder).tasks] == [f"test-{i}" for i in range(12)]
    dev = setting.tasks(seed=0, n=5, path=folder / "tasks_dev.json")
    assert [task.id for task in dev.tasks] == ["dev-0", "dev-1", "dev-2"]
    assert {task.difficulty for task in dev.tasks} <= {"easy", "standard", "hard"}


def test_tasks_that_share_an_instruction_stay_apart(folder):
    twice = rows()
    twice[1] = {**twice[0], "actions": []}
    dump(folder / "tasks_test.json", twice)
    store = TauRetail().tasks(seed=0, n=1, path=folder)
    first, second = store.tasks[:2]
    assert first.public == second.public
    assert (first.id, first.hash) != (second.id, second.hash)
    assert store.sealed["test-0"] != store.sealed["test-1"]


def test_the_policy_of_the_folder_is_what_observe_shows(folder):
    (folder / "policy.md").write_text("# P\n- House rule one.\n\n## Cancel pending order\n- Cancel rule.\n")
    task = TauRetail().tasks(seed=0, n=1, path=folder).tasks[0]
    assert "House rule one." in json.dumps(task.public["observe"])


def test_replay_counts_what_is_met_and_names_what_is_not(folder):
    out, _ = command("harness_mdp.retail_replay", f"path={folder}", f"out={folder / 'all.json'}")
    assert (
        out
        == "tasks_test: 6 of 6 expected final states reproduced\ntasks_dev: 3 of 3 expected final states reproduced\n"
    )
    assert len(json.loads((folder / "all.json").read_text())["tasks_test"]) == 12
    expected = json.loads((folder / "expected_final_state.json").read_text())
    expected["tasks_dev"][1]["digest"] = "0" * 64
    dump(folder / "expected_final_state.json", expected)
    out, _ = command("harness_mdp.retail_replay", f"path={folder}", expect=1)
    assert "tasks_dev: 2 of 3 expected final states reproduced\n  tasks_dev 1: digest is " in out


def replayed(folder, *arguments, capsys):
    code = retail_replay.run([f"path={folder}", *arguments])
    return code, *capsys.readouterr()


def with_states(folder, tasks):
    """`tasks` as the test tasks, and the states that their actions lead to as those expected."""
    dump(folder / "tasks_test.json", tasks)
    states = [
        retail_replay.final_state(BASE, spec, index)
        for index, spec in enumerate(read_specs(folder / "tasks_test.json"))
    ]
    dump(folder / "expected_final_state.json", {"tasks_test": states})


def test_reference_actions_that_a_tool_refuses_are_named_though_the_state_is_met(folder, capsys):
    tasks = rows()
    tasks[1]["actions"].insert(0, {"name": "get_user_details", "kwargs": {"user_id": "nobody_1"}})
    tasks[4]["actions"] = [
        {"name": "get_order_details", "kwargs": {"order_id": 5}},
        {"name": "think", "kwargs": {"thought": "fine"}},
        {"name": "cancel_pending_order", "kwargs": {"order_id": "#W1"}},
    ]
    with_states(folder, tasks)
    code, out, _ = replayed(folder, capsys=capsys)
    assert code == 0
    assert out.splitlines() == [
        "tasks_test: 12 of 12 expected final states reproduced",
        "tasks_test: 3 reference actions in 2 tasks are refused (which may be meant):",
        "  tasks_test 1, action 0, get_user_details: there is no user nobody_1",
        "  tasks_test 4, action 0, get_order_details: arguments that do not fit: get_order_details: order_id must be a "
        "string, not int",
        "  tasks_test 4, action 2, cancel_pending_order: arguments that do not fit: cancel_pending_order takes "
        "(order_id, reason): missing reason",
    ]


def test_a_task_of_an_unknown_user_is_refused_by_the_replay_as_by_every_reader(folder, capsys):
    dump(folder / "tasks_test.json", damaged("user_id", "nobody_1"))
    code, _, err = replayed(folder, capsys=capsys)
    assert code == 2
    assert "tasks_test.json, field '[2].user_id': unknown user 'nobody_1'" in err


def test_one_tasks_file_is_replayed_alone(folder, capsys):
    code, out, _ = replayed(folder / "tasks_dev.json", f"out={folder / 'dev.json'}", capsys=capsys)
    assert (code, out) == (0, "tasks_dev: 3 of 3 expected final states reproduced\n")
    assert list(json.loads((folder / "dev.json").read_text())) == ["tasks_dev"]
    dump(folder / "tasks_mine.json", rows())
    code, _, err = replayed(folder / "tasks_mine.json", capsys=capsys)
    assert code == 2
    assert "expected_final_state.json: no expected states; expected a list under the key tasks_mine" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "usage: python -m harness_mdp.retail_replay path=DIR"),
        (["path=DIR", "task=3"], "unknown option 'task'"),
        (["path=nowhere"], "nowhere: no such folder or file"),
    ],
)
def test_wrong_calls_of_the_replay_command(arguments, words, capsys):
    assert retail_replay.run(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "expected",
    [{"note": "nothing"}, [], {"tasks_test": [{"index": 99, "digest": "0"}]}, {"tasks_test": ["x"]}, {"tasks_test": 3}],
)
def test_a_damaged_list_of_expected_states(folder, expected, capsys):
    dump(folder / "expected_final_state.json", expected)
    assert retail_replay.run([f"path={folder}"]) == 2
    assert "expected_final_state.json" in capsys.readouterr().err


def damaged(field, value):
    broken = rows()
    broken[2][field] = value
    return broken


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([{k: v for k, v in rows()[0].items() if k != "actions"}], r"\[0\]\.actions.*found nothing"),
        (damaged("actions", None), r"\[2\]\.actions"),
        (damaged("actions", [{"name": "open_the_safe", "kwargs": {}}]), r"unknown tool 'open_the_safe'"),
        (damaged("actions", [{"name": "think", "kwargs": "so"}]), r"\[2\]\.actions\[0\]\.kwargs"),
        (damaged("actions", ["think"]), r"is no object"),
        (damaged("instruction", " "), r"instruction is empty"),
        (damaged("user_id", "nobody_1"), r"unknown user 'nobody_1'"),
        (damaged("outputs", [10]), r"\[2\]\.outputs"),
        (["x"], r"is no object"),
        ([], r"no list of tasks"),
        ({"tasks": []}, r"no list of tasks"),
    ],
)
def test_damaged_tasks_are_named_by_file_and_field(folder, tasks, words):
    dump(folder / "tasks_test.json", tasks)
    with pytest.raises(InputError, match=rf"tasks_test\.json.*{words}|{words}"):
        TauRetail().tasks(seed=0, n=1, path=folder)


def without(table, field):
    key = next(iter(table))
    return {**table, key: {name: value for name, value in table[key].items() if name != field}}


def changed(table, **values):
    key = next(iter(table))
    return {**table, key: {**table[key], **values}}


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("orders", without(BASE.orders, "status"), "status"),
        ("orders", changed(BASE.orders, user_id="nobody_1"), "nobody_1"),
        ("orders", changed(BASE.orders, payment_history=[]), "payment"),
        ("orders", changed(BASE.orders, items=[{"name": "x"}]), "items"),
        ("users", without(BASE.users, "email"), "email"),
        ("users", changed(BASE.users, address={"zip": 1}), "address"),
        ("products", changed(BASE.products, variants={"1": {"item_id": "1"}}), "variants"),
        ("products", [], "no records"),
        ("orders", changed(BASE.orders, payment_history=[{"amount": "3"}]), "payment_history"),
    ],
)
def test_damaged_records_are_named_by_file_and_field(folder, name, table, words):
    dump(folder / f"{name}.json", table)
    with pytest.raises(InputError, match=rf"{name}\.json.*{words}"):
        TauRetail().tasks(seed=0, n=1, path=folder)


def test_a_number_that_is_none_is_said_to_be_one_thing(folder):
    key, order = next(iter(BASE.orders.items()))
    dump(folder / "orders.json", {key: {**order, "items": [{**order["items"][0], "price": "3"}]}})
    with pytest.raises(InputError, match=r"items\[0\]\.price': found '3'; expected a number$"):
        TauRetail().tasks(seed=0, n=1, path=folder)


def test_a_text_that_does_not_end_is_said_in_good_english(folder):
    (folder / "users.json").write_text('{"a": "b')
    with pytest.raises(InputError, match=r"Unterminated string starting at column 7\)"):
        TauRetail().tasks(seed=0, n=1, path=folder)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"", b'{"a": NaN}', b"version https://git-lfs\noid 1"])
def test_a_file_that_is_no_json(folder, content):
    (folder / "users.json").write_bytes(content)
    with pytest.raises(InputError, match=r"users\.json"):
        TauRetail().tasks(seed=0, n=1, path=folder)


@pytest.mark.parametrize("missing", ["users.json", "orders.json", "products.json", "tasks_test.json"])
def test_a_missing_file(folder, missing):
    (folder / missing).unlink()
    with pytest.raises(InputError, match=missing):
        TauRetail().tasks(seed=0, n=1, path=folder)


def test_a_missing_folder(tmp_path):
    with pytest.raises(InputError, match="no such folder or file"):
        TauRetail().tasks(seed=0, n=1, path=tmp_path / "nowhere")


def test_wrong_typed_reference_arguments_are_calls_that_fail(folder):
    broken = damaged("actions", [{"name": "get_order_details", "kwargs": {"order_id": 5}}])
    dump(folder / "tasks_test.json", broken)
    store = TauRetail().tasks(seed=0, n=1, path=folder)
    reference = store.answers["test-2"].text.reference
    assert '"get_order_details"' not in reference


@pytest.mark.shared_data
@needs_files
def test_all_expected_final_states_are_reproduced():
    lines, missed, _ = retail_replay.replay_report(SHARED)
    assert missed == 0
    assert [line for line in lines if "reproduced" in line] == [
        "tasks_test: 58 of 58 expected final states reproduced",
        "tasks_dev: 20 of 20 expected final states reproduced",
    ]
    refused = {line.split(",")[0] for line in lines if line.startswith("  tasks_test")}
    assert len(refused) == 19


@pytest.mark.shared_data
@needs_files
def test_upstream_reference_answers_score_one_and_single_faults_zero():
    setting = TauRetail()
    base = read_database(SHARED)
    for path in (SHARED, SHARED / "tasks_dev.json"):
        store = setting.tasks(seed=0, n=1, path=path)
        for task in store.tasks:
            text, sealed = store.answers[task.id].text, store.sealed[task.id].values
            assert 3 <= len(text.slots) <= 8
            assert native_score(base, sealed, setting.parse(text.reply([0] * len(text.slots)))) == 1.0
            for number, slot in enumerate(text.slots):
                choices = [0] * len(text.slots)
                choices[number] = len(slot.wrong)
                assert text.read(text.render(choices)) == choices
                assert native_score(base, sealed, setting.parse(text.reply(choices))) == 0.0


@pytest.mark.shared_data
@needs_files
def test_nineteen_upstream_references_hold_a_failing_call_and_two_want_none():
    base = read_database(SHARED)
    specs = read_specs(SHARED / "tasks_test.json")
    states = [retail_replay.final_state(base, spec, index) for index, spec in enumerate(specs)]
    assert sum(state["tool_errors"] > 0 for state in states) == 19
    assert sum(not spec.actions for spec in specs) == 2


@pytest.mark.shared_data
@needs_files
def test_the_request_alone_finds_the_customer():
    base = read_database(SHARED)
    specs = [spec for name in ("dev", "test", "train") for spec in read_specs(SHARED / f"tasks_{name}.json")]
    found = [find_user(base, spec.instruction) == spec.user_id for spec in specs]
    assert sum(found) >= len(found) - 1
