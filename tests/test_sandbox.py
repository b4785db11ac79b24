"""What the sandbox gives back for code that means well."""

import asyncio
import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp import sandbox
from harness_mdp.executors.protocol import InfraFault
from harness_mdp.sandbox import Limits, RunStatus, run_calls, same


def run(source, calls=((1,),), function="f", limits=None):
    return asyncio.run(run_calls(source, function, calls, limits))


def test_returns_one_outcome_per_call_in_order():
    result = run("def f(x, y):\n    return [x + y, {'k': x / y}]", [(1, 2), (3, 4)])
    assert result.status is RunStatus.FINISHED
    assert [outcome.value for outcome in result.outcomes] == [[3, {"k": 0.5}], [7, {"k": 0.75}]]


def test_a_call_that_raises_does_not_disturb_the_next():
    first, second = run("def f(x):\n    return 10 // x", [(0,), (5,)]).outcomes
    assert (first.ok, second.ok, second.value) == (False, True, 2)
    assert first.error.startswith("ZeroDivisionError: ")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def f(x) return x", "SyntaxError"),
        ("def g(x): return x", "NameError: there is no function f"),
        ("f = 3", "NameError: there is no function f"),
        ("raise KeyError('k')", "KeyError"),
        ("def f(): return 1", "TypeError"),
        ("", "NameError"),
        ("\0", "SyntaxError|ValueError"),
    ],
)
def test_code_that_cannot_be_loaded_or_called_says_why(source, error):
    (outcome,) = run(source).outcomes
    assert not outcome.ok
    assert outcome.error.startswith(tuple(error.split("|")))


@pytest.mark.parametrize("value", ["{1, 2}", "{1: 2}", "b'x'", "float('nan')", "float('inf')", "object()", "10**5000"])
def test_values_that_are_no_plain_json_are_errors(value):
    (outcome,) = run(f"def f(x):\n    return {value}").outcomes
    assert not outcome.ok


def test_a_tuple_comes_out_as_a_list():
    assert run("def f(x):\n    return (x, (x,))").outcomes[0].value == [1, [1]]


def test_safe_modules_can_be_imported_even_where_the_files_are_out_of_reach():
    source = "import math\ndef f(x):\n    from collections import Counter\n    return Counter('aab')['a']"
    assert run(source).outcomes[0].value == 2
    everything = "".join(f"import {module}\n" for module in sorted(sandbox.SAFE_MODULES))
    assert run(f"{everything}def f(x):\n    return statistics.median([x, x])").outcomes[0].value == 1


def test_arguments_and_environment_are_clean():
    source = "import sys\ndef f(x):\n    import os\n    return [sorted(os.environ), os.listdir('.'), sys.path]"
    environment, files, path = run(source).outcomes[0].value
    assert set(environment) <= {"PYTHONHASHSEED", "LC_ALL"}
    assert files == []
    assert not any(name == "" or "site-packages" in name or "harness_mdp" in name for name in path)


def test_sets_are_walked_through_in_the_same_order_in_every_run():
    words = [f"word{i}" for i in range(20)]
    values = [run(f"def f(x):\n    return list(set(x))  # {i}", [(words,)]).outcomes[0].value for i in range(2)]
    assert values[0] == values[1]


def test_what_is_printed_is_thrown_away(capfd):
    result = run("print('a' * 100000)\ndef f(x):\n    import sys\n    print('b', file=sys.stderr)\n    return x")
    assert result.outcomes[0].value == 1
    assert capfd.readouterr() == ("", "")


def test_the_same_draft_runs_once():
    source = "def f(x):\n    import time\n    return time.time_ns()"
    first, second = run(source), run(source)
    assert first is second
    assert run(source, [(2,)]) is not first
    assert run(source + " ") is not first


def test_many_runs_at_once_keep_their_results_apart():
    async def main():
        sources = [f"def f(x):\n    return [x, {i}, 'many']" for i in range(12)]
        return await asyncio.gather(*(run_calls(source, "f", [[i]]) for i, source in enumerate(sources)))

    results = asyncio.run(main())
    assert [result.outcomes[0].value for result in results] == [[i, i, "many"] for i in range(12)]


def test_a_sandbox_that_cannot_start_is_no_fault_of_the_code(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "CHILD", tmp_path / "missing.py")
    with pytest.raises(InfraFault, match="before it ran any code"):
        run("def f(x):\n    return 'cannot start'")


def test_isolation_is_reported_as_it_holds():
    """Asks the child itself, with modules that no artifact gets, whether what it reports is true."""
    probe = (
        "def f(x):\n"
        "    import os, socket\n"
        "    found = {'files': not os.path.exists('/etc')}\n"
        "    try:\n"
        "        socket.socket()\n"
        "        found['syscalls'] = False\n"
        "    except PermissionError:\n"
        "        found['syscalls'] = True\n"
        "    return found\n"
    )
    job = {
        "source": probe,
        "function": "f",
        "calls": [[1]],
        "modules": ["os", "socket"],
        "limits": {"cpu_s": 2, "memory_mib": 512},
    }
    command = [sys.executable, *sandbox.FLAGS, str(sandbox.CHILD), "1"]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=True)
    header, outcome = map(json.loads, done.stdout.splitlines())
    for name, holds in outcome["value"].items():
        if name in header["isolation"]:
            assert holds, name


def test_limits_are_part_of_what_is_remembered():
    source = "def f(x):\n    return len('a' * x)"
    assert run(source, [(10,)], limits=Limits(memory_mib=256)) is not run(source, [(10,)])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values)
def test_a_value_is_the_same_as_itself_after_json(value):
    assert same(value, json.loads(json.dumps(value)))


@given(json_values)
def test_a_value_is_not_the_same_inside_another(value):
    assert not same(value, [value])
    assert not same({"k": value}, {"k": value, "l": value})


@pytest.mark.parametrize(
    ("expected", "got", "answer"),
    [
        (1, True, False),
        (True, 1, False),
        (False, None, False),
        (0.1 + 0.2, 0.3, True),
        (2.0, 2, True),
        (2, 2.0, False),
        (1.0, 10**400, False),
        (1.0, math.nan, False),
        ("1", 1, False),
        ([1, 2], [2, 1], False),
        ([1.0, {"a": 1e-12}], [1, {"a": 0.0}], True),
        (1e20, 1e20 + 1e9, True),
        (1e-3, 1.001e-3, False),
    ],
)
def test_floats_have_a_tolerance_and_types_are_exact(expected, got, answer):
    assert same(expected, got) is answer
