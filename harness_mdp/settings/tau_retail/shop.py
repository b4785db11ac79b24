"""A generated retail shop in the upstream schema: products with variants, customers, their orders.

Every record is drawn from generators that depend on the seed and the record alone. A generated task has a
customer of its own, so no two tasks share an instance.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from harness_mdp.hashing import generator
from harness_mdp.settings.tau_retail.data import Record

_T = TypeVar("_T")

__all__ = ["Customer", "make_address", "make_customer", "make_products", "pick"]

_PRODUCTS: dict[str, dict[str, tuple[str, ...]]] = {
    "Rain Jacket": {"color": ("navy", "olive", "yellow"), "size": ("S", "M", "L"), "lining": ("mesh", "fleece")},
    "Desk Fan": {"color": ("white", "black"), "blade": ("20 cm", "30 cm"), "power": ("USB", "mains", "battery")},
    "Travel Mug": {"volume": ("350 ml", "500 ml"), "color": ("red", "steel", "mint"), "lid": ("screw", "flip")},
    "Camping Tent": {"persons": ("two", "three", "four"), "color": ("green", "sand"), "season": ("summer", "all year")},
    "Floor Rug": {
        "material": ("wool", "jute", "cotton"),
        "size": ("120 cm", "160 cm"),
        "pattern": ("plain", "striped"),
    },
    "Chef Knife": {"length": ("16 cm", "20 cm", "24 cm"), "handle": ("wood", "polymer"), "edge": ("smooth", "fluted")},
    "Soundbar": {"length": ("short", "long"), "finish": ("black", "grey", "walnut"), "input": ("HDMI", "optical")},
    "Board Game": {"language": ("English", "French", "German"), "edition": ("base", "deluxe"), "age": ("8+", "12+")},
    "Hammock": {"fabric": ("nylon", "canvas", "cotton"), "width": ("single", "double"), "color": ("blue", "rust")},
    "Wall Mirror": {"shape": ("round", "oval", "square"), "frame": ("brass", "oak"), "size": ("40 cm", "60 cm")},
    "Electric Drill": {"voltage": ("12 V", "18 V", "20 V"), "chuck": ("10 mm", "13 mm"), "case": ("bag", "box")},
    "Reading Lamp": {"mount": ("clip", "stand", "wall"), "light": ("warm", "neutral"), "color": ("black", "white")},
    "Garden Bench": {"wood": ("teak", "acacia", "pine"), "length": ("120 cm", "150 cm"), "arms": ("yes", "no")},
    "Piano Keyboard": {"keys": ("61", "76", "88"), "action": ("light", "weighted"), "stand": ("included", "none")},
    "Winter Gloves": {"size": ("S", "M", "L"), "material": ("leather", "wool"), "color": ("brown", "black")},
    "Pressure Cooker": {"volume": ("3 l", "5 l", "7 l"), "base": ("induction", "plain"), "color": ("steel", "red")},
    "Star Projector": {"lamp": ("LED", "laser"), "speaker": ("yes", "no"), "color": ("white", "black", "blue")},
    "Picnic Basket": {"size": ("small", "medium", "large"), "weave": ("willow", "rattan"), "cooler": ("yes", "no")},
}
_FIRST = (
    "Ada",
    "Bram",
    "Cleo",
    "Dario",
    "Edda",
    "Farid",
    "Gwen",
    "Hugo",
    "Ines",
    "Jonas",
    "Kira",
    "Leon",
    "Mona",
    "Nils",
    "Orla",
    "Pavel",
    "Quinn",
    "Rosa",
    "Sven",
    "Tilda",
    "Uma",
    "Viggo",
    "Wanda",
    "Yara",
)
_LAST = (
    "Abbott",
    "Bauer",
    "Costa",
    "Duval",
    "Ekman",
    "Foley",
    "Greco",
    "Holm",
    "Ivers",
    "Jansen",
    "Kowal",
    "Lind",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
    "Quist",
    "Reyes",
    "Sato",
    "Tanner",
)
_STREETS = ("Larch Lane", "Mill Road", "Harbour Street", "Quarry Hill", "Station Avenue", "Meadow Court", "Orchard Way")
_CITIES = (
    ("Portland", "OR", "97"),
    ("Boise", "ID", "83"),
    ("Tucson", "AZ", "85"),
    ("Omaha", "NE", "68"),
    ("Toledo", "OH", "43"),
)
_BRANDS = ("visa", "mastercard")


def pick(rng: np.random.Generator, values: Sequence[_T]) -> _T:
    """One of `values`."""
    return values[int(rng.integers(len(values)))]


def _digits(rng: np.random.Generator, n: int) -> str:
    """A number of exactly n digits, the first not 0."""
    return str(int(rng.integers(10 ** (n - 1), 10**n)))


def make_products(seed: int) -> dict[str, Record]:
    """Products by id. Prices differ within a product, at least two thirds of the variants are available."""
    products: dict[str, Record] = {}
    for name, options in _PRODUCTS.items():
        rng = generator("tau_retail", "product", seed, name)
        product_id = _digits(rng, 10)
        combinations = list(itertools.product(*options.values()))
        prices = rng.choice(np.arange(2000, 24000), size=len(combinations), replace=False)
        missing = set(rng.choice(len(combinations), size=len(combinations) // 3, replace=False).tolist())
        variants: dict[str, Record] = {}
        for index, values in enumerate(combinations):
            item_id = _digits(rng, 10)
            chosen = dict(zip(options, values, strict=True))
            price = round(int(prices[index]) / 100, 2)
            variants[item_id] = {
                "item_id": item_id,
                "options": chosen,
                "available": index not in missing,
                "price": price,
            }
        products[product_id] = {"name": name, "product_id": product_id, "variants": variants}
    return products


@dataclass(frozen=True)
class Customer:
    """A user and the orders."""

    user_id: str
    user: Record
    orders: tuple[Record, ...]


def make_customer(seed: int, key: str, products: dict[str, Record], statuses: Sequence[str]) -> Customer:
    """The customer of task `key`, with one order for each of `statuses`; no product is bought twice."""
    rng = generator("tau_retail", "customer", seed, key)
    first, last = pick(rng, _FIRST), pick(rng, _LAST)
    user_id = f"{first}_{last}_{_digits(rng, 5)}".lower()
    methods: dict[str, Record] = {}
    for source in ("credit_card", "gift_card", "paypal"):
        method_id = f"{source}_{_digits(rng, 7)}"
        methods[method_id] = {"source": source, "id": method_id}
        if source == "credit_card":
            methods[method_id] |= {"brand": pick(rng, _BRANDS), "last_four": _digits(rng, 4)}
        elif source == "gift_card":
            methods[method_id]["balance"] = int(rng.integers(5, 90))
    home = make_address(rng)
    shelf = [list(products)[index] for index in rng.permutation(len(products))]
    sizes = rng.integers(1, 4, size=len(statuses))
    orders: list[Record] = []
    for number, status in enumerate(statuses):
        left = len(statuses) - number - 1
        size = min(int(sizes[number]), len(shelf) - left)  # every later order still gets an item
        taken, shelf = shelf[:size], shelf[size:]
        method_id = pick(rng, list(methods))
        orders.append(_order(rng, user_id, status, [products[key] for key in taken], method_id, home))
    user: Record = {
        "name": {"first_name": first, "last_name": last},
        "address": home,
        "email": f"{first}.{last}{_digits(rng, 4)}@example.com".lower(),
        "payment_methods": methods,
        "orders": [order["order_id"] for order in orders],
    }
    return Customer(user_id, user, tuple(orders))


def make_address(rng: np.random.Generator) -> dict[str, str]:
    """An address in the upstream shape."""
    city, state, zone = pick(rng, _CITIES)
    return {
        "address1": f"{int(rng.integers(10, 990))} {pick(rng, _STREETS)}",
        "address2": f"Apt {int(rng.integers(1, 99))}",
        "city": city,
        "country": "USA",
        "state": state,
        "zip": f"{zone}{int(rng.integers(100, 999))}",
    }


def _order(
    rng: np.random.Generator, user_id: str, status: str, bought: Sequence[Record], method_id: str, home: dict[str, str]
) -> Record:
    items: list[Record] = []
    for product in bought:
        variant = pick(rng, list(product["variants"].values()))
        items.append(
            {
                "name": product["name"],
                "product_id": product["product_id"],
                "item_id": variant["item_id"],
                "price": variant["price"],
                "options": dict(variant["options"]),
            }
        )
    amount = round(sum(item["price"] for item in items), 2)
    history = [{"transaction_type": "payment", "amount": amount, "payment_method_id": method_id}]
    if status == "cancelled":
        history.append({"transaction_type": "refund", "amount": amount, "payment_method_id": method_id})
    sent = [{"tracking_id": [_digits(rng, 12)], "item_ids": [item["item_id"] for item in items]}]
    return {
        "order_id": f"#W{_digits(rng, 7)}",
        "user_id": user_id,
        "address": dict(home),
        "items": items,
        "fulfillments": sent if status in ("processed", "delivered") else [],
        "status": status,
        "payment_history": history,
    }
