"""The notebook runs from its first cell to its answer, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "analysis" / "maturity_vs_quality.ipynb"


def notebook() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def test_outputs_are_stripped():
    nbformat.validate(notebook())
    for cell in notebook().cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_it_runs_and_answers_its_question():
    book = notebook()
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parent.parent)}}
    ).execute()
    (answer,) = (o for o in book.cells[-1].outputs if "data" in o)
    text = answer["data"]["text/markdown"]
    assert text.startswith("Pooled, r = ")
    assert "within setting and policy, r = " in text
    for setting in ("research", "multi_tool", "planning"):
        for arm in ("forced_check", "check_revise", "random"):
            assert f"- {setting}: `{arm}` is" in text
    assert sum("image/png" in o.get("data", {}) for cell in book.cells for o in cell.get("outputs", [])) == 4
