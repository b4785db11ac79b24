"""What the sandbox does with code that is broken or means harm: one test per attack."""

import asyncio
import os

import pytest

from harness_mdp.sandbox import Limits, RunStatus, run_calls

QUICK = Limits(cpu_s=1, wall_s=5.0)


def attack(body, calls=((1,), (2,)), limits=QUICK):
    source = "import os, sys\ndef f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return asyncio.run(run_calls(source, "f", calls, limits))


def results(result):
    return [outcome.value if outcome.ok else None for outcome in result.outcomes]


def test_an_endless_loop_runs_out_of_cpu_and_earlier_results_stay():
    result = attack("if x == 2:\n    while True:\n        pass\nreturn x", [(1,), (2,), (3,)])
    assert result.status is RunStatus.OUT_OF_CPU
    assert results(result) == [1, None, None]
    assert result.outcomes[1].error == "ran out of CPU time"


def test_a_loop_while_the_code_is_loaded_ends_too():
    result = asyncio.run(run_calls("while True:\n    pass", "f", [[1]], QUICK))
    assert result.status is RunStatus.OUT_OF_CPU


def test_code_that_sleeps_runs_out_of_time():
    result = attack("import time\ntime.sleep(1000)", limits=Limits(wall_s=0.3))
    assert result.status is RunStatus.TIMEOUT
    assert results(result) == [None, None]


def test_deep_recursion_is_an_error_of_that_call():
    result = attack("return f(x) if x == 1 else x")
    assert results(result) == [None, 2]
    assert result.outcomes[0].error.startswith("RecursionError")


def test_recursion_without_a_limit_hits_memory_or_time():
    result = attack("sys.setrecursionlimit(10**9)\nreturn f(x)", [(1,)], Limits(cpu_s=1, memory_mib=128))
    assert results(result) == [None]


def test_a_result_that_is_nested_without_end_is_an_error():
    result = attack("a = []\nif x == 1:\n    a.append(a)\nreturn a")
    assert results(result) == [None, []]


def test_a_huge_allocation_is_an_error_of_that_call():
    result = attack("return len('a' * (10**11)) if x == 1 else x")
    assert results(result) == [None, 2]
    assert result.outcomes[0].error.startswith("MemoryError")


def test_memory_taken_bit_by_bit_ends():
    result = attack("a = []\nwhile True:\n    a.append(bytearray(10**7))", [(1,)], Limits(memory_mib=128))
    assert results(result) == [None]


def test_oversized_output_is_no_result():
    result = attack("return 'a' * (10**7)")
    assert result.status is RunStatus.BROKEN
    assert results(result) == [None, None]


@pytest.mark.parametrize("leave", ["os._exit(0)", "os.abort()", "os.kill(os.getpid(), 9)"])
def test_leaving_early_gives_no_result_for_what_was_not_reached(leave):
    result = attack(f"if x == 2:\n    {leave}\nreturn x", [(1,), (2,)])
    assert results(result) == [1, None]


@pytest.mark.parametrize("leave", ["sys.exit(0)", "raise KeyboardInterrupt", "raise SystemExit", "exit()"])
def test_exceptions_that_end_programs_are_errors_of_the_call(leave):
    assert results(attack(f"if x == 1:\n    {leave}\nreturn x")) == [None, 2]


def test_an_exception_whose_message_raises_is_still_reported():
    result = attack("class Bad(Exception):\n    def __str__(self):\n        raise self\nraise Bad")
    assert [outcome.error for outcome in result.outcomes] == ["Bad: (no message)"] * 2


def test_a_fork_bomb_gets_nowhere():
    result = attack("while True:\n    os.fork()", limits=Limits(cpu_s=1, wall_s=2.0))
    assert results(result) == [None, None]


@pytest.mark.parametrize(
    "body",
    [
        "import _thread\n_thread.start_new_thread(print, ())\nreturn 1",
        "assert os.system('true') == 0",
        "os.execv('/bin/true', ['true'])",
        "assert os.posix_spawn('/bin/true', ['true'], {})",
        "import socket\nreturn socket.socket().fileno()",
        "return os.kill(os.getppid(), 0)",
        "return open('/etc/hostname').read()",
        "return os.listdir('/')[0]",
        "return open('/proc/self/environ').read()",
    ],
)
def test_nothing_outside_can_be_reached(body):
    result = attack(body)
    if {"files", "syscalls"} <= set(result.isolation):
        assert results(result) == [None, None]


def test_closing_every_file_gives_no_result_and_leaves_no_process():
    result = attack("if x == 1:\n    return os.getpid()\nos.closerange(0, 64)\nimport time\ntime.sleep(1000)")
    pid, nothing = results(result)
    assert nothing is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


WRITE_EVERYWHERE = """\
for fd in range(64):
    try:
        os.write(fd, {!r})
    except OSError:
        pass
return x"""

NOISE = [b"noise\n", b'{"value": 1}\n', b'{"error": 1}\n', b"[" * 100_000 + b"\n", b"\xff\xfe\n"]


@pytest.mark.parametrize("noise", NOISE)
def test_writing_to_the_result_pipe_voids_all_results(noise):
    result = attack(WRITE_EVERYWHERE.format(noise))
    assert result.status is RunStatus.BROKEN
    assert results(result) == [None, None]


def test_flooding_the_result_pipe_ends_at_the_output_limit():
    result = attack("while True:\n    os.write(int(sys.argv[1]), b'x' * 65536)")
    assert result.status is RunStatus.BROKEN


def test_results_may_be_forged_but_nothing_says_which_would_pass():
    """The attacker controls every object of its process; all it can do is state values of its own."""
    body = 'os.write(int(sys.argv[1]), b\'{"value": 41}\\n{"value": 42}\\n\')\nos._exit(0)'
    assert results(attack(body)) == [41, 42]


def test_replacing_what_the_child_uses_does_no_harm_outside():
    body = "import json\njson.dumps = lambda *a, **k: 'x'\nos.write = None\nsys.modules.clear()\nreturn x"
    result = attack(body)
    assert len(result.outcomes) == 2


def test_files_are_small_and_gone_afterwards():
    assert results(attack("open('big', 'w').write('a' * (10**8))\nreturn 1", [(1,)])) == [None]


def test_unpaired_surrogates_in_source_and_messages_do_no_harm():
    result = attack("raise ValueError('\\udc80' + chr(0xd800))")
    assert all(outcome.error.encode() for outcome in result.outcomes)
    assert not asyncio.run(run_calls("def f(x): return '\udc80'", "f", [[1]])).outcomes[0].ok


def test_a_time_out_is_tried_again():
    """It may have been the machine's fault; a result that was remembered would be the same object."""
    limits = Limits(wall_s=0.2)
    first, second = (attack("import time\ntime.sleep(1000)", limits=limits) for _ in range(2))
    assert first.status is second.status is RunStatus.TIMEOUT
    assert first is not second
