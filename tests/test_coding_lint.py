"""What the check of coding says about a draft without running it."""

import pytest

from harness_mdp.settings.coding.lint import ITEMS, check_source
from harness_mdp.settings.coding.tasks import generate


def problems(source, arity=1):
    return {item.id: item.problem for item in check_source(source, "f", arity) if not item.passed}


@pytest.mark.parametrize(
    ("source", "item", "says"),
    [
        ("def f(x, y):\n    return x + y", "defines", "f takes 2 arguments, expected 1"),
        ("def f():\n    return 1", "defines", "f takes 0 arguments, expected 1"),
        ("def f(x):\n    return x + total", "names", "undefined name: total"),
        ("def f(x):\n    return [z + y for z in x]", "names", "undefined name: y"),
        ("print(limit)\ndef f(x):\n    return x", "names", "undefined name: limit"),
        ("def f(x):\n    print(x)", "returns", "f never returns a value"),
        ("import os\ndef f(x):\n    return os.sep + x", "allowed", "line 1: import of os is not allowed"),
        ("def f(x):\n    from . import y\n    return x + y", "allowed", "is not allowed"),
        ("def f(x):\n    return eval(x)", "allowed", "line 2: use of eval is not allowed"),
        ("def f(x):\n    return 1", "unused", "parameter x of f is never used"),
        ("def f(x):\n    y = 2\n    return x", "unused", "variable y of f is never used"),
    ],
)
def test_each_item_names_its_problem(source, item, says):
    found = problems(source)
    assert list(found) == [item]
    assert says in found[item]


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x",
        "def f(x, y=1):\n    return x + y",
        "def f(*xs):\n    return xs[0]",
        "LIMIT = 3\ndef f(x):\n    return min(x, LIMIT)",
        "import math\ndef f(x):\n    return math.sqrt(x)",
        "from collections import Counter\ndef f(x):\n    return Counter(x).most_common(1)[0][0]",
        "def help_f(n):\n    return n + 1\ndef f(x):\n    return help_f(x)",
        "def f(x):\n    k = 2\n    def inner(y):\n        return y * k\n    return inner(x)",
        "def f(x):\n    return sum(a for a, _ in x)",
        "def f(x):\n    global seen\n    seen = x\n    return seen",
        "class Box:\n    size = 2\ndef f(x):\n    return Box().size + x",
        "def f(x):\n    try:\n        return int(x)\n    except ValueError as error:\n        return str(error)",
        "def f(x):\n    if x == 0:\n        return 1\n    return x * f(x - 1)",
    ],
)
def test_sound_code_has_no_problem(source):
    assert problems(source) == {}


def test_a_missing_function_is_one_problem():
    assert set(problems("def g(x):\n    return x").values()) == {"there is no function named f"}


@pytest.mark.parametrize("source", ["def f(x):\n  y = (", "", "x" * 10, "(" * 9000, "1" + "+1" * 40_000])
def test_anything_may_be_checked(source):
    assert problems(source)


@pytest.mark.parametrize("source", [r"def f(x): return x + '\d'", "def f(x): return x is 'a'"])
def test_nothing_is_warned_about(source, recwarn):
    check_source(source, "f", 1)
    assert not recwarn.list


@pytest.mark.parametrize("source", ["def f(x) return x", "return 1", "x = " + "-" * 50_000 + "1", "\0", "'\udc80'"])
def test_code_that_does_not_compile_fails_every_item_with_one_problem(source):
    items = check_source(source, "f", 1)
    assert [item.id for item in items] == list(ITEMS)
    assert not any(item.passed for item in items)
    assert len({item.problem for item in items}) == 1


def test_references_have_no_problem_and_undefined_names_among_faults_are_found():
    store = generate(0, 100)
    found = 0
    for task in store.tasks:
        text = store.answers[task.id].text
        arity = len(task.public["visible_tests"][0]["args"])
        assert all(item.passed for item in check_source(text.reference, task.template, arity)), task.id
        last = text.render([len(slot.options) - 1 for slot in text.slots])
        found += any("undefined" in item.problem for item in check_source(last, task.template, arity))
    assert found > 80
