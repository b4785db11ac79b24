"""Templates about goods: `recipe`, `shipping`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from harness_mdp.settings.multi_tool.chains import FROM_TABLE, Chain, Plan, table

__all__ = ["recipe", "shipping"]


def recipe(chain: Chain, difficulty: str) -> Plan:
    """Scaling a recipe, minus what is in stock (in ounces), and packs to buy when hard."""
    (item, other, third, fourth) = chain.pick(("flour", "sugar", "rice", "oats", "butter", "beans"), 4)
    serves = chain.whole(3, 6)
    guests = chain.whole(serves + 2, 30)
    grams = chain.whole(155, 695, 10)
    needed = f"calculator: {grams} * {guests} / {serves}"
    upside_down = f"calculator: {grams} * {serves} / {guests}"
    opening = f"A recipe for {serves} people takes {grams} g of {item}. {guests} people come."
    chain.given("guests", str(guests), [str(guests + 1), str(serves)], "guests may be misread")
    if difficulty == "easy":
        chain.given("serves", str(serves), [str(serves + 1)], "serves may be misread")
        wrong = (upside_down, f"calculator: {grams} * {guests}")
        chain.step("answer", needed, wrong=wrong, fault="the scaling may be wrong")
        return chain.plan(f"Grams of {item} that are needed", opening, f"calculator: {grams} * {guests} /")
    stocked = {name: (chain.decimal(1, 5), chain.whole(200, 900, 50)) for name in (item, other, third)}
    if difficulty == "hard":
        stocked[fourth] = (chain.decimal(1, 5), chain.whole(200, 900, 50))
    rows = [[name, float(ounces), pack] for name, (ounces, pack) in sorted(stocked.items())]
    chain.tables["stock"] = table(("item", "ounces", "pack_g"), rows, "ounces at hand; grams in a new pack")
    need = chain.step("needed_g", needed, wrong=(upside_down,), fault="the scaling may be wrong")
    ounces = chain.step(
        "stock_oz",
        f"table: lookup stock ounces where item = {item}",
        wrong=(f"table: lookup stock ounces where item = {other}",),
        fault="the wrong row of the stock may be read",
        needs=FROM_TABLE,
    )
    grams_there = chain.step(
        "stock_g",
        f"convert: {ounces} oz to g",
        wrong=(f"convert: {ounces} lb to g", f"calculator: {ounces} * 31.1"),
        fault="the unit factor may be wrong",
    )
    if difficulty == "standard":
        wrong = (f"calculator: {need} + {grams_there}", f"calculator: {need} - {ounces}")
        chain.step("answer", f"calculator: {need} - {grams_there}", wrong=wrong, fault="the difference may be wrong")
        details = f"{opening} What is in stock is used first. {chain.asides(difficulty)}"
        return chain.plan(f"Grams of {item} to buy", details, f"convert: {ounces} oz")
    pack = chain.step(
        "pack_g",
        f"table: lookup stock pack_g where item = {item}",
        wrong=(f"table: lookup stock pack_g where item = {third}", f"table: lookup stock pack_g where item = {fourth}"),
        fault="the wrong pack may be read",
        needs=FROM_TABLE,
    )
    chain.step(
        "answer",
        f"calculator: ceil(({need} - {grams_there}) / {pack})",
        wrong=(
            f"calculator: floor(({need} - {grams_there}) / {pack})",
            f"calculator: ceil(({need} + {grams_there}) / {pack})",
        ),
        fault="the number of packs may be rounded wrong",
    )
    details = f"{opening} What is in stock is used first, the rest is bought in whole packs. {chain.asides(difficulty)}"
    return chain.plan(f"Packs of {item} to buy", details, f"table: lookup stock where item = {item}")


def shipping(chain: Chain, difficulty: str) -> Plan:
    """The price of a parcel from a table of weight bands; weights in pounds or summed in grams."""
    count = chain.whole(3, 12)
    if difficulty == "easy":
        each, price = chain.decimal(1.2, 6), chain.decimal(2, 7)
        chain.given("parcels", str(count), [str(count + 1), str(count - 1)], "parcels may be misread")
        chain.given("kg_each", each, [price], "kg_each may be misread")
        chain.step(
            "answer",
            f"calculator: {count} * {each} * {price}",
            wrong=(f"calculator: {each} * {price}", f"calculator: {count} * ({each} + {price})"),
            fault="the product may be wrong",
        )
        details = f"{count} parcels of {each} kg each go at {price} EUR a kilogram."
        return chain.plan("Shipping cost in EUR", details, f"calculator: {count} * * {each}")
    zone, *others = chain.pick(("A", "B", "C", "D"), 3 if difficulty == "hard" else 2)
    edges = [0, 3, 8, 15, 30]
    rows = [
        [z, low, high, chain.whole(40, 60) + 25 * i + 9 * j]
        for j, z in enumerate(sorted((zone, *others)))
        for i, (low, high) in enumerate(pairwise(edges))
    ]
    chain.tables["bands"] = table(
        ("zone", "over_kg", "up_to_kg", "eur"), rows, "a parcel of exactly up_to_kg is still in that band"
    )

    def price_of(weight: str) -> str:
        low, high = _band(edges, float(weight))
        above = edges.index(high)
        near = (high, edges[above + 1]) if high < edges[-1] else (edges[above - 2], low)
        return chain.step(
            "eur_each" if difficulty == "standard" else "band_eur",
            f"table: lookup bands eur where zone = {zone} and over_kg < {weight} and up_to_kg >= {weight}",
            wrong=(
                f"table: lookup bands eur where zone = {zone} and over_kg = {near[0]} and up_to_kg = {near[1]}",
                f"table: lookup bands eur where zone = {others[0]} and over_kg < {weight} and up_to_kg >= {weight}",
            ),
            fault="the wrong row of the bands may be read",
            needs=FROM_TABLE,
        )

    if difficulty == "standard":
        pounds = chain.decimal(4, 60, 1)
        chain.given("parcels", str(count), [str(count + 1), str(count - 1)], "parcels may be misread")
        weight = chain.step(
            "weight_kg",
            f"convert: {pounds} lb to kg",
            wrong=(f"convert: {pounds} kg to lb", f"calculator: {pounds} / 2"),
            fault="the unit factor may be wrong",
        )
        eur = price_of(weight)
        wrong = (f"calculator: ({count} - 1) * {eur}", f"calculator: {count} + {eur}")
        chain.step("answer", f"calculator: {count} * {eur}", wrong=wrong, fault="the product may be wrong")
        details = f"{count} parcels of {pounds} lb each go to zone {zone}, each priced by its own weight."
        details += f" {chain.asides(difficulty)}"
        return chain.plan("Shipping cost in EUR", details, f"table: lookup bands eur where region = {zone}")
    order, another = chain.whole(11, 49), chain.whole(50, 89)
    goods = chain.pick(("lamp", "vase", "desk fan", "kettle", "radio", "clock", "stool"), 7)
    items = [[name, (order, another)[i % 2], chain.whole(410, 6900, 5)] for i, name in enumerate(goods)]
    chain.tables["items"] = table(("item", "order", "grams"), items, "one line for each thing ordered")
    services = [[name, chain.whole(5, 45)] for name in ("express", "night", "island")]
    chain.tables["surcharges"] = table(("service", "percent"), services, "percent on top of the band price")
    service, slower = chain.pick(("express", "night", "island"), 2)
    total = chain.step(
        "grams",
        f"table: sum items grams where order = {order}",
        wrong=(f"table: sum items grams where order = {another}", "table: sum items grams"),
        fault="rows of the wrong order may be added",
        needs=FROM_TABLE,
    )
    weight = chain.step(
        "weight_kg",
        f"convert: {total} g to kg",
        wrong=(f"convert: {total} g to lb", f"calculator: {total} / 100"),
        fault="the unit factor may be wrong",
    )
    eur = price_of(weight)
    percent = chain.step(
        "percent",
        f"table: lookup surcharges percent where service = {service}",
        wrong=(f"table: lookup surcharges percent where service = {slower}",),
        fault="the wrong surcharge may be read",
        needs=FROM_TABLE,
    )
    chain.step(
        "answer",
        f"calculator: {eur} * (1 + {percent} / 100)",
        wrong=(f"calculator: {eur} * {percent} / 100", f"calculator: {eur} * (1 - {percent} / 100)"),
        fault="the surcharge may be added wrong",
    )
    details = (
        f"All things of order {order} go in one parcel to zone {zone}, with the {service} surcharge on top of the band "
        f"price. {chain.asides(difficulty)}"
    )
    return chain.plan("Shipping cost in EUR", details, f"table: sum items weight where order = {order}")


def _band(edges: Sequence[int], weight: float) -> tuple[int, int]:
    """The band that holds `weight`; its upper edge belongs to it."""
    return next((low, high) for low, high in pairwise(edges) if low < weight <= high)
