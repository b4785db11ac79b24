"""The seven decisions that tasks of `knowledge_work` are about: what they are called, what is counted, what follows.

Query patterns name `{main}` (the table of records), `{ref}` (one figure per subject, where there is one), `{x}` (the
subject) and `{y}` (another subject). Each wrong pattern is a mistake that a hasty reader makes.
"""

from __future__ import annotations

from harness_mdp.settings.knowledge_work.decision import Asked, Option, Relation, Template

__all__ = ["TEMPLATES"]

_TREES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Hazel", "Juniper", "Larch", "Maple", "Rowan")
_SUM = "sum({main}.%s where %s = {x} and %s)"


def _sum(amount: str, subject: str, condition: str) -> str:
    return _SUM % (amount, subject, condition)


def _of_another(pattern: str) -> str:
    return pattern.replace("{x}", "{y}")


_SPEND = _sum("amount", "project", "state != planned")
_SALES = _sum("amount", "region", "channel != returned")
_HOURS = _sum("hours", "team", "kind != training")
_DEMAND = _sum("units", "item", "state = open")
_QUOTE = "mean({main}.price where product = {x} and source != auction)"
_BUDGET = "sum({ref}.budget where project = {x})"
_TARGET = "sum({ref}.target where region = {x})"
_CAPACITY = "sum({ref}.capacity where team = {x})"
_STOCK = "sum({ref}.stock where item = {x})"
_PRICE = "sum({ref}.own_price where product = {x})"
_LATE = "count({main} where vendor = {x} and state = late)"
_OUTAGE = "mean({main}.minutes where service = {x} and severity != minor)"

TEMPLATES: tuple[Template, ...] = (
    Template(
        name="budget_overrun",
        subject="project",
        subjects=_TREES,
        records="Ledger",
        flag="state",
        flags=("open", "planned", "paid"),
        counted=("open", "paid"),
        amount="amount",
        amounts=(200, 4000),
        reference="Budgets",
        reference_column="budget",
        relation=Relation.OVER,
        first=Asked(
            "spend",
            _SPEND,
            ("sum({main}.amount where project = {x})", _sum("amount", "project", "state = paid"), _of_another(_SPEND)),
        ),
        second=Asked(
            "open entries",
            "count({main} where project = {x} and state = open)",
            ("count({main} where project = {x})", "count({main} where state = open)"),
        ),
        key=Asked(
            "overrun",
            f"percent(diff({_SPEND}, {_BUDGET}), {_BUDGET})",
            (
                f"percent(diff({_SPEND}, {_BUDGET}), {_SPEND})",
                f"percent({_SPEND}, {_BUDGET})",
                f"percent(diff(sum({{main}}.amount where project = {{x}}), {_BUDGET}), {_BUDGET})",
            ),
            "%",
            1,
        ),
        definition="Spend is the sum of ledger entries that are not planned; overrun is spend less budget, in percent "
        "of the budget.",
        options=(
            Option("freeze the project", ("freez", "froze", "halt")),
            Option("continue the project", ("continu", "proceed")),
            Option("audit the project", ("audit",)),
        ),
        group="fast-track projects",
    ),
    Template(
        name="vendor_renewal",
        subject="vendor",
        subjects=("Norvik", "Halden", "Ostra", "Brevik", "Sandnes", "Tromso", "Molde", "Larvik", "Hamar", "Skien"),
        records="Deliveries",
        flag="state",
        flags=("lost", "late", "on_time"),
        counted=("late",),
        amount="cost",
        amounts=(50, 900),
        reference="",
        reference_column="",
        relation=Relation.NONE,
        first=Asked(
            "late deliveries",
            _LATE,
            (
                "count({main} where vendor = {x} and state != on_time)",
                "count({main} where state = late)",
                _of_another(_LATE),
            ),
        ),
        second=Asked(
            "lost deliveries",
            "count({main} where vendor = {x} and state = lost)",
            ("count({main} where state = lost)", "count({main} where vendor = {x} and state = on_time)"),
        ),
        key=Asked(
            "late share",
            f"percent({_LATE}, count({{main}} where vendor = {{x}}))",
            (
                f"percent({_LATE}, count({{main}} where vendor = {{x}} and state = on_time))",
                "percent(count({main} where vendor = {x} and state != on_time), count({main} where vendor = {x}))",
                "percent(count({main} where state = late), count({main}))",
                f"percent({_LATE}, count({{main}}))",
            ),
            "%",
            1,
        ),
        definition="Late share is late deliveries in percent of all deliveries of the vendor; a lost delivery is not "
        "a late one.",
        options=(
            Option("replace the vendor", ("replac", "switch")),
            Option("renew the contract", ("renew", "extend")),
            Option("suspend the vendor", ("suspend", "suspension", "pause")),
        ),
        group="sole-source vendors",
        key_range=(8.0, 80.0),
    ),
    Template(
        name="sales_review",
        subject="region",
        subjects=("Avalon", "Bergamo", "Corinth", "Delphi", "Elba", "Faro", "Genoa", "Hydra", "Ithaca", "Jaffa"),
        records="Sales",
        flag="channel",
        flags=("wholesale", "returned", "retail"),
        counted=("wholesale", "retail"),
        amount="amount",
        amounts=(300, 6000),
        reference="Targets",
        reference_column="target",
        relation=Relation.SHORT,
        first=Asked(
            "net sales",
            _SALES,
            (
                "sum({main}.amount where region = {x})",
                _sum("amount", "region", "channel = retail"),
                _of_another(_SALES),
            ),
        ),
        second=Asked(
            "wholesale orders",
            "count({main} where region = {x} and channel = wholesale)",
            ("count({main} where region = {x})", "count({main} where channel = wholesale)"),
        ),
        key=Asked(
            "shortfall",
            f"percent(diff({_TARGET}, {_SALES}), {_TARGET})",
            (
                f"percent(diff({_TARGET}, {_SALES}), {_SALES})",
                f"percent({_SALES}, {_TARGET})",
                f"percent(diff({_TARGET}, {_sum('amount', 'region', 'channel = retail')}), {_TARGET})",
            ),
            "%",
            1,
        ),
        definition="Net sales leave out returned goods; shortfall is target less net sales, in percent of the target.",
        options=(
            Option("restructure the region", ("restructur", "reorgani")),
            Option("keep the plan", ("keep", "maintain", "retain")),
            Option("inspect the accounts", ("inspect", "investigat")),
        ),
        group="start-up regions",
    ),
    Template(
        name="incident_review",
        subject="service",
        subjects=("Atlas", "Beacon", "Comet", "Drift", "Ember", "Falcon", "Glacier", "Harbor", "Indigo", "Kestrel"),
        records="Incidents",
        flag="severity",
        flags=("critical", "minor", "major"),
        counted=("critical", "major"),
        amount="minutes",
        amounts=(5, 120),
        reference="",
        reference_column="",
        relation=Relation.NONE,
        first=Asked(
            "downtime minutes",
            _sum("minutes", "service", "severity != minor"),
            (
                "sum({main}.minutes where service = {x})",
                _sum("minutes", "service", "severity = critical"),
                _of_another(_sum("minutes", "service", "severity != minor")),
            ),
        ),
        second=Asked(
            "critical incidents",
            "count({main} where service = {x} and severity = critical)",
            ("count({main} where service = {x})", "count({main} where severity = critical)"),
        ),
        key=Asked(
            "mean outage",
            _OUTAGE,
            (
                "mean({main}.minutes where service = {x})",
                "max({main}.minutes where service = {x} and severity != minor)",
                _of_another(_OUTAGE),
            ),
            "",
            1,
        ),
        definition="Mean outage is the mean length in minutes of incidents that are not minor.",
        options=(
            Option("roll back the release", ("roll", "revert")),
            Option("ship the release", ("ship",)),
            Option("freeze deployments", ("freez", "froze", "halt")),
        ),
        group="payment services",
        key_range=(15.0, 110.0),
    ),
    Template(
        name="hiring_plan",
        subject="team",
        subjects=("Auditing", "Billing", "Claims", "Dispatch", "Editing", "Fraud", "Grants", "Helpdesk", "Imports"),
        records="Work log",
        flag="kind",
        flags=("overtime", "training", "regular"),
        counted=("overtime", "regular"),
        amount="hours",
        amounts=(4, 60),
        reference="Capacity",
        reference_column="capacity",
        relation=Relation.SHARE,
        first=Asked(
            "worked hours",
            _HOURS,
            ("sum({main}.hours where team = {x})", _sum("hours", "team", "kind = regular"), _of_another(_HOURS)),
        ),
        second=Asked(
            "overtime entries",
            "count({main} where team = {x} and kind = overtime)",
            ("count({main} where team = {x})", "count({main} where kind = overtime)"),
        ),
        key=Asked(
            "load",
            f"percent({_HOURS}, {_CAPACITY})",
            (
                f"percent({_CAPACITY}, {_HOURS})",
                f"percent(sum({{main}}.hours where team = {{x}}), {_CAPACITY})",
                f"percent(diff({_CAPACITY}, {_HOURS}), {_CAPACITY})",
            ),
            "%",
            1,
        ),
        definition="Worked hours leave out training; load is worked hours in percent of capacity.",
        options=(
            Option("hire for the team", ("hire", "hiring", "recruit")),
            Option("hold the headcount", ("hold", "keep")),
            Option("rebalance the shifts", ("rebalanc",)),
        ),
        group="seasonal teams",
        key_range=(50.0, 140.0),
    ),
    Template(
        name="inventory_reorder",
        subject="item",
        subjects=("anvils", "bolts", "clamps", "drills", "filters", "gaskets", "hinges", "jacks", "levers", "nozzles"),
        records="Orders",
        flag="state",
        flags=("cancelled", "open", "shipped"),
        counted=("open",),
        amount="units",
        amounts=(10, 240),
        reference="Stock",
        reference_column="stock",
        relation=Relation.SHARE,
        first=Asked(
            "open demand",
            _DEMAND,
            ("sum({main}.units where item = {x})", _sum("units", "item", "state = shipped"), _of_another(_DEMAND)),
        ),
        second=Asked(
            "cancelled orders",
            "count({main} where item = {x} and state = cancelled)",
            ("count({main} where state = cancelled)", "count({main} where item = {x})"),
        ),
        key=Asked(
            "stock use",
            f"percent({_DEMAND}, {_STOCK})",
            (
                f"percent({_STOCK}, {_DEMAND})",
                f"percent(sum({{main}}.units where item = {{x}}), {_STOCK})",
                f"percent(diff({_STOCK}, {_DEMAND}), {_STOCK})",
            ),
            "%",
            1,
        ),
        definition="Open demand is the sum of units in open orders; stock use is open demand in percent of stock.",
        options=(
            Option("reorder the item", ("reorder", "re-order", "restock")),
            Option("postpone the order", ("postpon", "wait", "defer")),
            Option("delist the item", ("delist", "discontinu")),
        ),
        group="bulky items",
        key_range=(20.0, 95.0),
    ),
    Template(
        name="pricing_change",
        subject="product",
        subjects=("Aspen", "Bramble", "Clover", "Daisy", "Fennel", "Ginger", "Heather", "Ivy", "Jasmine", "Lotus"),
        records="Competitor quotes",
        flag="source",
        flags=("catalogue", "auction", "online"),
        counted=("catalogue", "online"),
        amount="price",
        amounts=(40, 110),
        reference="Price list",
        reference_column="own_price",
        relation=Relation.GAP,
        first=Asked(
            "mean quote",
            _QUOTE,
            (
                "mean({main}.price where product = {x})",
                "min({main}.price where product = {x} and source != auction)",
                _of_another(_QUOTE),
            ),
            "",
            1,
        ),
        second=Asked(
            "catalogue quotes",
            "count({main} where product = {x} and source = catalogue)",
            ("count({main} where product = {x})", "count({main} where source = catalogue)"),
        ),
        key=Asked(
            "price gap",
            f"percent(diff({_PRICE}, {_QUOTE}), {_QUOTE})",
            (
                f"percent(diff({_PRICE}, {_QUOTE}), {_PRICE})",
                f"percent({_PRICE}, {_QUOTE})",
                f"percent(diff({_PRICE}, mean({{main}}.price where product = {{x}})), {_PRICE})",
            ),
            "%",
            1,
        ),
        definition="The mean quote leaves out auctions; price gap is our own price less the mean quote, in percent of "
        "the mean quote.",
        options=(
            Option("cut the price", ("cut", "reduc", "lower the price", "lowering")),
            Option("hold the price", ("hold", "keep", "maintain")),
            Option("survey the market", ("survey", "research")),
        ),
        group="premium products",
    ),
)
