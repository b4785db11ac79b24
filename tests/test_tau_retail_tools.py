"""The sixteen retail tools: what each changes, and that a refused call changes nothing."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.tau_retail.calculator import evaluate
from harness_mdp.settings.tau_retail.data import Database, Shop
from harness_mdp.settings.tau_retail.draft import Call, play
from harness_mdp.settings.tau_retail.tools import TOOLS, run_tool

HOME = {"address1": "1 Elm", "address2": "", "city": "Reno", "country": "USA", "state": "NV", "zip": "89501"}
AWAY = {"address1": "9 Oak", "address2": "Apt 2", "city": "Erie", "country": "USA", "state": "PA", "zip": "16501"}


def item(item_id, price, product="p1", **options):
    return {"name": "Lamp", "product_id": product, "item_id": item_id, "price": price, "options": options}


def variant(item_id, price, available=True, **options):
    return {"item_id": item_id, "options": options, "available": available, "price": price}


def order(order_id, status, items, method, **more):
    paid = {
        "transaction_type": "payment",
        "amount": round(sum(i["price"] for i in items), 2),
        "payment_method_id": method,
    }
    return {
        "order_id": order_id,
        "user_id": "ann_lee_1",
        "address": dict(HOME),
        "items": items,
        "fulfillments": [],
        "status": status,
        "payment_history": [paid],
        **more,
    }


BASE = Database(
    orders={
        "#W1": order("#W1", "pending", [item("i1", 10.0, color="red"), item("i1", 10.0, color="red")], "gift_card_1"),
        "#W2": order("#W2", "delivered", [item("i1", 10.0, color="red"), item("i2", 12.35, color="blue")], "paypal_1"),
        "#W3": order("#W3", "pending", [item("i2", 12.35, color="blue")], "credit_card_1"),
    },
    products={
        "p1": {
            "name": "Lamp",
            "product_id": "p1",
            "variants": {
                "i1": variant("i1", 10.0, color="red"),
                "i2": variant("i2", 12.35, color="blue"),
                "i3": variant("i3", 7.1, color="green"),
                "i4": variant("i4", 9.0, available=False, color="black"),
                "i5": variant("i5", 60.0, color="gold"),
            },
        },
        "p2": {"name": "Chair", "product_id": "p2", "variants": {"j1": variant("j1", 5.0, color="red")}},
    },
    users={
        "ann_lee_1": {
            "name": {"first_name": "Ann", "last_name": "Lee"},
            "address": dict(HOME),
            "email": "Ann.Lee@example.com",
            "payment_methods": {
                "gift_card_1": {"source": "gift_card", "id": "gift_card_1", "balance": 20},
                "paypal_1": {"source": "paypal", "id": "paypal_1"},
                "credit_card_1": {"source": "credit_card", "brand": "visa", "last_four": "1111", "id": "credit_card_1"},
            },
            "orders": ["#W1", "#W2", "#W3"],
        },
        "ann_lee_2": {
            "name": {"first_name": "Ann", "last_name": "Lee"},
            "address": {**HOME, "zip": "10001"},
            "email": "ann2@example.com",
            "payment_methods": {},
            "orders": [],
        },
    },
)
PRISTINE = copy.deepcopy((BASE.orders, BASE.products, BASE.users))


def after(*calls):
    """The shop after calls that must all work."""
    shop = Shop(BASE)
    for name, arguments in calls:
        outcome = run_tool(shop, name, arguments)
        assert outcome.ok, outcome.text
    return shop


def refused(name, arguments, *, shop=None, valid=True):
    """The refusal's text; the state must not change."""
    shop = shop or Shop(BASE)
    before = shop.fingerprint()
    outcome = run_tool(shop, name, arguments)
    assert not outcome.ok
    assert outcome.valid is valid
    assert outcome.text.startswith("Error: ")
    assert shop.fingerprint() == before
    return outcome.text


def balance(shop):
    return shop.read("users", "ann_lee_1")["payment_methods"]["gift_card_1"]["balance"]


def swap(order_id, old, new, method):
    return {"order_id": order_id, "item_ids": old, "new_item_ids": new, "payment_method_id": method}


def test_the_sixteen_names():
    assert len(TOOLS) == 16
    assert {name for name, tool in TOOLS.items() if tool.writes} == {
        "cancel_pending_order",
        "exchange_delivered_order_items",
        "modify_pending_order_address",
        "modify_pending_order_items",
        "modify_pending_order_payment",
        "modify_user_address",
        "return_delivered_order_items",
    }


def test_cancelling_refunds_a_gift_card_at_once():
    shop = after(("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"}))
    row = shop.read("orders", "#W1")
    assert (row["status"], row["cancel_reason"], balance(shop)) == ("cancelled", "no longer needed", 40.0)
    assert row["payment_history"][1] == {
        "transaction_type": "refund",
        "amount": 20.0,
        "payment_method_id": "gift_card_1",
    }


def test_cancelling_after_a_change_of_payment_refunds_every_line_as_upstream_does():
    shop = after(
        ("modify_pending_order_payment", {"order_id": "#W3", "payment_method_id": "gift_card_1"}),
        ("cancel_pending_order", {"order_id": "#W3", "reason": "ordered by mistake"}),
    )
    kinds = [(p["transaction_type"], p["payment_method_id"]) for p in shop.read("orders", "#W3")["payment_history"]]
    assert kinds == [
        ("payment", "credit_card_1"),
        ("payment", "gift_card_1"),
        ("refund", "credit_card_1"),
        ("refund", "credit_card_1"),
        ("refund", "gift_card_1"),
        ("refund", "credit_card_1"),
    ]
    assert balance(shop) == 20.0


def test_a_new_payment_method_pays_and_the_old_one_gets_its_money_back():
    shop = after(("modify_pending_order_payment", {"order_id": "#W1", "payment_method_id": "paypal_1"}))
    assert balance(shop) == 40.0
    assert shop.read("orders", "#W1")["status"] == "pending"
    assert "single payment" in refused(
        "modify_pending_order_payment", {"order_id": "#W1", "payment_method_id": "credit_card_1"}, shop=shop
    )


def test_modifying_items_pays_the_unrounded_difference_and_closes_the_order_for_changes():
    shop = after(("modify_pending_order_items", swap("#W1", ["i1", "i1"], ["i2", "i3"], "gift_card_1")))
    row = shop.read("orders", "#W1")
    difference = 0 + (12.35 - 10.0) + (7.1 - 10.0)
    assert [i["item_id"] for i in row["items"]] == ["i2", "i3"]
    assert [i["options"]["color"] for i in row["items"]] == ["blue", "green"]
    assert row["payment_history"][-1] == {
        "transaction_type": "refund",
        "amount": abs(difference),
        "payment_method_id": "gift_card_1",
    }
    assert balance(shop) == round(20 - difference, 2)
    assert row["status"] == "pending (item modified)"
    refused("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"}, shop=shop)
    refused("modify_pending_order_items", swap("#W1", ["i2"], ["i1"], "paypal_1"), shop=shop)


def test_exchanging_sorts_items_and_rounds_the_difference():
    shop = after(("exchange_delivered_order_items", swap("#W2", ["i2", "i1"], ["i1", "i3"], "credit_card_1")))
    row = shop.read("orders", "#W2")
    assert row["status"] == "exchange requested"
    assert (row["exchange_items"], row["exchange_new_items"]) == (["i1", "i2"], ["i1", "i3"])
    assert row["exchange_price_difference"] == -5.25
    assert row["exchange_payment_method_id"] == "credit_card_1"
    assert len(row["payment_history"]) == 1
    refused(
        "return_delivered_order_items",
        {"order_id": "#W2", "item_ids": ["i1"], "payment_method_id": "paypal_1"},
        shop=shop,
    )


def test_returning_to_the_original_method_or_a_gift_card():
    for method in ("paypal_1", "gift_card_1"):
        shop = after(
            ("return_delivered_order_items", {"order_id": "#W2", "item_ids": ["i2", "i1"], "payment_method_id": method})
        )
        row = shop.read("orders", "#W2")
        assert (row["status"], row["return_items"], row["return_payment_method_id"]) == (
            "return requested",
            ["i1", "i2"],
            method,
        )
        assert balance(shop) == 20


def test_addresses_of_an_order_and_of_a_profile():
    shop = after(
        ("modify_pending_order_address", {"order_id": "#W1", **AWAY}),
        ("modify_user_address", {"user_id": "ann_lee_1", **AWAY}),
    )
    assert shop.read("orders", "#W1")["address"] == AWAY
    assert shop.read("users", "ann_lee_1")["address"] == AWAY
    assert shop.read("orders", "#W3")["address"] == HOME


def test_a_customer_is_found_by_email_or_by_name_and_current_zip():
    shop = Shop(BASE)
    assert run_tool(shop, "find_user_id_by_email", {"email": "ANN.lee@example.com"}).text == "ann_lee_1"
    by_name = {"first_name": "ann", "last_name": "LEE", "zip": "10001"}
    assert run_tool(shop, "find_user_id_by_name_zip", by_name).text == "ann_lee_2"
    run_tool(shop, "modify_user_address", {"user_id": "ann_lee_1", **AWAY})
    assert run_tool(shop, "find_user_id_by_name_zip", {**by_name, "zip": "16501"}).text == "ann_lee_1"
    refused("find_user_id_by_name_zip", {**by_name, "zip": "89501"}, shop=shop)
    refused("find_user_id_by_email", {"email": "nobody@example.com"})


def test_reading_tools_give_the_current_records():
    shop = after(("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"}))
    assert json.loads(run_tool(shop, "get_order_details", {"order_id": "#W1"}).text)["status"] == "cancelled"
    assert json.loads(run_tool(shop, "get_user_details", {"user_id": "ann_lee_2"}).text) == BASE.users["ann_lee_2"]
    assert json.loads(run_tool(shop, "get_product_details", {"product_id": "p2"}).text) == BASE.products["p2"]
    assert run_tool(shop, "list_all_product_types", {}).text == '{"Chair": "p2", "Lamp": "p1"}'
    assert run_tool(shop, "think", {"thought": "so"}).text == ""
    assert run_tool(shop, "transfer_to_human_agents", {"summary": "help"}).ok
    for name, arguments in (
        ("get_order_details", {"order_id": "W1"}),
        ("get_user_details", {"user_id": "x"}),
        ("get_product_details", {"product_id": "i1"}),
    ):
        refused(name, arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("cancel_pending_order", {"order_id": "#W9", "reason": "no longer needed"}, "#W9"),
        ("cancel_pending_order", {"order_id": "#W2", "reason": "no longer needed"}, "delivered"),
        ("cancel_pending_order", {"order_id": "#W1", "reason": "too slow"}, "ordered by mistake"),
        ("exchange_delivered_order_items", swap("#W1", ["i1"], ["i2"], "paypal_1"), "pending"),
        ("exchange_delivered_order_items", swap("#W2", ["i1", "i1"], ["i2", "i2"], "paypal_1"), "i1"),
        ("exchange_delivered_order_items", swap("#W2", ["i1"], ["i2", "i3"], "paypal_1"), "one new item each"),
        ("exchange_delivered_order_items", swap("#W2", ["i1"], ["i4"], "paypal_1"), "not available"),
        ("exchange_delivered_order_items", swap("#W2", ["i1"], ["j1"], "paypal_1"), "Lamp"),
        ("exchange_delivered_order_items", swap("#W2", ["i1"], ["i2"], "paypal_2"), "paypal_2"),
        ("exchange_delivered_order_items", swap("#W2", ["i1"], ["i5"], "gift_card_1"), "does not cover"),
        ("modify_pending_order_items", swap("#W2", ["i1"], ["i2"], "paypal_1"), "delivered"),
        ("modify_pending_order_items", swap("#W1", ["i1", "i1"], ["i5", "i5"], "gift_card_1"), "does not cover"),
        ("modify_pending_order_items", swap("#W1", ["i9"], ["i2"], "paypal_1"), "i9"),
        ("modify_pending_order_payment", {"order_id": "#W1", "payment_method_id": "gift_card_1"}, "already"),
        ("modify_pending_order_payment", {"order_id": "#W2", "payment_method_id": "gift_card_1"}, "delivered"),
        ("modify_pending_order_address", {"order_id": "#W2", **AWAY}, "delivered"),
        ("modify_user_address", {"user_id": "ann", **AWAY}, "ann"),
        (
            "return_delivered_order_items",
            {"order_id": "#W2", "item_ids": ["i1"], "payment_method_id": "credit_card_1"},
            "paypal_1",
        ),
        (
            "return_delivered_order_items",
            {"order_id": "#W2", "item_ids": ["i3"], "payment_method_id": "paypal_1"},
            "i3",
        ),
    ],
)
def test_what_the_shop_refuses(name, arguments, words):
    assert words in refused(name, arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("open_the_safe", {}, "unknown tool"),
        ("cancel_pending_order", {"order_id": "#W1"}, "missing reason"),
        ("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed", "force": True}, "unknown force"),
        ("cancel_pending_order", {"order_id": 1, "reason": "no longer needed"}, "order_id must be a string"),
        ("modify_pending_order_items", swap("#W1", "i1", ["i2"], "paypal_1"), "list of strings"),
        ("modify_pending_order_items", swap("#W1", ["i1"], [2], "paypal_1"), "list of strings"),
        ("modify_user_address", {"user_id": "ann_lee_1", **AWAY, "zip": 16501}, "zip must be a string"),
        ("list_all_product_types", {"all": "yes"}, "unknown all"),
        ("get_user_details", {"user_id": ["ann_lee_1"]}, "must be a string"),
    ],
)
def test_calls_that_do_not_fit_a_tool(name, arguments, words):
    assert words in refused(name, arguments, valid=False)


def test_a_gap_in_the_database_is_a_refusal_that_changes_nothing():
    stray = {**BASE.orders["#W1"], "payment_history": [*BASE.orders["#W1"]["payment_history"]]}
    stray["payment_history"].append(
        {"transaction_type": "payment", "amount": 1.0, "payment_method_id": "gift_card_gone"}
    )
    shop = Shop(Database({"#W1": stray}, BASE.products, BASE.users))
    refused("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"}, shop=shop)
    assert balance(shop) == 20


def test_a_failed_call_does_not_stop_the_replay_and_a_transfer_ends_a_draft():
    calls = [
        Call("cancel_pending_order", {"order_id": "#W2", "reason": "no longer needed"}),
        Call("transfer_to_human_agents", {"summary": "s"}),
        Call("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"}),
    ]
    whole, draft = Shop(BASE), Shop(BASE)
    assert [entry.outcome.ok for entry in play(whole, calls, ends_at_transfer=False)] == [False, True, True]
    assert [entry.outcome.ok for entry in play(draft, calls, ends_at_transfer=True)] == [False, True]
    assert whole.changes()
    assert not draft.changes()


values = st.one_of(
    st.sampled_from(["#W1", "#W2", "#W3", "ann_lee_1", "paypal_1", "gift_card_1", "no longer needed", "i1", "i5", ""]),
    st.lists(st.sampled_from(["i1", "i2", "i3", "i4", "i5", "j1"]), max_size=3),
    st.none() | st.integers() | st.text(max_size=4),
)


@given(
    calls=st.lists(
        st.sampled_from(sorted(TOOLS)).flatmap(
            lambda name: st.tuples(st.just(name), st.fixed_dictionaries(dict.fromkeys(TOOLS[name].arguments, values)))
        ),
        max_size=5,
    )
)
def test_any_arguments_give_an_outcome_and_the_database_itself_never_changes(calls):
    shop = Shop(BASE)
    for name, arguments in calls:
        before = shop.fingerprint()
        outcome = run_tool(shop, name, arguments)
        if not outcome.ok or not TOOLS[name].writes:
            assert shop.fingerprint() == before
    assert (BASE.orders, BASE.products, BASE.users) == PRISTINE
    changed = dict(shop.changes())
    whole = Database(
        {**BASE.orders, **{key: row for (table, key), row in changed.items() if table == "orders"}},
        BASE.products,
        {**BASE.users, **{key: row for (table, key), row in changed.items() if table == "users"}},
    )
    assert shop.digest() == whole.digest
    assert (shop.digest() == BASE.digest) == (not changed)


def test_undoing_a_change_gives_the_state_of_before():
    shop = after(
        ("modify_user_address", {"user_id": "ann_lee_1", **AWAY}),
        ("modify_user_address", {"user_id": "ann_lee_1", **HOME}),
    )
    assert shop.fingerprint() == Shop(BASE).fingerprint()


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2 + 3 * 4", 14.0), (" (1.005 - .5)/3", 0.17), ("-2*-3", 6.0), ("7//2", 3.0), ("2**10", 1024.0), ("10 / 4", 2.5)],
)
def test_calculate(expression, value):
    assert evaluate(expression) == value
    assert run_tool(Shop(BASE), "calculate", {"expression": expression}).text == str(value)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1/0",
        "2 +",
        "1,000",
        "abs(1)",
        "9**9**9",
        "(" * 500,
        "1" * 2000,
        "()",
        "5()",
        "...",
        "(-1)**.5",
        "1e5",
        "012",
    ],
)
def test_calculate_refuses(expression):
    refused("calculate", {"expression": expression})
