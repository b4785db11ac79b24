"""Reading answer and sources from what chat models send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_mdp.settings.answers import normalised, says
from harness_mdp.settings.prompts import Unparsable
from harness_mdp.settings.research.draft import Draft, parse_draft

HALSTEAD = Draft("Halstead", ("doc-3", "doc-5"))


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: Halstead\nSources: [doc-3] [doc-5]",
        "answer : Halstead.\nSource: doc-3, doc 5",
        "```\nAnswer: Halstead\nSources: [doc-3] [doc-5]\n```",
        "Here is what I found.\n\n**Answer:** Halstead\n**Sources:** [doc-3], [doc-5], [doc-3]\n\nI hope this helps!",
        '{"answer": "Halstead", "citations": ["doc-3", "doc-5"]}',
        'Sure!\n```json\n{"citations": ["doc-3", "doc-5"], "answer": "Halstead"}\n```\nDone.',
        'The result is {"answer": "Halstead", "citations": ["doc-3", "doc-5"]} as asked.',
        '```json\n{"answer": "Halstead", "citations": ["doc-3", "doc-5"',
        "Halstead [doc-3] [doc-5]",
        "Halstead [doc-3, doc-5].",
        "Halstead\n[doc-3] [doc-5]",
        "Answer: Halstead. Sources: [doc-3] [doc-5]",
        "Answer: Halstead [hit-3] [hit-5]",
        "Halstead (doc-3) (doc-5).",
        "Halstead (doc-3) (doc-5",
        "=== Answer ===\nHalstead (doc-3) (doc-5)",
        "== Question ===\nIn which town was she born?\n=== Evidence ===\nHalstead [doc-3] [doc-5]",
    ],
)
def test_the_same_draft_in_many_forms(reply):
    assert parse_draft(reply) == HALSTEAD


@pytest.mark.parametrize(
    ("reply", "draft"),
    [
        ("Thea Norwood wrote The Frozen Promise.", Draft("Thea Norwood wrote The Frozen Promise", ())),
        ("1795", Draft("1795", ())),
        ('{"answer": 1795, "citations": "doc-2"}', Draft("1795", ("doc-2",))),
        ("Answer: Halstead", Draft("Halstead", ())),
        ("Answer: 1795 [doc-number]", Draft("1795", ())),
        ('{"answer": "Halstead", "cita', Draft("Halstead", ())),
        ("1978\n\nIt is said that the town dates from 1798.", Draft("1978", ())),
        ("In which town was she born?\nHalstead [doc-3]\nIt lies", Draft("Halstead", ("doc-3",))),
        ("Here it is:\nHalstead", Draft("Halstead", ())),
    ],
)
def test_a_bare_or_truncated_answer_has_the_sources_it_names_and_no_others(reply, draft):
    assert parse_draft(reply) == draft


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        "```\n```",
        "Answer:",
        "Answer: ...\nSources: [doc-3]",
        "[doc-3]",
        "I am sorry, I would need more information to do that.",
        "I can't help with that.",
        "As an AI, I cannot answer this.",
        "There is not enough information.",
        "x" * 300,
        "Which town is it?",
        '{"answer": null, "citations": []}',
        '{"answer": "Halst',
        '{"answer": ["Halstead"]}',
        "=== Question ===\nWhich town is it?\n=== Answer ===",
    ],
)
def test_nothing_to_read_is_unparsable(reply):
    with pytest.raises(Unparsable):
        parse_draft(reply)


@given(st.text(max_size=400))
def test_any_text_is_a_draft_or_unparsable_and_reading_again_changes_nothing(reply):
    try:
        draft = parse_draft(reply)
    except Unparsable:
        return
    assert "\n" not in draft.answer
    assert parse_draft(draft.text) == draft


@given(
    st.lists(
        st.sampled_from(["{", "}", '"answer"', ":", '"', "Answer:", "Sources:", "[doc-1]", "\n", "```", "é", "\\u"])
    )
)
def test_any_heap_of_fragments_is_a_draft_or_unparsable(pieces):
    reply = " ".join(pieces)
    try:
        draft = parse_draft(reply)
    except Unparsable:
        return
    assert parse_draft(draft.text) == draft


def test_answers_are_compared_without_case_articles_accents_and_punctuation():
    assert normalised("The  Quiet   HARBOUR.") == normalised("quiet harbour")
    assert normalised("Élsa Kirby") == "elsa kirby"
    assert says("It is set in Halstead.", "halstead")
    assert not says("It is set in Halsteadford.", "Halstead")
    assert not says("anything", "the")
