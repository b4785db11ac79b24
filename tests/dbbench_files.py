"""Small records in the shape of DB-Bench's own files, and where the real ones lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_mdp.settings.dbbench.scoring import table_md5

SHARED = Path(__file__).parents[2] / "shared" / "data" / "agentbench_dbbench"

needs_shared_data = pytest.mark.skipif(
    not SHARED.is_dir(), reason="needs AgentBench's DB-Bench files in ../shared/data/agentbench_dbbench"
)

COLUMNS = ("Team", "Year", "Home ground")
ROWS = (("Oslo Bears", "1999", "Valle"), ("Bergen Owls", "2004", "Brann"), ("Malmö FF", "2004", ""))


def record(kind: str = "other", question: str = "Which team joined in 1999?", **changes) -> dict:
    """A record over the table `Hockey Teams`: 3 rows of team, year, home ground."""
    fields = {
        "description": question,
        "label": ["Oslo Bears"],
        "table": {
            "table_name": "Hockey Teams",
            "table_info": {
                "columns": [{"name": name, "type": "TEXT"} for name in COLUMNS],
                "rows": [list(row) for row in ROWS],
            },
        },
        "type": [kind],
        "add_description": "The name of this table is Hockey Teams, and the headers of this table are "
        + ",".join(COLUMNS),
        "sql": {"query": "SELECT Team FROM `Hockey Teams` WHERE Year = '1999'", "length": 1},
    }
    return {**fields, **changes}


def change(kind: str, question: str, sql: str, after) -> dict:
    """A record whose reference SQL leaves the rows `after`."""
    return record(kind, question, label=[sql], answer_md5=f"[('{table_md5(after)}',)]")


def few_records() -> list[dict]:
    """One record of each sort: SQL that gives the label, SQL that does not, and the three changes."""
    new = ("Ghent Hares", "2020", "-")
    return [
        record(),
        record(question="How many teams joined after 2000?", label=["2.0"], sql={"query": "SELECT TeamFROM x"}),
        change(
            "INSERT",
            "Insert the team Ghent Hares, 2020, home ground -.",
            "INSERT INTO `Hockey Teams` VALUES ('Ghent Hares', '2020', '-')",
            [*ROWS, new],
        ),
        change(
            "UPDATE",
            "Set the home ground of Malmo FF to 'North\nHall'.",
            "UPDATE `Hockey Teams` SET `Home ground` = 'North\\nHall' WHERE Team = 'malmo ff';",
            [*ROWS[:2], ("Malmö FF", "2004", "North\nHall")],
        ),
        change("DELETE", "Delete the teams of 2004.", "DELETE FROM `Hockey Teams` WHERE Year = '2004'", ROWS[:1]),
    ]


def write(path: Path, records: list[dict]) -> Path:
    """The records as JSON lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path
