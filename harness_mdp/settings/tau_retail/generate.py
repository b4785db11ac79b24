"""Generated tasks of `tau_retail`: requests made of units, each about one order of the task's own customer.

Easy: one unit, one other order. Standard: two units, two other orders. Hard: three units, four other orders,
orders named by what is in them, and wishes whose first choice is sold out. The first unit is the template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness_mdp.hashing import generator
from harness_mdp.settings.tasks import TaskStore
from harness_mdp.settings.tau_retail.data import Database, Record
from harness_mdp.settings.tau_retail.draft import Call
from harness_mdp.settings.tau_retail.policy import OWN_POLICY
from harness_mdp.settings.tau_retail.shop import Customer, make_address, make_customer, make_products, pick
from harness_mdp.settings.tau_retail.tasks import Spec, store

__all__ = ["TEMPLATES", "generate", "generated_specs"]

_UNITS = {"easy": 1, "standard": 2, "hard": 3}
_OTHERS = {"easy": 1, "standard": 2, "hard": 4}
_SHARES = {"easy": 0.2, "hard": 0.2}
_REASONS = {"no longer needed": "you no longer need it", "ordered by mistake": "you ordered it by mistake"}


@dataclass(frozen=True)
class _Scene:
    """What a unit is made from."""

    rng: np.random.Generator
    customer: Customer
    order: Record
    products: Mapping[str, Record]
    hard: bool

    @property
    def order_name(self) -> str:
        """How the customer names the order: by id, or, if hard, by an item that no other order holds."""
        if self.hard:
            return f"your {self.order['status']} order with the {self.order['items'][0]['name']}"
        return f"order {self.order['order_id']}"

    def method(self, *sources: str) -> Record:
        """A payment method of one of `sources`."""
        methods = self.customer.user["payment_methods"].values()
        return pick(self.rng, [row for row in methods if row["source"] in sources])


@dataclass(frozen=True)
class _Unit:
    """One wish: its wording, the calls that fulfil it, the texts that answer it."""

    text: str
    calls: tuple[Call, ...] = ()
    outputs: tuple[str, ...] = ()


def _cancel(scene: _Scene) -> _Unit:
    reason = pick(scene.rng, list(_REASONS))
    call = Call("cancel_pending_order", {"order_id": scene.order["order_id"], "reason": reason})
    return _Unit(f"You want to cancel {scene.order_name} because {_REASONS[reason]}.", (call,))


def _return(scene: _Scene) -> _Unit:
    items = scene.order["items"]
    chosen = items[: max(1, len(items) - int(scene.rng.integers(2)))]
    paid: str = scene.order["payment_history"][0]["payment_method_id"]
    card = scene.method("gift_card")
    to_card = bool(scene.rng.integers(2)) and paid != card["id"]
    where = "your gift card" if to_card else "the payment method that you paid it with"
    names = " and the ".join(item["name"] for item in chosen)
    arguments = {
        "order_id": scene.order["order_id"],
        "item_ids": [item["item_id"] for item in chosen],
        "payment_method_id": card["id"] if to_card else paid,
    }
    text = f"You want to return the {names} of {scene.order_name}; the refund should go to {where}."
    return _Unit(text, (Call("return_delivered_order_items", arguments),))


def _swap(tool: str, verb: str) -> Callable[[_Scene], _Unit]:
    def unit(scene: _Scene) -> _Unit:
        item = scene.order["items"][-1]
        wish, new = _wish(scene, item)
        method = scene.method("credit_card", "paypal")
        pays = "PayPal" if method["source"] == "paypal" else f"your card ending in {method['last_four']}"
        arguments = {
            "order_id": scene.order["order_id"],
            "item_ids": [item["item_id"]],
            "new_item_ids": [new["item_id"]],
            "payment_method_id": method["id"],
        }
        text = f"You want to {verb} the {item['name']} of {scene.order_name} for {wish}; use {pays} for the difference."
        return _Unit(text, (Call(tool, arguments),))

    return unit


def _wish(scene: _Scene, item: Record) -> tuple[str, Record]:
    """The wording of a wish for another item of the same product, and the item that it comes down to."""
    variants = [
        row for row in scene.products[item["product_id"]]["variants"].values() if row["item_id"] != item["item_id"]
    ]
    if scene.hard:
        gone = [row for row in variants if not row["available"]]
        if gone:
            wanted = pick(scene.rng, gone)
            cheapest = min((row for row in variants if row["available"]), key=lambda row: row["price"])
            options = _wording(wanted["options"])
            return f"the one with {options}, or if that is not available for the cheapest available other one", cheapest
    new = pick(scene.rng, [row for row in variants if row["available"]])
    changed = {name: value for name, value in new["options"].items() if item["options"][name] != value}
    return f"one with {_wording(changed)}, otherwise the same", new


def _wording(options: Mapping[str, str]) -> str:
    return " and ".join(f"{name} {value}" for name, value in options.items())


def _address(scene: _Scene) -> _Unit:
    address = make_address(scene.rng)
    where = (
        f"{address['address1']}, {address['address2']}, {address['city']}, {address['state']} {address['zip']}, "
        f"{address['country']}"
    )
    call = Call("modify_pending_order_address", {"order_id": scene.order["order_id"], **address})
    return _Unit(f"You want {scene.order_name} sent to {where}.", (call,))


def _payment(scene: _Scene) -> _Unit:
    paid = scene.order["payment_history"][0]["payment_method_id"]
    methods = scene.customer.user["payment_methods"].values()
    method = pick(scene.rng, [row for row in methods if row["source"] != "gift_card" and row["id"] != paid])
    name = "PayPal" if method["source"] == "paypal" else f"your card ending in {method['last_four']}"
    arguments = {"order_id": scene.order["order_id"], "payment_method_id": method["id"]}
    return _Unit(
        f"You want to pay {scene.order_name} with {name} instead.", (Call("modify_pending_order_payment", arguments),)
    )


def _question(scene: _Scene) -> _Unit:
    """A figure that the records hold: what was paid, how many options are available, or a tracking number."""
    kind = int(scene.rng.integers(3))
    if kind == 0:
        # The shortest form: it also occurs in one with a trailing zero, so the way it is written does not matter.
        amount = f"{scene.order['payment_history'][0]['amount']:.2f}".rstrip("0").rstrip(".")
        return _Unit(f"You want to know what you paid for {scene.order_name}.", (), (amount,))
    if kind == 1:
        tracking = scene.order["fulfillments"][0]["tracking_id"][0]
        return _Unit(f"You want to know the tracking number of {scene.order_name}.", (), (tracking,))
    product = scene.products[scene.order["items"][0]["product_id"]]
    available = sum(row["available"] for row in product["variants"].values())
    text = f"You want to know how many {product['name']} options are available at the moment."
    return _Unit(text, (), (str(available),))


def _refused(scene: _Scene) -> _Unit:
    """A wish that the policy forbids: nothing may change, whatever is said."""
    return _Unit(f"You want to cancel {scene.order_name}; if that cannot be done, leave it as it is.")


_KINDS: Mapping[str, tuple[str, Callable[[_Scene], _Unit]]] = {
    "cancel": ("pending", _cancel),
    "return": ("delivered", _return),
    "exchange": ("delivered", _swap("exchange_delivered_order_items", "exchange")),
    "modify_items": ("pending", _swap("modify_pending_order_items", "change")),
    "address": ("pending", _address),
    "payment": ("pending", _payment),
    "question": ("delivered", _question),
    "refused": ("processed", _refused),
}
"""Unit -> status of the order that it is about, and how it is made."""

TEMPLATES = tuple(_KINDS)
_STATUSES = ("pending", "delivered", "processed", "cancelled")


def generated_specs(seed: int, n: int) -> tuple[Database, list[Spec]]:
    """A database and `n` tasks: 20% easy, 60% standard, 20% hard, templates in turn.

    Raises:
        ValueError: `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}; expected at least 1")
    counts = {level: round(share * n) for level, share in _SHARES.items()}
    counts = {"easy": counts["easy"], "standard": n - sum(counts.values()), "hard": counts["hard"]}
    products = make_products(seed)
    specs: list[Spec] = []
    customers: list[Customer] = []
    for level, count in counts.items():
        for index in range(count):
            template = TEMPLATES[index % len(TEMPLATES)]
            spec, customer = _task(seed, f"{level}-{index:03d}", template, level, products)
            specs.append(spec)
            customers.append(customer)
    orders = {order["order_id"]: order for customer in customers for order in customer.orders}
    users = {customer.user_id: customer.user for customer in customers}
    if len(orders) != sum(len(customer.orders) for customer in customers) or len(users) != len(customers):
        raise ValueError(f"seed {seed}, n {n}: an id was drawn twice; take another seed")
    return Database(orders, products, users), specs


def _task(seed: int, name: str, template: str, level: str, products: dict[str, Record]) -> tuple[Spec, Customer]:
    rng = generator("tau_retail", "task", seed, name)
    others = [kind for kind in TEMPLATES if kind != template]
    kinds = [template, *(others[int(i)] for i in rng.permutation(len(others))[: _UNITS[level] - 1])]
    statuses = [_KINDS[kind][0] for kind in kinds] + [pick(rng, _STATUSES) for _ in range(_OTHERS[level])]
    customer = make_customer(seed, name, products, statuses)
    scenes = [_Scene(rng, customer, order, products, level == "hard") for order in customer.orders]
    units = [_KINDS[kind][1](scene) for kind, scene in zip(kinds, scenes, strict=False)]
    shuffled = [customer.user["orders"][int(i)] for i in rng.permutation(len(statuses))]
    customer = replace(customer, user={**customer.user, "orders": shuffled})
    full = f"{customer.user['name']['first_name']} {customer.user['name']['last_name']}"
    identity = (
        f"Your email is {customer.user['email']}"
        if rng.integers(2)
        else f"Your zip code is {customer.user['address']['zip']}"
    )
    text = f"You are {full}. {identity}. " + " ".join(unit.text for unit in units)
    actions = tuple(call for unit in units for call in unit.calls)
    outputs = tuple(output for unit in units for output in unit.outputs)
    return Spec(name, template, level, customer.user_id, text, actions, outputs), customer


def generate(seed: int, n: int) -> TaskStore:
    """`n` tasks with a database of their own; the same seed and n, byte-identical tasks."""
    base, specs = generated_specs(seed, n)
    return store(base, specs, OWN_POLICY)
