"""A second implementation of the coding families, which reads its rules from the public text alone.

It shares nothing with the generator: constants and optional rules are taken out of statement and edge-case notes
by regular expression, and the algorithms differ where they can. So it also shows that the public text is enough.
"""

import itertools
import re


def solve(public, args):
    """What the function described by `public` returns for `args`."""
    return FAMILIES[public["function"]](_Text(f"{public['statement']} {public['edge_cases']}"), *args)


class _Text:
    def __init__(self, text):
        self.text = text

    def has(self, pattern):
        return re.search(pattern, self.text) is not None

    def get(self, pattern):
        found = re.search(pattern, self.text)
        assert found, f"{pattern!r} is not in {self.text!r}"
        groups = [int(g) if re.fullmatch(r"-?\d+", g) else g for g in found.groups()]
        return groups[0] if len(groups) == 1 else groups

    def maybe(self, pattern, default=None):
        return self.get(pattern) if self.has(pattern) else default

    def most(self, result):
        return min(result, self.maybe(r"never more than (\d+);", result))


def sum_between(t, values):
    if not values and t.has("is empty, return -1"):
        return -1
    low, high = t.get(r"from (\d+) to (\d+), both")
    if t.has("counts once"):
        values = list(dict.fromkeys(values))
    inside = [v for v in values if v in range(low, high + 1)]
    k = t.maybe(r"multiples of (\d+)")
    return t.most(sum(v for v in inside if not k or v % k))


def grade_scores(t, scores):
    if not scores and t.has("is empty"):
        return ["none"]
    good, fair = t.get(r'"A" from (\d+) up, "B" from (\d+) up')
    bonus = t.maybe(r"bonus of (\d+)", 0)

    def grade(score):
        if score is None:
            return "-"
        if t.has("score below 0") and score < 0:
            return "?"
        return "CBA"[(score + bonus >= fair) + (score + bonus >= good)]

    grades = list(map(grade, scores))
    if t.has("reverse order"):
        grades.reverse()
    return grades


def window_means(t, values):
    size = t.get(r"every (\d+) neighbouring")
    if t.has("Drop negative"):
        values = list(itertools.filterfalse(lambda v: v < 0, values))
    if t.has("With fewer than") and len(values) < size:
        return [-1.0]
    step = t.maybe(r"Move (\d+) values", 1)
    factor = 2 if t.has("Double every mean") else 1
    means, i = [], 0
    while i + size <= len(values):
        means.append(factor * sum(values[i + j] for j in range(size)) / size)
        i += step
    return means


def merge_spans(t, spans):
    if not spans and t.has("is empty"):
        return [[0, 0]]
    gap = t.get(r"at most (\d+) apart")
    if t.has(r"given as \[end, start\]"):
        spans = [[min(span), max(span)] for span in spans]
    least = t.maybe(r"shorter than (\d+)", 0)
    spans = [span for span in spans if span[1] - span[0] >= least]
    # Connected components: two spans belong together when no gap of more than `gap` lies between them.
    groups = [[span] for span in spans]
    joined = True
    while joined:
        joined = False
        for a, b in itertools.combinations(groups, 2):
            if any(x[0] <= y[1] + gap and y[0] <= x[1] + gap for x in a for y in b):
                groups.remove(b)
                a.extend(b)
                joined = True
                break
    merged = sorted([min(s for s, _ in g), max(e for _, e in g)] for g in groups)
    most = t.maybe(r"longer than (\d+)", 10**9)
    return [span for span in merged if span[1] - span[0] <= most]


def shipping_price(t, weight, distance):
    if t.has("weight is 0 or less") and weight <= 0:
        return -1
    base, rate, free = t.get(r"price is (\d+), plus (\d+) for each kg above (\d+)")
    extra, far = t.get(r"Add (\d+) if the distance is more than (\d+)")
    price = base + sum(rate for kg in range(weight) if kg >= free) + (extra if distance > far else 0)
    if t.has("double the price") and weight > t.get(r"weight is more than (\d+)"):
        price += price
    if t.has("take 2 off") and price >= t.get(r"price of (\d+) or more"):
        price -= 2
    return t.most(price)


def row_sums(t, grid):
    if not grid and t.has("is empty"):
        return [-1]
    rows = grid[1::2] if t.has("odd index") else grid[::2]
    first = t.get(r"first (\d+) cell")
    most = t.maybe(r"cell above (\d+) counts", 10**9)
    least = t.maybe(r"sums of (\d+) or more", -(10**9))
    size = abs if t.has("absolute value") else int
    sums = [sum(min(size(c), most) for i, c in enumerate(row) if i >= first) for row in rows]
    return [total for total in sums if total >= least]


def count_words(t, text):
    least = t.get(r"at least (\d+) letters")
    words = re.findall(r"\S+", text.lower())
    if t.has("at the end of a word"):
        words = [re.sub(r"[!,]+$", "", word) for word in words]
    words = [word for word in words if re.match("[aeiou]", word) and not len(word) < least]
    if t.has("Do not count the word"):
        words = [word for word in words if word != t.get(r'count the word "(\w+)"')]
    return t.most(len(set(words) if t.has("several times once") else words))


def run_lengths(t, text):
    separator = t.get(r'Put "(.)" between')
    if not text and t.has("is empty"):
        return separator
    if t.has("lower case first"):
        text = text.lower()
    if t.has("Leave out spaces"):
        text = text.replace(" ", "")
    longest = t.maybe(r"at most (\d+) long", 10**9)
    pieces = []
    for char, group in itertools.groupby(text):
        n = len(list(group))
        while n > 0:
            pieces.append(f"{char}{min(n, longest)}")
            n -= longest
    return separator.join(reversed(pieces) if t.has("last run comes first") else pieces)


def check_digit(t, code):
    if t.has("dashes"):
        code = "".join(re.findall(r"\d", code))
    if t.has("fewer than") and len(code) < t.get(r"fewer than (\d+) digits"):
        return "?"
    if t.has("right end"):
        code = "".join(reversed(code))
    which, weight = t.get(r"at (odd|even) positions \(from 0\) by (\d+)")
    digits = [int(char) for char in code]
    heavy = digits[1::2] if which == "odd" else digits[::2]
    rest = (sum(digits) + (weight - 1) * sum(heavy)) % t.get(r"divided by (\d+)")
    return "X" if rest == 10 and t.has('Return "X"') else str(rest)


def shift_letters(t, text):
    if not text and t.has("is empty"):
        return t.get(r'is empty, return "(.)"')
    if t.has("into lower case"):
        text = text.lower()
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    shift = t.get(r"letter (\d+) places")
    table = dict(zip(alphabet, alphabet[shift:] + alphabet[:shift], strict=True))
    if t.has("every digit"):
        by = t.get(r"every digit (\d+) forward")
        table |= dict(zip("0123456789", "0123456789"[by:] + "0123456789"[:by], strict=True))
    if t.has("Write a space"):
        table[" "] = t.get(r'Write a space as "(.)"')
    out = text.translate(str.maketrans(table))
    return out[::-1] if t.has("backwards") else out


def bracket_depth(t, text):
    if not text and t.has("is empty"):
        return None
    closed, opened = t.get(r"Return (-\d+) as soon .* it, (-\d+) if")
    if t.has("Ignore everything"):
        text = text.partition(t.get(r'first "(.)" on'))[0]
    if t.has('"\\["'):
        text = text.replace("[", "(").replace("]", ")")
    levels = list(itertools.accumulate((char == "(") - (char == ")") for char in text)) or [0]
    if min(levels) < 0:
        return closed
    return opened if levels[-1] else t.most(max(levels))


def top_names(t, records):
    if not records and t.has("is empty"):
        return ["nobody"]
    k = t.get(r"names of the (\d+) records")
    if t.has("start with"):
        records = [record for record in records if record[0][0] != "_"]
    least = t.maybe(r"scores below (\d+)", 0)
    records = sorted(r for r in records if r[1] >= least)
    records.sort(key=lambda r: r[1], reverse=True)
    names = []
    for name, _ in records:
        if not (t.has("one place only") and name in names):
            names.append(name)
    return names[:k]


def stock_levels(t, events):
    start = t.get(r"level of (\d+)")
    stock = {}
    for op, item, amount in events:
        key = item.lower() if t.has("upper and lower case are the same") else item
        if t.has("amount below 0") and amount < 0:
            continue
        level = stock.setdefault(key, start)
        after = {"add": level + amount, "set": amount, "take": max(level - amount, 0)}[op]
        stock[key] = t.most(after)
    return {item: level for item, level in stock.items() if level != 0}


def worked_minutes(t, shifts):
    pause, long = t.maybe(r"Take (\d+) minutes off a shift of more than (\d+)", [0, 0])
    least = t.maybe(r"shifts of less than (\d+)", 0)
    grid = t.maybe(r"multiple of (\d+) minutes", 1)
    total = 0
    for start, end in shifts:
        (h1, m1), (h2, m2) = (map(int, clock.split(":")) for clock in (start, end))
        length = ((h2 - h1) * 60 + m2 - m1) % (24 * 60)
        if pause and length > long:
            length -= pause
        if length >= least:
            total += length // grid * grid
    return t.most(total)


FAMILIES = {
    function.__name__: function
    for function in (
        sum_between,
        grade_scores,
        window_means,
        merge_spans,
        shipping_price,
        row_sums,
        count_words,
        run_lengths,
        check_digit,
        shift_letters,
        bracket_depth,
        top_names,
        stock_levels,
        worked_minutes,
    )
}
