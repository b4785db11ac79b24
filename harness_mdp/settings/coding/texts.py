"""Coding families over texts and records: words, codes, brackets, rankings, stock, working hours."""

from __future__ import annotations

from harness_mdp.settings.coding.sketch import Draw, Family, MakeInput, Sketch, edge, slot

__all__ = ["FAMILIES"]

WORDS = "apple ant owl idea tea river under ocean stone eagle box cloud island orange zebra yarn".split()  # noqa: SIM905
NAMES = "ada bob cem dia eva fay gus hal".split()  # noqa: SIM905
VOWELS = "aeiou"


def count_words(s: Sketch) -> MakeInput:
    least = s.draw.integer(3, 5)
    ignored = s.draw.choose([word for word in WORDS if len(word) >= least and word[0] in VOWELS])
    most = s.draw.integer(2, 3)
    s.says(f"Count the words with at least {least} letters that start with a vowel (a, e, i, o, u).")
    s.says("Words are separated by spaces; upper and lower case are the same.")
    s.line(1, "count = 0")
    if s.wants("distinct"):
        s.line(1, "seen = []")
    s.line(1, "for word in text.", slot("lower()", "upper()", problem="upper case may be misread"), ".split():")
    if s.wants("strip"):
        s.notes('Remove "!" and "," at the end of a word before anything else.')
        problem = "marks at the end of a word may be counted as letters"
        s.line(2, "word = word.", edge('rstrip("!,")', 'rstrip("!")', 'lstrip("!,")', problem=problem))
    if s.wants("ignore"):
        s.notes(f'Do not count the word "{ignored}".')
        problem = f"the word {ignored} may be treated wrongly"
        s.line(2, "if word ", edge(f'== "{ignored}"', f'!= "{ignored}"', 'in "a"', problem=problem), ":")
        s.line(3, "continue")
    if s.wants("distinct"):
        s.says("Count a word that occurs several times once.")
        s.line(2, "if word ", slot("in", "not in", problem="repeated words may be counted wrongly"), " seen:")
        s.line(3, "continue")
        s.line(2, "seen.append(word)")
    length = slot(">=", ">", problem="the least number of letters may be off by one")
    place = slot("word[0]", "word[-1]", "first", problem="the wrong letter of a word may be looked at")
    s.line(2, "if len(word) ", length, f" {least} and ", place, f' in "{VOWELS}":')
    s.line(3, "count += 1")
    s.cap(1, "count", most)
    s.line(1, "return count")

    def make(draw: Draw) -> list[str]:
        def word() -> str:
            text = draw.choose([*WORDS, ignored, ignored])
            text = text.capitalize() if draw.chance(0.4) else text
            return text + draw.choose(["", "!", ","]) if s.wants("strip") else text

        return [" ".join(draw.several(8, word))]

    return make


def run_lengths(s: Sketch) -> MakeInput:
    longest = s.draw.integer(2, 4)
    separator = s.draw.choose("-/+|:")
    s.empty("text", f'"{separator}"', '""', "None")
    s.says("Write every run of equal characters as the character and the length of the run.")
    if s.wants("case"):
        s.notes("Turn the text into lower case first.")
        s.line(1, "text = text", edge(".lower()", "", ".upper()", problem="the case of letters may be wrong"))
    s.line(1, "runs = []")
    s.line(1, "for char in text:")
    if s.wants("spaces"):
        s.notes("Leave out spaces, as if they were not there.")
        problem = "the wrong characters may be left out"
        s.line(2, "if char ", edge('== " "', '!= " "', '== ""', problem=problem), ":")
        s.line(3, "continue")
    s.line(2, "if runs and runs[-1][0] == char")
    if s.wants("longest"):
        s.says(f"A run is at most {longest} long; after that a new run of the same character starts.")
        problem = "the longest run may be off by one"
        s.parts.extend((" and runs[-1][1] ", slot("<", "<=", ">", problem=problem), f" {longest}"))
    s.parts.append(":")
    s.line(3, "runs[-1][1] += 1")
    s.line(2, "else:")
    s.line(3, "runs.append([char, ", slot("1", "0", "count", problem="a new run may start with the wrong length"), "])")
    problem = "character and length may be in the wrong order"
    piece = slot("char + str(n)", "str(n) + char", "char * n", problem=problem)
    s.line(1, "pieces = [", piece, " for char, n in runs]")
    if s.wants("reverse"):
        s.says("The last run comes first.")
        problem = "the order of the runs may be wrong"
        s.line(1, "pieces = ", slot("pieces[::-1]", "pieces", "sorted(pieces)", problem=problem))
    s.says(f'Put "{separator}" between the runs.')
    problem = "what stands between the runs may be wrong"
    s.line(1, "return ", slot(f'"{separator}"', '""', '" "', problem=problem), ".join(pieces)")

    def make(draw: Draw) -> list[str]:
        letters = "aabb" + "AB" * s.wants("case") + " " * s.wants("spaces")
        runs = draw.several(5, lambda: draw.choose(letters) * draw.integer(1, 4))
        return ["".join(runs)]

    return make


def check_digit(s: Sketch) -> MakeInput:
    weight = s.draw.integer(2, 4)
    parity = s.draw.integer(0, 1)
    modulus = 11 if s.wants("letter") else s.draw.choose([7, 9, 10])
    length = s.draw.integer(3, 4)
    which = "odd" if parity else "even"
    s.says(f"Multiply the digits at {which} positions (from 0) by {weight}, and add up all digits.")
    s.says(f"Return the remainder of that sum divided by {modulus}, as text.")
    if s.wants("dashes"):
        s.notes('Remove "-" from the code first; dashes are no positions.')
        s.line(
            1,
            "code = code.",
            edge('replace("-", "")', 'strip("-")', 'replace("-", "0")', problem="dashes may be left in the code"),
        )
    if s.wants("length"):
        s.notes(f'If the code has fewer than {length} digits, return "?".')
        problem = "the least number of digits may be off by one"
        s.line(1, "if len(code) ", edge(f"< {length}", f"<= {length}", "== 0", problem=problem), ":")
        s.line(2, 'return "?"')
    if s.wants("backwards"):
        s.says("Count positions from the right end of the code.")
        problem = "positions may be counted from the wrong end"
        s.line(1, "code = ", slot("code[::-1]", "code", problem=problem))
    s.line(1, "total = 0")
    s.line(1, "for place, char in enumerate(code):")
    s.line(2, "digit = int(char)")
    problem = "the wrong positions may be multiplied"
    s.line(2, "if place % 2 ", slot(f"== {parity}", f"== {1 - parity}", problem=problem), ":")
    problem = "the factor may be wrong"
    s.line(3, "digit *= ", slot(str(weight), str(weight + 1), "weight", problem=problem))
    s.line(2, "total += digit")
    problem = "the remainder may be taken of the wrong number"
    rest = slot(f"total % {modulus}", f"total // {modulus}", f"total % {modulus - 1}", problem=problem)
    s.line(1, "rest = ", rest)
    if s.wants("letter"):
        s.notes('Return "X" if the remainder is 10.')
        s.line(1, "if rest == 10:")
        s.line(2, "return ", edge('"X"', '"10"', '"0"', problem="a remainder of 10 may be written wrongly"))
    s.line(1, "return str(rest)")

    def make(draw: Draw) -> list[str]:
        digits = [str(draw.integer(0, 9)) for _ in range(draw.near((length,), 1, 7))]
        return [("-" if s.wants("dashes") and draw.chance(0.6) else "").join(digits)]

    return make


def shift_letters(s: Sketch) -> MakeInput:
    shift = s.draw.integer(2, 11)
    digit_shift = s.draw.integer(1, 4)
    mark = s.draw.choose("_.*")
    s.says(f"Move every lower-case letter {shift} places forward in the alphabet; after z comes a.")
    s.says("Other characters stay as they are, unless stated otherwise.")
    s.empty("text", f'"{mark}"', '""', "None")
    if s.wants("lower"):
        s.notes("Turn upper-case letters into lower case first.")
        problem = "upper-case letters may be treated wrongly"
        s.line(1, "text = text.", edge("lower()", "upper()", "strip()", problem=problem))
    s.line(1, "out = []")
    s.line(1, "for char in text:")
    s.line(2, 'if "a" <= char ', slot("<=", "<", problem="the last letter may be left out"), ' "z":')
    direction = slot("+", "-", problem="letters may move in the wrong direction")
    size = slot("26", "25", "size", problem="the alphabet may have the wrong length")
    s.line(3, 'out.append(chr((ord(char) - ord("a") ', direction, f" {shift}) % ", size, ' + ord("a")))')
    if s.wants("digits"):
        s.says(f"Move every digit {digit_shift} forward; after 9 comes 0.")
        problem = "digits may move wrongly"
        s.line(2, 'elif char in "0123456789":')
        digit = slot("% 10", "% 9", "", problem=problem)
        s.line(3, f"out.append(str((int(char) + {digit_shift}) ", digit, "))")
    if s.wants("spaces"):
        s.notes(f'Write a space as "{mark}".')
        s.line(2, 'elif char == " ":')
        s.line(3, "out.append(", edge(f'"{mark}"', '" "', '""', problem="spaces may be written wrongly"), ")")
    s.line(2, "else:")
    s.line(3, "out.append(char)")
    if s.wants("reverse"):
        s.says("Return the result backwards.")
        s.line(1, "out = ", slot("out[::-1]", "out", "sorted(out)", problem="the order may be wrong"))
    s.line(1, 'return "".join(out)')

    def make(draw: Draw) -> list[str]:
        alphabet = "abcxyzzkm!" + "QRZ" * s.wants("lower") + "0789" * s.wants("digits") + "  " * s.wants("spaces")
        return ["".join(draw.several(9, lambda: draw.choose(alphabet)))]

    return make


def bracket_depth(s: Sketch) -> MakeInput:
    most = s.draw.integer(2, 3)
    closed, opened = -s.draw.integer(1, 2), -s.draw.integer(3, 9)
    mark = s.draw.choose("#;")
    s.says('Return how deeply the round brackets "(" and ")" of the text are nested; 0 without brackets.')
    s.says(f'Return {closed} as soon as a ")" has no "(" before it, {opened} if a "(" is never closed.')
    s.empty("text", "None", "0", str(opened))
    if s.wants("comment"):
        s.notes(f'Ignore everything from the first "{mark}" on.')
        cut = edge(
            f'split("{mark}")[0]',
            f'split("{mark}")[-1]',
            f'replace("{mark}", "")',
            problem="what follows the comment mark may be read",
        )
        s.line(1, "text = text.", cut)
    s.line(1, "depth = deepest = 0")
    s.line(1, "for char in text:")
    if s.wants("square"):
        s.says('"[" counts as "(", and "]" as ")".')
        problem = "square brackets may be left out"
        s.line(2, "if char in ", slot('"(["', '"("', '"["', problem=problem), ":")
    else:
        s.line(2, 'if char == "(":')
    s.line(3, "depth += 1")
    problem = "the deepest place may be lost"
    s.line(3, "deepest = ", slot("max(deepest, depth)", "depth", "max(depths)", problem=problem))
    s.line(2, 'elif char in ")]":' if s.wants("square") else 'elif char == ")":')
    s.line(3, "depth -= 1")
    problem = "a bracket that closes nothing may be missed"
    s.line(2, "if depth ", slot("< 0", "< -1", "<= 0", problem=problem), ":")
    s.line(3, f"return {closed}")
    problem = "a bracket that is never closed may be missed"
    s.line(1, "if depth ", slot("> 0", "> 1", "== 0", problem=problem), ":")
    s.line(2, f"return {opened}")
    s.cap(1, "deepest", most)
    s.line(1, "return deepest")

    def make(draw: Draw) -> list[str]:
        def piece() -> str:
            pieces = ["()", "(())", "((a))(b)", "((x)())", "(((y)))", "((((z))))()", "c"]
            text = draw.choose(["(", ")", "(("]) if draw.chance(0.15) else draw.choose(pieces)
            if s.wants("square") and draw.chance(0.5):
                text = text.replace("(", "[").replace(")", "]")
            return text + mark if s.wants("comment") and draw.chance(0.3) else text

        return ["".join(draw.several(3, piece))]

    return make


def top_names(s: Sketch) -> MakeInput:
    k = s.draw.integer(2, 4)
    least = s.draw.integer(3, 6)
    s.says(f"Each record is [name, score]. Return the names of the {k} records with the highest scores.")
    s.says("Highest score first; equal scores in alphabetical order.")
    s.empty("records", '["nobody"]', "[]", "None")
    s.line(1, "kept = []")
    s.line(1, "for name, score in records:")
    if s.wants("hidden"):
        s.notes('Leave out names that start with "_".')
        problem = "hidden names may be treated wrongly"
        wrong = ('name.endswith("_")', 'not name.startswith("_")')
        s.line(2, "if ", edge('name.startswith("_")', *wrong, problem=problem), ":")
        s.line(3, "continue")
    if s.wants("least"):
        s.says(f"Leave out scores below {least}.")
        problem = "the least score may be off by one"
        s.line(2, "if score ", slot(f"< {least}", f"<= {least}", f"> {least}", problem=problem), ":")
        s.line(3, "continue")
    s.line(2, "kept.append([name, score])")
    order = slot("(-r[1], r[0])", "(r[1], r[0])", "(r[0], -r[1])", problem="the order of records may be wrong")
    s.line(1, "kept.sort(key=lambda r: ", order, ")")
    problem = "something else than the names may be returned"
    s.line(1, "names = [", slot("r[0]", "r[1]", "record[0]", problem=problem), " for r in kept]")
    if s.wants("distinct"):
        s.notes("A name that occurs several times takes one place only.")
        problem = "repeated names may take several places"
        s.line(1, "names = list(", edge("dict.fromkeys(names)", "names", "reversed(names)", problem=problem), ")")
    count = slot(str(k), str(k - 1), str(k + 1), problem="the number of names may be off by one")
    s.line(1, "return names[:", count, "]")

    def make(draw: Draw) -> list[list[list[str | int]]]:
        def record() -> list[str | int]:
            hidden = "_" if s.wants("hidden") and draw.chance(0.3) else ""
            return [hidden + draw.choose(NAMES), draw.near((least,), 1, 9)]

        return [draw.several(7, record)]

    return make


def stock_levels(s: Sketch) -> MakeInput:
    initial = s.draw.integer(1, 4)
    most = initial + s.draw.integer(4, 7)
    s.says(
        "Each event is [op, item, amount]; op is "
        + ('"add", "set" or "take".' if s.wants("set") else '"add" or "take".')
    )
    s.says(f"Every item starts with a level of {initial}. Return the level of each item after all events.")
    s.says("A level never goes below 0. Leave out items whose level is 0 at the end.")
    s.line(1, "stock = {}")
    s.line(1, "for op, item, amount in events:")
    if s.wants("case"):
        s.notes("Item names in upper and lower case are the same; return lower case.")
        problem = "item names in upper case may be treated wrongly"
        s.line(2, "item = item.", edge("lower()", "upper()", "strip()", problem=problem))
    if s.wants("invalid"):
        s.notes("Ignore events with an amount below 0.")
        problem = "events with a wrong amount may be treated wrongly"
        s.line(2, "if amount ", edge("< 0", "<= 0", "> 0", problem=problem), ":")
        s.line(3, "continue")
    start = slot(str(initial), str(initial + 1), "initial", problem="the level an item starts with may be wrong")
    s.line(2, "level = stock.get(item, ", start, ")")
    s.line(2, 'if op == "add":')
    s.line(3, "level += amount")
    if s.wants("set"):
        s.says('"set" makes the level equal to the amount.')
        s.line(2, 'elif op == "set":')
        problem = "setting a level may work wrongly"
        s.line(3, "level ", slot("= amount", "+= amount", "= max(level, amount)", problem=problem))
    s.line(2, "else:")
    problem = "taking more than there is may work wrongly"
    take = slot("max(0, level - amount)", "level - amount", "abs(level - amount)", problem=problem)
    s.line(3, "level = ", take)
    s.cap(2, "level", most, "A level, after every event,")
    s.line(2, "stock[item] = level")
    problem = "items with nothing left may be treated wrongly"
    kept = slot("level > 0", "level >= 0", "level > 1", problem=problem)
    s.line(1, "return {item: level for item, level in stock.items() if ", kept, "}")

    def make(draw: Draw) -> list[list[list[str | int]]]:
        ops = ["add", "take", "take", *(["set"] if s.wants("set") else [])]
        items = ["nut", "pin", *(["NUT", "Pin"] if s.wants("case") else [])]

        def event() -> list[str | int]:
            amount = draw.near((0, initial), 0, 9)
            return [draw.choose(ops), draw.choose(items), amount if s.wants("invalid") else abs(amount)]

        return [draw.several(6, event)]

    return make


def worked_minutes(s: Sketch) -> MakeInput:
    pause = 10 * s.draw.integer(2, 5)
    long = 60 * s.draw.integer(4, 6)
    least = 5 * s.draw.integer(2, 6)
    grid = s.draw.choose([10, 15])
    s.says('Each shift is [start, end] in "HH:MM". Return the sum of their lengths in minutes.')
    s.says("A shift whose end is before its start ends on the next day.")
    s.line(1, "total = 0")
    s.line(1, "for start, end in shifts:")
    hour = slot("60", "100", problem="hours may be turned into the wrong number of minutes")
    s.line(2, "first, last = (int(t[:2]) * ", hour, " + int(t[3:]) for t in (start, end))")
    problem = "a shift over midnight may have the wrong length"
    s.line(2, "if last < first:")
    s.line(3, "last += ", slot("1440", "720", "day", problem=problem))
    s.line(2, "length = ", slot("last - first", "last", "first - last", problem="the length may be wrong"))
    if s.wants("pause"):
        s.says(f"Take {pause} minutes off a shift of more than {long} minutes.")
        problem = "the length from which a pause is taken off may be off by one"
        s.line(2, "if length ", slot(f"> {long}", f">= {long}", f"< {long}", problem=problem), ":")
        s.line(3, f"length -= {pause}")
    if s.wants("short"):
        s.notes(f"Leave out shifts of less than {least} minutes.")
        problem = "the least length of a shift may be off by one"
        s.line(2, "if length ", edge(f"< {least}", f"<= {least}", f"> {least}", problem=problem), ":")
        s.line(3, "continue")
    if s.wants("grid"):
        s.notes(f"Round the length of each shift down to a multiple of {grid} minutes, last of all.")
        problem = "lengths may be rounded wrongly"
        s.line(2, "length -= ", edge(f"length % {grid}", f"length // {grid}", "0", problem=problem))
    s.line(2, "total += length")
    s.cap(1, "total", 60 * 12)
    s.line(1, "return total")

    def make(draw: Draw) -> list[list[list[str]]]:
        def shift() -> list[str]:
            first = draw.integer(0, 1439)
            length = draw.choose([draw.integer(1, 600), draw.choose([long, least]) + draw.integer(0, 1)])
            return [f"{t // 60 % 24:02d}:{t % 60:02d}" for t in (first, first + length)]

        return [draw.several(4, shift)]

    return make


FAMILIES: tuple[Family, ...] = (
    Family("count_words", "Count words", "text", ("strip", "ignore", "distinct", "cap"), count_words),
    Family("run_lengths", "Lengths of runs", "text", ("empty", "case", "spaces", "longest", "reverse"), run_lengths),
    Family("check_digit", "Check digit", "code", ("dashes", "length", "backwards", "letter"), check_digit),
    Family(
        "shift_letters",
        "Shift letters",
        "text",
        ("empty", "lower", "digits", "spaces", "reverse"),
        shift_letters,
    ),
    Family("bracket_depth", "Depth of brackets", "text", ("empty", "comment", "square", "cap"), bracket_depth),
    Family("top_names", "Best of a ranking", "records", ("empty", "hidden", "least", "distinct"), top_names),
    Family("stock_levels", "Stock levels", "events", ("case", "invalid", "set", "cap"), stock_levels),
    Family("worked_minutes", "Worked minutes", "shifts", ("pause", "short", "grid", "cap"), worked_minutes),
)
