"""Read-only look-ups: what `retrieve` brings, decided by the request and the shop's records alone.

Round 1 is the customer, then the orders (those named first), then the variants of the products that the request
names, two products a round, then further orders. Texts are compact: one line a record where that can be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness_mdp.settings.protocol import Evidence
from harness_mdp.settings.tau_retail.data import Database, Record

__all__ = ["find_user", "lookup_rounds", "order_text", "product_text", "user_text"]

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_USER_ID = re.compile(r"\b[a-z]+_[a-z]+_\d+\b", re.IGNORECASE)
_ZIP = re.compile(r"\b\d{5}\b")
_ORDER_ID = re.compile(r"#?\bW\d{7}\b")
_FIRST_ORDERS = 5
_MORE_ORDERS = 4
_PRODUCTS_A_ROUND = 2
_MAX_PRODUCTS = 6
_GENERIC = frozenset({"set", "kit", "bulb"})
"""Last words of product names that name no product by themselves."""


def find_user(base: Database, request: str) -> str | None:
    """The customer's user id by what the request says: email, user id, name and zip code, or an order id."""
    for email in _EMAIL.findall(request):
        if email.lower().rstrip(".") in base.by_email:
            return base.by_email[email.lower().rstrip(".")]
    for user_id in _USER_ID.findall(request):
        if user_id.lower() in base.users:
            return user_id.lower()
    lowered = request.lower()
    for code in _ZIP.findall(request):
        for user_id in base.by_zip.get(code, ()):
            name = base.users[user_id]["name"]
            if name["first_name"].lower() in lowered and name["last_name"].lower() in lowered:
                return user_id
    named = _named_orders(base, request)
    return str(base.orders[named[0]]["user_id"]) if named else None


def lookup_rounds(base: Database, request: str) -> tuple[tuple[Evidence, ...], ...]:
    """Evidence by round of `retrieve`; an evidence id occurs once."""
    user_id = find_user(base, request)
    if user_id is None:
        return ()
    user = base.users[user_id]
    held = [order_id for order_id in user["orders"] if order_id in base.orders]
    named = [order_id for order_id in _named_orders(base, request) if order_id in held]
    orders = [*named, *(order_id for order_id in held if order_id not in named)]
    first, later = orders[:_FIRST_ORDERS], orders[_FIRST_ORDERS:]
    products = _relevant_products(base, request, named, orders)
    return tuple(
        tuple(items)
        for items in (
            [Evidence("user", user_text(user_id, user))],
            [_order(base, order_id) for order_id in first],
            *([_product(base, key) for key in chunk] for chunk in _chunks(products, _PRODUCTS_A_ROUND)),
            *([_order(base, order_id) for order_id in chunk] for chunk in _chunks(later, _MORE_ORDERS)),
        )
        if items
    )


def _chunks(keys: Sequence[str], size: int) -> list[Sequence[str]]:
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _order(base: Database, order_id: str) -> Evidence:
    return Evidence(f"order-{order_id}", order_text(base.orders[order_id]))


def _product(base: Database, product_id: str) -> Evidence:
    return Evidence(f"product-{product_id}", product_text(base.products[product_id]))


def _named_orders(base: Database, request: str) -> list[str]:
    found = ("#" + text.lstrip("#") for text in _ORDER_ID.findall(request))
    return list(dict.fromkeys(order_id for order_id in found if order_id in base.orders))


def _relevant_products(base: Database, request: str, named: Sequence[str], orders: Sequence[str]) -> list[str]:
    """Products that the request names, those that the customer bought first; else all of the orders it names."""
    words = {_stem(word) for word in re.findall(r"[a-z]+", request.lower().replace("-", ""))}
    squashed = re.sub(r"[^a-z]", "", request.lower())
    bought = [item["product_id"] for order_id in orders for item in base.orders[order_id]["items"]]
    candidates = dict.fromkeys([*bought, *base.products])
    mentioned = [
        key for key in candidates if key in base.products and _mentions(base.products[key]["name"], words, squashed)
    ]
    if not mentioned:
        held = [item["product_id"] for order_id in named for item in base.orders[order_id]["items"]]
        mentioned = [key for key in dict.fromkeys(held) if key in base.products]
    return mentioned[:_MAX_PRODUCTS]


def _mentions(name: str, words: set[str], squashed: str) -> bool:
    parts = [_stem(part) for part in re.findall(r"[a-z]+", name.lower().replace("-", ""))]
    key = parts[0] if parts[-1] in _GENERIC else parts[-1]
    return key in words or "".join(parts) in squashed


def _stem(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _address(address: Mapping[str, str]) -> str:
    street = ", ".join(part for part in (address["address1"], address["address2"]) if part)
    return f"{street}, {address['city']}, {address['state']} {address['zip']}, {address['country']}"


def user_text(user_id: str, user: Record) -> str:
    """A profile in one line: name, email, address, payment methods with balances, order ids."""
    methods = "; ".join(_method(method) for method in user["payment_methods"].values()) or "none"
    name = f"{user['name']['first_name']} {user['name']['last_name']}"
    orders = " ".join(user["orders"]) or "none"
    return f"user {user_id}: {name}, {user['email']}; {_address(user['address'])}; pays by {methods}; orders {orders}"


def _method(method: Record) -> str:
    if "balance" in method:
        return f"{method['id']} (balance ${method['balance']})"
    return f"{method['id']} ({method['brand']} {method['last_four']})" if "brand" in method else str(method["id"])


def order_text(order: Record) -> str:
    """An order: status, payments, address, tracking, then items with ids, prices, options, a line each."""
    payments = ", ".join(
        f"{p['transaction_type']} ${p['amount']} {p['payment_method_id']}" for p in order["payment_history"]
    )
    tracking = " ".join(code for part in order.get("fulfillments", ()) for code in part["tracking_id"])
    head = f"order {order['order_id']} is {order['status']}; {payments}; ships to {_address(order['address'])}"
    lines = [f"{head}; tracking {tracking}" if tracking else head]
    lines += [
        f"  item {item['item_id']} {item['name']} (product {item['product_id']}) ${item['price']} {_options(item)}"
        for item in order["items"]
    ]
    return "\n".join(lines)


def _options(item: Record) -> str:
    return "/".join(item["options"].values())


def product_text(product: Record) -> str:
    """A product and its available variants, a line each; option names once, at the top."""
    variants = list(product["variants"].values())
    available = [variant for variant in variants if variant["available"]]
    names = "/".join(variants[0]["options"]) if variants else ""
    count = f"{len(available)} of {len(variants)} options available, by {names}"
    head = f"product {product['product_id']} {product['name']}: {count}"
    return "\n".join([head, *(f"  item {v['item_id']} ${v['price']} {_options(v)}" for v in available)])
