"""SQL that a model wrote runs apart, on a copy, and cannot do more than read and change its table."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_mdp.settings.dbbench.sql_worker import SqlPool, Table

PEOPLE = Table("People", ("Name", "Age"), (("Ann", "9"), ("Bob", "10"), ("Żoë", None)))


@pytest.fixture(scope="module")
def pool():
    pool = SqlPool(size=2)
    yield pool
    pool.close()


def run(pool: SqlPool, sql: str, table: Table = PEOPLE):
    return pool.run(table, [sql])[0]


def our_workers() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == os.getpid() and b"sql_child.py" in command:
            found.append(int(entry.name))
    return found


def test_select_returns_rows_and_changes_nothing(pool):
    result = run(pool, "SELECT Name, Age FROM People WHERE Age IS NOT NULL ORDER BY Name")
    assert result.error is None
    assert result.columns == ("Name", "Age")
    assert result.rows == (("Ann", "9"), ("Bob", "10"))
    assert result.values == ("Ann", "9", "Bob", "10")
    assert (result.added, result.removed) == ((), ())


def test_changes_are_reported_as_rows_added_and_removed(pool):
    assert run(pool, "INSERT INTO People VALUES ('Cy', 4)").added == (("Cy", "4"),)
    update = run(pool, "UPDATE People SET Age = '11' WHERE Name = 'Bob'")
    assert (update.added, update.removed) == ((("Bob", "11"),), (("Bob", "10"),))
    assert run(pool, "DELETE FROM People WHERE Age IS NULL").removed == (("Żoë", None),)


def test_every_batch_gets_a_fresh_copy(pool):
    first, second = pool.run(PEOPLE, ["DELETE FROM People", "SELECT COUNT(*) FROM People"])
    assert len(first.removed) == 3
    assert second.rows == ((3,),)


def test_several_statements_run_in_order_and_keep_what_happened_before_a_failure(pool):
    result = run(pool, "INSERT INTO People VALUES ('Cy', 1); SELECT Nope FROM People; DELETE FROM People")
    assert result.error == "no such column: Nope"
    assert result.added == (("Cy", "1"),)
    assert result.removed == ()


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH DATABASE '/etc/passwd' AS other",
        "DETACH DATABASE main",
        "PRAGMA database_list",
        "PRAGMA hard_heap_limit = 0",
        "SELECT load_extension('/lib/x.so')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/x', 'y')",
        "CREATE TABLE other (a)",
        "CREATE TEMP TABLE other (a)",
        "CREATE TRIGGER t AFTER INSERT ON People BEGIN DELETE FROM People; END",
        "CREATE VIRTUAL TABLE other USING fts5(a)",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE People",
        "ALTER TABLE People ADD COLUMN x",
        "UPDATE sqlite_master SET sql = ''",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT x",
        "VACUUM",
        "ANALYZE",
        "SELECT random()",
        "SELECT randomblob(4)",
        "SELECT datetime('now')",
        "SELECT strftime('%Y')",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT zeroblob(10)",
        "SELECT fts3_tokenizer('simple')",
    ],
)
def test_anything_but_reading_and_changing_the_table_is_refused(pool, sql):
    result = run(pool, sql)
    assert result.error is not None
    assert (result.rows, result.added, result.removed) == ((), (), ())
    assert run(pool, "SELECT COUNT(*) FROM People").rows == ((3,),)


def test_vacuum_into_writes_no_file(pool, tmp_path):
    assert run(pool, f"VACUUM INTO '{tmp_path / 'stolen.db'}'").error is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO People SELECT i, i FROM n",
        "SELECT COUNT(*) FROM People a, People b, People c, People d, People e, People f, People g, People h, "
        "People i, People j, People k, People l, People m, People n",
    ],
)
def test_work_without_end_stops_at_the_same_step_every_time(pool, sql):
    first, second = run(pool, sql), run(pool, sql)
    assert (
        first.error == "stopped after 2000000 steps: the statement does too much work" or "grew beyond" in first.error
    )
    assert first == second
    assert run(pool, "SELECT COUNT(*) FROM People").rows == ((3,),)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT group_concat(printf('%90000d', 1)) FROM People",
        "SELECT replace(hex(printf('%50000d', 1)), '0', printf('%50000d', 1))",
        "WITH RECURSIVE n(i, t) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, t || t FROM n) SELECT t FROM n",
    ],
)
def test_values_without_end_are_an_error(pool, sql):
    assert run(pool, sql).error is not None
    assert run(pool, "SELECT 1").rows == ((1,),)


def test_long_results_are_cut_and_say_so(pool):
    result = run(pool, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n")
    assert result.truncated
    assert len(result.rows) == 1000


def test_odd_values_come_back_as_text(pool):
    result = run(pool, "SELECT x'00ff', 9e999, CAST(x'ff' AS TEXT), NULL, 1.5")
    assert result.rows == (("00ff", "inf", "�", None, 1.5),)


@pytest.mark.parametrize("sql", ["", " ; ; ", "-- only a comment", "SELECT 1;" * 21, "SELECT '" + "x" * 200_000 + "'"])
def test_what_is_no_runnable_sql_is_an_error_of_its_own(pool, sql):
    results = pool.run(PEOPLE, ["SELECT 1", sql, "SELECT 2"])
    assert results[1].error
    assert [results[0].rows, results[2].rows] == [((1,),), ((2,),)]


def test_text_is_compared_as_mysql_does(pool):
    assert run(pool, "SELECT Name FROM People WHERE Name = 'ANN'").rows == (("Ann",),)
    assert run(pool, "SELECT Name FROM People WHERE Name = 'zoe'").rows == (("Żoë",),)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_workers_have_no_environment_and_few_files():
    pool = SqlPool(size=1)
    run(pool, "SELECT 1")
    (pid,) = set(our_workers()) & {pool._places.queue[0]._process.pid}
    # The interpreter may set its own locale variable; nothing of ours is there.
    names = {entry.split(b"=")[0] for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if entry}
    assert names <= {b"LC_CTYPE"}
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert "Max file size             0" in limits
    assert "Max processes             0" in limits
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    pool.close()


def test_a_killed_worker_is_replaced():
    pool = SqlPool(size=1)
    assert run(pool, "SELECT 1").rows == ((1,),)
    os.kill(pool._places.queue[0]._process.pid, signal.SIGKILL)
    assert run(pool, "SELECT 2").rows == ((2,),)
    pool.close()


def test_close_ends_the_processes_and_a_later_run_starts_new_ones():
    pool = SqlPool(size=1)
    run(pool, "SELECT 1")
    process = pool._places.queue[0]._process
    pool.close()
    assert process.poll() is not None
    assert run(pool, "SELECT 3").rows == ((3,),)
    pool.close()


def test_many_threads_share_the_workers(pool):
    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda i: run(pool, f"SELECT {i}, COUNT(*) FROM People"), range(100)))
    assert [result.rows for result in results] == [((i, 3),) for i in range(100)]
