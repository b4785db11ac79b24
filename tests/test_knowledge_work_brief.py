"""How knowledge_work reads briefs: what a chat model may send, and what the rubric makes of ways to say a thing."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_mdp.scoring.rubric import rubric_value
from harness_mdp.settings.knowledge_work import KnowledgeWork
from harness_mdp.settings.knowledge_work.brief import figures, parse_brief, units
from harness_mdp.settings.prompts import Unparsable
from harness_mdp.settings.tasks import Sealed, Task

SETTING = KnowledgeWork()

CANONICAL = """## Summary
The overrun of Cedar is above the limit of 10% [M2].
## Findings
- spend of Cedar: 12,340 [T1]
- overrun of Cedar: 23.4% [T1] [T2]
## Recommendation
- Decision: freeze the project [M2]"""

TASK = Task(
    "one",
    "budget_overrun",
    "standard",
    {
        "subject": "Cedar",
        "others": ["Elm"],
        "options": [
            {"text": "freeze the project", "words": ["freez", "halt"]},
            {"text": "continue the project", "words": ["continu", "proceed"]},
            {"text": "audit the project", "words": ["audit"]},
        ],
    },
)
SEALED = Sealed(
    {
        "figures": [
            {"label": "spend", "value": 12340.0, "decimals": 0, "key": False, "sources": ["T1"]},
            {"label": "overrun", "value": 23.4012, "decimals": 1, "key": True, "sources": ["T1", "T2"]},
        ],
        "limit": {"value": 10, "rivals": [30], "source": "M2"},
        "stance": "above",
        "decision": "freeze the project",
        "rule": "M2",
        "owner": "",
        "rival_owners": [],
    }
)


def criteria(reply):
    found = asyncio.run(SETTING.criteria(TASK, SEALED, SETTING.parse(reply)))
    return {criterion.id: criterion.score for criterion in found}


def score(reply):
    return rubric_value(asyncio.run(SETTING.criteria(TASK, SEALED, SETTING.parse(reply))))


@pytest.mark.parametrize(
    "reply",
    [
        CANONICAL,
        f"```markdown\n{CANONICAL}\n```",
        f"Sure! Here is the brief:\n\n```\n{CANONICAL}\n```\nLet me know if it helps.",
        f"Here is the brief.\n\n{CANONICAL}",
        "# Brief on Cedar\n" + CANONICAL.replace("## ", "\n### ").replace("\n- ", "  \n* "),
        CANONICAL.replace("## Summary", "**Summary**").replace("## Findings", "**Key findings:**"),
        CANONICAL.replace("## Summary\n", "Summary: ").replace("## Recommendation", "Recommendations:"),
        CANONICAL.replace("[T1] [T2]", "[T1, t2]").replace("\n", "\r\n"),
        CANONICAL.replace("12,340", "**12,340**").replace("[M2]", "【M2】"),
        "\n".join(
            f"{n}. {line[3:]}" if line.startswith("##") else line for n, line in enumerate(CANONICAL.split("\n"))
        ),
        f"```markdown\n{CANONICAL}",
    ],
)
def test_one_form_for_every_way_to_send_a_brief(reply):
    assert SETTING.parse(reply) == CANONICAL


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n ",
        "```\n```",
        "I am sorry, I would need more information to do that.",
        "I cannot help with that before 2027.",
        "I'm sorry, but I can't write the summary, findings or recommendation.",
        "## Summary\n## Findings",
        "Cedar looks fine to me.",
    ],
)
def test_a_reply_without_a_brief_cannot_be_read(reply):
    with pytest.raises(Unparsable):
        SETTING.parse(reply)


def test_a_reply_that_is_cut_off_is_read_as_far_as_it_goes():
    cut = f"```markdown\n{CANONICAL[: CANONICAL.index('## Rec')]}"
    assert {unit.section for unit in units(SETTING.parse(cut))} == {"Summary", "Findings"}
    assert score(cut) < 0.5


def test_figures_without_headings_are_kept_and_do_not_decide():
    reply = "The spend of Cedar is 12,340 [T1] and we should freeze it [M2]."
    assert SETTING.parse(reply) == reply
    assert criteria(reply) == {"decision": 0.0, "figures": 0.5, "points": 0.0, "citations": 0.25}


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab#*-_ \n1.[]TM:`=()+,é\u2028", max_size=60) | st.text(max_size=60))
def test_reading_a_canonical_brief_changes_nothing(noise):
    for reply in (noise, CANONICAL + noise, f"Summary: {noise}\nFindings: 3"):
        try:
            text = parse_brief(reply)
        except Unparsable:
            continue
        assert parse_brief(text) == text
        assert 0.0 <= score(text) <= 1.0


def test_long_runs_of_digits_are_read_quickly():
    assert figures("1 " * 50_000)[0].value == 1.0
    assert parse_brief("## Summary\n" + "1=2 " * 20_000)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.0 and $1234 and 1.234k", [1234, 1234, 1234]),
        ("7,000 + 5,340 = 12,340", [12340]),
        ("Q3, SKU-12, the 12th", []),
        ("23.4% of 5 million", [23.4, 5e6]),
        ("-12.5 and −3 and $-4, 10-20", [-12.5, -3, -4, 10, 20]),
    ],
)
def test_numbers_in_text(text, values):
    assert [figure.value for figure in figures(text)] == pytest.approx(values)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("12,340", "12340.0"),
        ("12,340", "$12,340"),
        ("12,340", "7,000 + 5,340 = 12,340"),
        ("23.4%", "23.40 %"),
        ("above the limit of 10%", "over the 10% limit"),
        ("is above the limit of 10%", "exceeds the threshold, which is 10%"),
        ("is above the limit of 10%", "is not within the limit of 10%"),
        ("above the limit of 10%", "above 10%"),
        ("The overrun of Cedar is above", "At 23.4% the overrun of Cedar lies above"),
        ("spend of Cedar: 12,340", "Expenditure comes to 12,340"),
        ("- Decision: freeze the project", "We should freeze the project, and not continue it"),
        ("- Decision: freeze the project", "Halting it is right, rather than an audit"),
    ],
)
def test_the_rubric_is_blind_to_style(old, new):
    assert old in CANONICAL
    assert score(CANONICAL.replace(old, new)) == 1.0


@pytest.mark.parametrize(
    ("old", "new", "lowered"),
    [
        ("12,340", "12,341", "figures"),
        ("12,340", "12,340 or 13,340", "figures"),
        ("spend of Cedar: 12,340", "spend of Elm: 12,340", "figures"),
        ("23.4%", "23.6%", "figures"),
        ("23.4%", "23.4%, 18.9% or 123.4%", "figures"),
        ("above", "within", "points"),
        ("above", "above, or within,", "points"),
        ("above", "not above", "points"),
        ("limit of 10%", "limit of 30%", "points"),
        ("limit of 10%", "limit of 10% or 30%", "points"),
        ("freeze the project", "continue the project", "decision"),
        ("freeze the project", "freeze, continue or audit the project", "decision"),
        ("freeze the project", "do not freeze the project", "decision"),
        ("freeze the project", "think again", "decision"),
        ("12,340 [T1]", "12,340", "citations"),
        ("12,340 [T1]", "12,340 [T3]", "citations"),
        ("12,340 [T1]", "12,340 [T1] [T2] [T3] [M1] [M2] [M3]", "citations"),
    ],
)
def test_the_rubric_sees_what_is_wrong_or_hedged(old, new, lowered):
    assert old in CANONICAL
    assert criteria(CANONICAL.replace(old, new))[lowered] < 1.0


def test_a_lucky_decision_counts_half():
    assert criteria(CANONICAL.replace("23.4%", "99.9%"))["decision"] == 0.5


def test_a_brief_that_lists_everything_scores_nothing():
    numbers = " ".join(str(n) for n in (23.4, 12340, 10, 30, 5, 6, 7, 8))
    everything = f"## Summary\nThe overrun is above or within the limit: {numbers}.\n## Findings\n- spend: {numbers}\n"
    everything += "## Recommendation\n- Decision: freeze, continue or audit the project [M1] [M2] [T1] [T2]"
    assert score(everything) == 0.0


def test_an_empty_text_scores_nothing():
    assert all(c.score == 0.0 for c in asyncio.run(SETTING.criteria(TASK, SEALED, "")))
