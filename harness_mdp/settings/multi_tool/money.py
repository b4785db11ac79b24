"""Templates about money: `purchase`, `trip_cost`."""

from __future__ import annotations

from harness_mdp.settings.multi_tool.chains import FROM_TABLE, Chain, Plan, table

__all__ = ["purchase", "trip_cost"]


def purchase(chain: Chain, difficulty: str) -> Plan:
    """Discount and tax, or the interest on a loan paid back in equal months."""
    percent = chain.whole(4, 35)
    if difficulty == "easy":
        price = chain.decimal(20, 400)
        chain.given("price", price, [f"{float(price) + 10:.2f}"], "price may be misread")
        chain.given("percent", str(percent), [str(percent + 1), str(percent + 10)], "percent may be misread")
        chain.step(
            "answer",
            f"calculator: {price} * (1 - {percent} / 100)",
            wrong=(f"calculator: {price} * {percent} / 100", f"calculator: {price} * (1 + {percent} / 100)"),
            fault="the discount may be taken wrong",
        )
        details = f"A coat costs {price} EUR. The discount is {percent} %."
        return chain.plan("Price in EUR after the discount", details, f"calculator: {price} * (1 - {percent} / 100")
    goods = chain.pick(("bench", "drill", "press", "saw", "lathe", "crane"), 6 if difficulty == "hard" else 4)
    rows = [[name, float(chain.decimal(300, 900))] for name in sorted(goods)]
    chain.tables["prices"] = table(("item", "eur"), rows, "net price of one piece in EUR")
    item, other = goods[0], goods[1]
    count = chain.whole(3, 9)
    price = chain.step(
        "unit_price",
        f"table: lookup prices eur where item = {item}",
        wrong=(f"table: lookup prices eur where item = {other}",),
        fault="the wrong price may be read",
        needs=FROM_TABLE,
    )
    if difficulty == "standard":
        tax = chain.pick(("7", "19", "21", "23"), 1)[0]
        chain.given("percent_off", str(percent), [str(percent + 1), tax], "percent_off may be misread")
        net = chain.step(
            "net",
            f"calculator: {count} * {price} * (1 - {percent} / 100)",
            wrong=(f"calculator: {count} * {price} * {percent} / 100", f"calculator: {price} * (1 - {percent} / 100)"),
            fault="the discount may be taken wrong",
        )
        chain.step(
            "answer",
            f"calculator: {net} * (1 + {tax} / 100)",
            wrong=(f"calculator: {net} * (1 - {tax} / 100)", f"calculator: {net} * {tax} / 100"),
            fault="the tax may be added wrong",
        )
        details = f"{count} pieces of item {item} are bought with {percent} % off, then {tax} % tax is added."
        details += f" {chain.asides(difficulty)}"
        return chain.plan("Price in EUR with discount and tax", details, f"table: lookup prices where item = {item}")
    years, longer = chain.pick(("2", "3", "4", "5"), 2)
    months = 12 * int(years)
    loans = [[n, chain.whole(30, 95, 5) / 10] for n in (2, 3, 4, 5)]
    chain.tables["loans"] = table(("years", "percent_a_year"), loans, "a twelfth of the yearly rate is due each month")
    deposit = chain.whole(100, 600, 50)
    loan = chain.step(
        "loan",
        f"calculator: {count} * {price} - {deposit}",
        wrong=(f"calculator: {count} * {price}", f"calculator: {count} * ({price} - {deposit})"),
        fault="the deposit may be taken off wrong",
    )
    rate = chain.step(
        "percent_a_year",
        f"table: lookup loans percent_a_year where years = {years}",
        wrong=(f"table: lookup loans percent_a_year where years = {longer}",),
        fault="the wrong rate may be read",
        needs=FROM_TABLE,
    )
    monthly = chain.step(
        "monthly",
        f"calculator: {loan} * ({rate} / 1200) / (1 - (1 + {rate} / 1200) ** -{months})",
        wrong=(
            f"calculator: {loan} * ({rate} / 100) / (1 - (1 + {rate} / 100) ** -{months})",
            f"calculator: {loan} / {months}",
        ),
        fault="the monthly rate may be wrong",
    )
    chain.step(
        "answer",
        f"calculator: {monthly} * {months} - {loan}",
        wrong=(f"calculator: {monthly} * {months}", f"calculator: {monthly} * ({months} - 1) - {loan}"),
        fault="the interest may be added up wrong",
    )
    details = (
        f"{count} pieces of item {item} are bought. {deposit} EUR are paid at once, the rest is a loan over {years} "
        f"years with equal payments at the end of each month (payment = loan * r / (1 - (1 + r) ** -n), not rounded). "
        f"{chain.asides(difficulty)}"
    )
    return chain.plan("Interest paid on the loan in EUR", details, f"table: lookup loans percent where years = {years}")


def trip_cost(chain: Chain, difficulty: str) -> Plan:
    """Fuel for a way: miles, litres per 100 km, price by country, and another currency when hard."""
    usage = chain.decimal(4.5, 11, 1)
    if difficulty == "easy":
        distance = chain.whole(115, 890, 5)
        chain.given("distance_km", str(distance), [str(distance + 10)], "distance_km may be misread")
        chain.given("litres_per_100km", usage, [f"{float(usage) + 1:.1f}"], "litres_per_100km may be misread")
        _litres(chain, "answer", str(distance), usage, 1)
        details = f"A van drives {distance} km and uses {usage} litres per 100 km."
        return chain.plan("Litres of fuel for the way", details, f"calculator: {distance} * {usage} /")
    hard = difficulty == "hard"
    miles, ways = chain.whole(75, 480, 5), 2 if hard else 1
    lands = chain.pick(("Avia", "Borland", "Celia", "Dorn", "Elvia", "Farland"), 6 if hard else 4)
    rows = [[name, float(chain.decimal(1.2, 1.6)), float(chain.decimal(1.65, 2.1))] for name in sorted(lands)]
    chain.tables["fuel"] = table(("country", "diesel", "petrol"), rows, "EUR a litre")
    distance = chain.step(
        "distance_km",
        f"convert: {miles} mi to km",
        wrong=(f"convert: {miles} nmi to km", f"convert: {miles} km to mi"),
        fault="the unit factor may be wrong",
    )
    litres = _litres(chain, "litres", distance, usage, ways)
    price = chain.step(
        "eur_per_litre",
        f"table: lookup fuel diesel where country = {lands[0]}",
        wrong=(
            f"table: lookup fuel petrol where country = {lands[0]}",
            f"table: lookup fuel diesel where country = {lands[1]}",
        ),
        fault="the wrong fuel price may be read",
        needs=FROM_TABLE,
    )
    way = (
        f"A diesel van drives {miles} miles{' and the same way back' if hard else ''}, using {usage} litres per 100 km"
    )
    if not hard:
        chain.step(
            "answer",
            f"calculator: {litres} * {price}",
            wrong=(f"calculator: {litres} / {price}", f"calculator: {distance} * {price}"),
            fault="the product may be wrong",
        )
        details = f"{way}. All fuel is bought in {lands[0]}. {chain.asides(difficulty)}"
        title = "Cost of the fuel in EUR (distance_km is one way)"
        return chain.plan(title, details, f"table: lookup fuel diesel where land = {lands[0]}")
    money = chain.pick(("AVD", "BOC", "CEL", "DOR", "ELV"), 5)
    rates = [[name, float(chain.decimal(2, 30))] for name in sorted(money)]
    chain.tables["rates"] = table(("currency", "per_eur"), rows=rates, note="units of the currency for one EUR")
    rate = chain.step(
        "per_eur",
        f"table: lookup rates per_eur where currency = {money[0]}",
        wrong=(f"table: lookup rates per_eur where currency = {money[1]}",),
        fault="the wrong rate may be read",
        needs=FROM_TABLE,
    )
    chain.step(
        "answer",
        f"calculator: {litres} * {price} * {rate}",
        wrong=(f"calculator: {litres} * {price} / {rate}", f"calculator: {litres} * {price}"),
        fault="the currency may be converted the wrong way",
    )
    details = f"{way}. All fuel is bought in {lands[0]} and paid in {money[0]}. {chain.asides(difficulty)}"
    title = f"Cost of the fuel in {money[0]} (distance_km is one way, litres are for the whole trip)"
    return chain.plan(title, details, f"table: lookup rates eur where currency = {money[0]}")


def _litres(chain: Chain, name: str, distance: str, usage: str, ways: int) -> str:
    times, slip = ("2 * ", "") if ways > 1 else ("", "2 * ")
    return chain.step(
        name,
        f"calculator: {times}{distance} * {usage} / 100",
        wrong=(f"calculator: {times}{distance} / {usage}", f"calculator: {slip}{distance} * {usage} / 100"),
        fault="the consumption may be applied wrong",
    )
