"""Solves generated retail requests from their wording and the records alone, without the generator's code."""

import re

ORDER = r"(?P<order>order #W\d+|your \w+ order with the [A-Z][\w ]+?)"
REASONS = {"you no longer need it": "no longer needed", "you ordered it by mistake": "ordered by mistake"}


def solve(base, instruction):
    """(calls as (name, arguments), outputs)"""
    user_id = customer(base, instruction)
    user = base.users[user_id]
    orders = [base.orders[order_id] for order_id in user["orders"]]
    calls, outputs = [], []
    for wish in re.findall(r"You want .*?\.(?= You want |$)", instruction):
        for pattern, solver in WISHES:
            match = re.fullmatch(pattern, wish)
            if match:
                solver(base, user, orders, match, calls, outputs)
                break
        else:
            raise AssertionError(f"no rule for: {wish}")
    return calls, outputs


def customer(base, instruction):
    first, last = re.match(r"You are (\w+) (\w+)\.", instruction).groups()
    email = re.search(r"Your email is (\S+)\.", instruction)
    code = re.search(r"Your zip code is (\d{5})\.", instruction)
    found = [
        key
        for key, user in base.users.items()
        if user["name"] == {"first_name": first, "last_name": last}
        and (user["email"] == email[1] if email else user["address"]["zip"] == code[1])
    ]
    assert len(found) == 1, instruction
    return found[0]


def order_of(orders, text):
    if text.startswith("order "):
        return next(order for order in orders if order["order_id"] == text.removeprefix("order "))
    status, name = re.fullmatch(r"your (\w+) order with the (.+)", text).groups()
    found = [o for o in orders if o["status"] == status and name in [item["name"] for item in o["items"]]]
    assert len(found) == 1, text
    return found[0]


def method_of(user, text):
    for key, method in user["payment_methods"].items():
        if text == "PayPal" and method["source"] == "paypal":
            return key
        if text == f"your card ending in {method.get('last_four')}":
            return key
        if text == "your gift card" and method["source"] == "gift_card":
            return key
    raise AssertionError(text)


def options_of(text, names):
    """`color red and size L` -> {"color": "red", "size": "L"}"""
    pattern = r"(?:^| and )(" + "|".join(map(re.escape, names)) + r") (.+?)(?= and (?:" + "|".join(names) + r") |$)"
    return dict(re.findall(pattern, text))


def cancel(base, user, orders, match, calls, outputs):
    order = order_of(orders, match["order"])
    calls.append(("cancel_pending_order", {"order_id": order["order_id"], "reason": REASONS[match["reason"]]}))


def give_back(base, user, orders, match, calls, outputs):
    order = order_of(orders, match["order"])
    names = match["names"].split(" and the ")
    paid = order["payment_history"][0]["payment_method_id"]
    arguments = {
        "order_id": order["order_id"],
        "item_ids": [item["item_id"] for name in names for item in order["items"] if item["name"] == name],
        "payment_method_id": paid if match["where"].startswith("the payment") else method_of(user, match["where"]),
    }
    calls.append(("return_delivered_order_items", arguments))


def swap(base, user, orders, match, calls, outputs):
    order = order_of(orders, match["order"])
    item = next(item for item in order["items"] if item["name"] == match["name"])
    variants = base.products[item["product_id"]]["variants"]
    wish = match["wish"]
    same = re.fullmatch(r"one with (.+), otherwise the same", wish)
    if same:
        wanted = item["options"] | options_of(same[1], item["options"])
        found = [key for key, row in variants.items() if row["options"] == wanted and row["available"]]
    else:
        first = re.fullmatch(r"the one with (.+), or if that is not available for the cheapest .+ other one", wish)
        wanted = options_of(first[1], item["options"])
        found = [key for key, row in variants.items() if row["options"] == wanted and row["available"]]
        others = [key for key, row in variants.items() if row["available"] and key != item["item_id"]]
        found = found or [min(others, key=lambda key: variants[key]["price"])]
    assert len(found) == 1, wish
    arguments = {
        "order_id": order["order_id"],
        "item_ids": [item["item_id"]],
        "new_item_ids": found,
        "payment_method_id": method_of(user, match["pays"]),
    }
    exchanges = match["verb"] == "exchange"
    calls.append(("exchange_delivered_order_items" if exchanges else "modify_pending_order_items", arguments))


def address(base, user, orders, match, calls, outputs):
    street, flat, city, zone, country = match["where"].split(", ")
    state, code = zone.split(" ")
    arguments = {"order_id": order_of(orders, match["order"])["order_id"], "address1": street, "address2": flat}
    arguments |= {"city": city, "state": state, "country": country, "zip": code}
    calls.append(("modify_pending_order_address", arguments))


def payment(base, user, orders, match, calls, outputs):
    arguments = {
        "order_id": order_of(orders, match["order"])["order_id"],
        "payment_method_id": method_of(user, match["pays"]),
    }
    calls.append(("modify_pending_order_payment", arguments))


def paid(base, user, orders, match, calls, outputs):
    cents = round(100 * sum(item["price"] for item in order_of(orders, match["order"])["items"]))
    outputs.append(f"{cents // 100}.{cents % 100:02d}")


def tracking(base, user, orders, match, calls, outputs):
    outputs.append(order_of(orders, match["order"])["fulfillments"][0]["tracking_id"][0])


def stock(base, user, orders, match, calls, outputs):
    variants = next(p for p in base.products.values() if p["name"] == match["name"])["variants"]
    outputs.append(str(len([row for row in variants.values() if row["available"]])))


def refuse(base, user, orders, match, calls, outputs):
    assert order_of(orders, match["order"])["status"] != "pending"


WISHES = (
    (rf"You want to cancel {ORDER} because (?P<reason>.+)\.", cancel),
    (rf"You want to cancel {ORDER}; if that cannot be done, leave it as it is\.", refuse),
    (rf"You want to return the (?P<names>.+) of {ORDER}; the refund should go to (?P<where>.+)\.", give_back),
    (
        rf"You want to (?P<verb>exchange|change) the (?P<name>.+?) of {ORDER} for (?P<wish>.+); "
        r"use (?P<pays>.+) for the difference\.",
        swap,
    ),
    (rf"You want {ORDER} sent to (?P<where>.+)\.", address),
    (rf"You want to pay {ORDER} with (?P<pays>PayPal|your card ending in \d+) instead\.", payment),
    (rf"You want to know what you paid for {ORDER}\.", paid),
    (rf"You want to know the tracking number of {ORDER}\.", tracking),
    (r"You want to know how many (?P<name>.+) options are available at the moment\.", stock),
)
