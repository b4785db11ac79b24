"""Coding families over numbers: lists, tables, spans, prices."""

from __future__ import annotations

from harness_mdp.settings.coding.sketch import Draw, Family, MakeInput, Sketch, edge, slot

__all__ = ["FAMILIES"]


def sum_between(s: Sketch) -> MakeInput:
    low = s.draw.integer(2, 12)
    high = low + s.draw.integer(8, 25)
    divisor = s.draw.integer(3, 7)
    s.empty("values", "-1", "0", "None")
    s.says(f"Return the sum of the values from {low} to {high}, both ends included.")
    if s.wants("distinct"):
        s.says("A value that occurs several times counts once.")
        s.line(1, "values = ", slot("set(values)", "list(values)", problem="repeated values may count twice"))
    s.line(1, "total = 0")
    s.line(1, "for value in values:")
    s.line(2, "if value ", slot("<", "<=", problem="the lower bound may be off by one"), f" {low}:")
    s.line(3, "continue")
    s.line(2, "if value ", slot(">", ">=", problem="the upper bound may be off by one"), f" {high}:")
    s.line(3, "continue")
    if s.wants("skip"):
        s.says(f"Leave out multiples of {divisor}.")
        wrong = (f"value % {divisor} != 0", f"value % {divisor} == 1")
        problem = "the wrong values may be left out as multiples"
        s.line(2, "if ", slot(f"value % {divisor} == 0", *wrong, problem=problem), ":")
        s.line(3, "continue")
    s.line(2, "total += ", slot("value", "1", "number", problem="the wrong amount may be added to the total"))
    s.cap(1, "total", high + low)
    s.line(1, "return total")

    def make(draw: Draw) -> list[list[int]]:
        marks = (low, high, divisor * (high // divisor))
        pool = [draw.near(marks, low - 5, high + 5) for _ in range(6)]
        return [draw.several(6, lambda: draw.choose(pool))]

    return make


def grade_scores(s: Sketch) -> MakeInput:
    good = s.draw.integer(75, 90)
    fair = s.draw.integer(45, 65)
    bonus = s.draw.integer(2, 6)
    s.empty("scores", '["none"]', "[]", '"none"')
    s.says(f'Return a list with one grade per score: "A" from {good} up, "B" from {fair} up, otherwise "C".')
    s.line(1, "grades = []")
    s.line(1, "for score in scores:")
    if s.wants("missing"):
        s.notes('A score of None gives the grade "-".')
        s.line(2, "if score is None:")
        s.line(3, edge('grades.append("-")', "pass", 'grades.append("C")', problem="a missing score is misread"))
        s.line(3, "continue")
    if s.wants("invalid"):
        s.notes('A score below 0 gives the grade "?".')
        s.line(2, "if score ", edge("< 0", "<= 0", "> 100", problem="scores below 0 may be misread"), ":")
        s.line(3, 'grades.append("?")')
        s.line(3, "continue")
    if s.wants("bonus"):
        s.says(f"Add a bonus of {bonus} to every score before grading.")
        problem = "the bonus may be wrong"
        s.line(2, "score ", slot(f"+= {bonus}", f"-= {bonus}", f"= {bonus}", problem=problem))
    s.line(2, "if score ", slot(">=", ">", problem="the boundary of grade A may be off by one"), f" {good}:")
    s.line(3, 'grades.append("A")')
    s.line(2, "elif score ", slot(">=", ">", problem="the boundary of grade B may be off by one"), f" {fair}:")
    s.line(3, 'grades.append("B")')
    s.line(2, "else:")
    problem = "scores below every boundary may get the wrong grade"
    s.line(3, "grades.append(", slot('"C"', '"B"', "C", problem=problem), ")")
    if s.wants("reverse"):
        s.says("The grades are in reverse order of the scores.")
        s.line(1, "return ", slot("grades[::-1]", "grades", "sorted(grades)", problem="the order may be wrong"))
    else:
        s.line(1, "return grades")

    def make(draw: Draw) -> list[list[int | None]]:
        def score() -> int | None:
            if s.wants("missing") and draw.chance(0.2):
                return None
            marks = [good, fair, *((good - bonus, fair - bonus) if s.wants("bonus") else ())]
            return draw.near([*marks, *((0,) if s.wants("invalid") else ())], 0, 100)

        return [draw.several(6, score)]

    return make


def window_means(s: Sketch) -> MakeInput:
    window = s.draw.integer(2, 5)
    step = s.draw.integer(2, 3)
    s.says(f"Return the list of means of every {window} neighbouring values, from left to right.")
    if s.wants("negative"):
        s.notes("Drop negative values before anything else; zero stays.")
        problem = "the wrong values may be dropped as negative"
        s.line(1, "values = [v for v in values if v ", edge(">= 0", "> 0", "< 0", problem=problem), "]")
    if s.wants("short"):
        s.notes(f"With fewer than {window} values, return [-1.0].")
        problem = "a list shorter than the window may give the wrong result"
        s.line(1, f"if len(values) < {window}:")
        s.line(2, "return ", edge("[-1.0]", "[]", "None", problem=problem))
    s.line(1, "means = []")
    problem = "the last window may be missed"
    stop = slot(f"len(values) - {window - 1}", f"len(values) - {window}", problem=problem)
    if s.wants("step"):
        s.says(f"Move {step} values from one window to the next.")
        problem = "the distance between windows may be wrong"
        s.line(1, "for i in range(0, ", stop, ", ", slot(str(step), "1", problem=problem), "):")
    else:
        s.line(1, "for i in range(", stop, "):")
    problem = "a window may hold the wrong number of values"
    s.line(2, f"part = values[i:i + {window}", slot("]", " - 1]", " + 1]", problem=problem))
    problem = "the mean may be divided by the wrong number"
    s.line(2, "mean = sum(part) / ", slot(str(window), str(window + 1), "width", problem=problem))
    if s.wants("double"):
        s.says("Double every mean.")
        s.line(2, "mean ", slot("*= 2", "+= 2", "/= 2", problem="the mean may not be doubled"))
    s.line(2, "means.append(mean)")
    s.line(1, "return means")

    def make(draw: Draw) -> list[list[int]]:
        low = -4 if s.wants("negative") else 0
        values = [draw.near((0,), low, 20) for _ in range(draw.integer(0, 9))]
        return [values if low else [abs(value) for value in values]]

    return make


def merge_spans(s: Sketch) -> MakeInput:
    gap = s.draw.integer(1, 4)
    least = s.draw.integer(2, 4)
    most = s.draw.integer(11, 15)
    s.says(f"Each span is [start, end]. Merge spans that overlap or are at most {gap} apart.")
    s.says("Return the merged spans, sorted by start.")
    s.empty("spans", "[[0, 0]]", "[]", "None")
    s.line(1, "merged = []")
    if s.wants("swapped"):
        s.notes("A span may be given as [end, start]; put it in order first.")
        problem = "a span that is given end first may stay so"
        s.line(1, "spans = [", edge("sorted(span)", "span", "span[::-1]", problem=problem), " for span in spans]")
    problem = "the spans may not be in order"
    spans = slot("sorted(spans)", "spans", "reversed(spans)", problem=problem)
    s.line(1, "for start, end in ", spans, ":")
    if s.wants("short"):
        s.notes(f"Leave out spans that are shorter than {least}.")
        problem = "the wrong spans may be left out as short"
        s.line(2, "if end - start ", edge(f"< {least}", f"<= {least}", f"> {least}", problem=problem), ":")
        s.line(3, "continue")
    problem = "the allowed gap between spans may be off by one"
    s.line(2, "if merged and start ", slot("<=", "<", ">", problem=problem), f" merged[-1][1] + {gap}:")
    problem = "a span that lies inside another may cut it short"
    s.line(3, "merged[-1][1] = ", slot("max(merged[-1][1], end)", "end", "max(last, end)", problem=problem))
    s.line(2, "else:")
    s.line(3, "merged.append([start, end])")
    if s.wants("long"):
        s.says(f"Leave out merged spans that are longer than {most}.")
        problem = "the wrong merged spans may be left out as long"
        kept = slot(f"<= {most}", f"< {most}", f"> {most}", problem=problem)
        s.line(1, "merged = [span for span in merged if span[1] - span[0] ", kept, "]")
    s.line(1, "return merged")

    def make(draw: Draw) -> list[list[list[int]]]:
        def span() -> list[int]:
            start = draw.integer(0, 20)
            ends = [start, start + draw.choose([draw.integer(1, 9), least, most, most + 1])]
            return ends[::-1] if s.wants("swapped") and draw.chance(0.3) else ends

        return [draw.several(5, span)]

    return make


def shipping_price(s: Sketch) -> MakeInput:
    base = s.draw.integer(3, 9)
    rate = s.draw.integer(2, 5)
    free = s.draw.integer(2, 6)
    far = 10 * s.draw.integer(5, 30)
    extra = s.draw.integer(4, 12)
    heavy = free + s.draw.integer(6, 12)
    threshold = base + rate * s.draw.integer(3, 6)
    if s.wants("invalid"):
        s.notes("If weight is 0 or less, return -1.")
        problem = "a weight of 0 or less may not be refused"
        s.line(1, "if weight ", edge("<= 0", "< 0", ">= 0", problem=problem), ":")
        s.line(2, "return -1")
    s.says(f"The price is {base}, plus {rate} for each kg above {free} kg.")
    over = slot(f"max(0, weight - {free})", f"(weight - {free})", "weight", problem="the free weight may be wrong")
    s.line(1, f"price = {base} + {rate} * ", over)
    s.says(f"Add {extra} if the distance is more than {far} km.")
    problem = "the boundary of the distance may be off by one"
    s.line(1, "if distance ", slot(">", ">=", "<", problem=problem), f" {far}:")
    problem = "the amount added for distance may be wrong"
    s.line(2, "price += ", slot(str(extra), str(extra + 1), "surcharge", problem=problem))
    if s.wants("heavy"):
        s.says(f"Then double the price if the weight is more than {heavy} kg.")
        problem = "the boundary of heavy parcels may be wrong"
        s.line(1, "if weight ", slot(">", ">=", "<", problem=problem), f" {heavy}:")
        s.line(2, "price *= 2")
    if s.wants("discount"):
        s.says(f"Then take 2 off a price of {threshold} or more.")
        problem = "the boundary of the discount may be wrong"
        s.line(1, "if price ", slot(">=", ">", "<", problem=problem), f" {threshold}:")
        s.line(2, "price -= 2")
    s.cap(1, "price", base + rate * (heavy - free) + extra)
    s.line(1, "return price")

    def make(draw: Draw) -> list[int]:
        at_threshold = free + (threshold - base) // rate
        weight = max(1, draw.near((free, heavy, at_threshold), 1, heavy + 8))
        if s.wants("invalid") and draw.chance(0.2):
            weight = draw.integer(-1, 0)
        return [weight, max(0, draw.near((far,), 1, 2 * far))]

    return make


def row_sums(s: Sketch) -> MakeInput:
    first = s.draw.integer(1, 2)
    parity = s.draw.integer(0, 1)
    most = s.draw.integer(5, 8)
    least = s.draw.integer(3, 9)
    s.says(f"For the rows of the grid with an {'odd' if parity else 'even'} index (from 0), sum the cells.")
    s.says(f"Leave out the first {first} cell{'s' * (first > 1)} of a row. Return the list of sums.")
    s.empty("grid", "[-1]", "[]", "[0]")
    s.line(1, "sums = []")
    s.line(1, "for index, row in enumerate(grid):")
    problem = "the wrong rows may be taken"
    s.line(2, "if index % 2 ", slot(f"!= {parity}", f"== {parity}", problem=problem), ":")
    s.line(3, "continue")
    problem = "the wrong number of cells may be left out"
    s.line(2, "cells = row[", slot(f"{first}:", f"{first - 1}:", f"{first + 1}:", problem=problem), "]")
    if s.wants("negative"):
        s.notes("A negative cell counts as its absolute value.")
        problem = "negative cells may be treated wrongly"
        s.line(2, "cells = [", edge("abs(cell)", "cell", "max(cell, 0)", problem=problem), " for cell in cells]")
    if s.wants("clip"):
        s.notes(f"A cell above {most} counts as {most}.")
        problem = f"cells above {most} may be treated wrongly"
        clipped = edge(f"min(cell, {most})", f"max(cell, {most})", f"cell % {most}", problem=problem)
        s.line(2, "cells = [", clipped, " for cell in cells]")
    s.line(2, "total = ", slot("sum(cells)", "sum(row)", "sum(numbers)", problem="the wrong cells may be summed"))
    if s.wants("least"):
        s.says(f"Keep only sums of {least} or more.")
        problem = "the boundary of the sums that are kept may be off by one"
        s.line(2, "if total ", slot("<", "<=", ">=", problem=problem), f" {least}:")
        s.line(3, "continue")
    s.line(2, "sums.append(total)")
    s.line(1, "return sums")

    def make(draw: Draw) -> list[list[list[int]]]:
        low = -6 if s.wants("negative") else 0
        width = draw.integer(2, 4)
        return [draw.several(5, lambda: [draw.integer(low, 10) for _ in range(width)])]

    return make


FAMILIES: tuple[Family, ...] = (
    Family("sum_between", "Sum within bounds", "values", ("empty", "distinct", "skip", "cap"), sum_between),
    Family("grade_scores", "Grades", "scores", ("empty", "missing", "invalid", "bonus", "reverse"), grade_scores),
    Family("window_means", "Moving means", "values", ("negative", "short", "step", "double"), window_means),
    Family("merge_spans", "Merge spans", "spans", ("empty", "swapped", "short", "long"), merge_spans),
    Family(
        "shipping_price",
        "Price of a parcel",
        "weight, distance",
        ("invalid", "heavy", "discount", "cap"),
        shipping_price,
    ),
    Family("row_sums", "Sums of rows", "grid", ("empty", "negative", "clip", "least"), row_sums),
)
