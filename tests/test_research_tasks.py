"""The research tasks: reproducible, answerable from their own documents, and harder where they say so."""

import re
from collections import Counter

import pytest

from harness_mdp.hashing import canonical_json
from harness_mdp.settings.answers import says
from harness_mdp.settings.research import Research
from harness_mdp.settings.research.draft import read_draft
from harness_mdp.settings.tasks import split_tasks

RESEARCH = Research()
STORE = RESEARCH.tasks(seed=0, n=100, path=None)
NAME = r"(?:The |River )?[A-Z][\w ]*?"

# A reader of the documents that shares nothing with the generator: relation -> pattern of the value.
FACTS = {
    "builder": r"(?:was built by|came from the yard of) (.+?)\.",
    "launched": r"(?:was launched in|first put to sea in) (\d+)\.",
    "captain": r"(?:sails under captain (.+?)\.|has ([^.]+?) as captain\.)",
    "port": r"(?:has (\w+) as home port\.|is registered in (\w+)\.)",
    "author": r"(?:was written by|is the work of the author) (.+?)\.",
    "published": r"(?:was published in|first appeared in) (\d+)\.",
    "scene": r"(?:is set in|tells of a summer in) (\w+)\.",
    "birthplace": r"(?:was born in|comes from) the town of (\w+)\.",
    "born": r"(?:was born in the year (\d+)\.|has (\d+) as year of birth\.)",
    "employer": r"(?:worked for|was employed by) (.+?)\.",
    "river": r"(?:lies on|stands on the banks of) the (.+?)\.",
    "founded": r"(?:was founded in|dates from) (\d+)\.",
    "seat": r"(?:is based in|has its head office in) (\w+)\.",
    "established": r"(?:was established in|opened its doors in) (\d+)\.",
    "founder": r"(?:was started by (.+?)\.|has ([^.]+?) as its founder\.)",
    "designer": r"(?:was designed by|was built to plans by) (.+?)\.",
    "opened": r"(?:was opened in|has carried traffic since) (\d+)\.",
    "spans": r"(?:crosses|leads over) the (.+?)\.",
}
TERM = re.compile(r"(?:was mayor of|led) (\w+)(?: as mayor)? from (\d+) to (\d+)\.")
# Question -> chain of relations to follow from the entity named.
CHAINS = {
    r"Which company built the (.+)\?": "builder",
    r"Who is the captain of the ((?!ship built).+)\?": "captain",
    r"Which town is the home port of the (.+)\?": "port",
    r"Who wrote (.+)\?": "author",
    r"Who designed the (.+)\?": "designer",
    r"In which town is ((?!the ).+) based\?": "seat",
    r"Who started (.+)\?": "founder",
    r"On which river does (.+) lie\?": "river",
    r"In which town was ((?!the ).+) born\?": "birthplace",
    r"In which year was the (.+) launched\?": "launched",
    r"In which year was (.+) published\?": "published",
    r"In which year was the ((?!town ).+) opened\?": "opened",
    r"In which year was (.+) established\?": "established",
    r"In which year was (\w+) founded\?": "founded",
    r"In which year was ((?!the ).+) born\?": "born",
    r"In which town was the author of (.+) born\?": "author birthplace",
    r"In which year was the author of (.+) born\?": "author born",
    r"In which town is the company based that built the (.+)\?": "builder seat",
    r"In which town was the captain of the (.+) born\?": "captain birthplace",
    r"On which river lies the town where (.+) is based\?": "seat river",
    r"In which year was the founder of (.+) born\?": "founder born",
    r"Which company employed the designer of the (.+)\?": "designer employer",
    r"On which river lies the town where the author of (.+) was born\?": "author birthplace river",
    r"In which town was the founder of the company born that built the (.+)\?": "builder founder birthplace",
    r"In which year was the town founded where the captain of the (.+) was born\?": "captain birthplace founded",
    r"In which town is the company based that employed the designer of the (.+)\?": "designer employer seat",
}
COMPARED = {
    "ship was launched": "launched",
    "book was published": "published",
    "bridge was opened": "opened",
    "company was established": "established",
    "town was founded": "founded",
    "book has the author who was born": "author born",
    "ship has the builder established": "builder established",
    "bridge has the designer who was born": "designer born",
}
RANKED = {"launched": "builder", "published": "author", "opened": "designer"}


class Reader:
    """Answers a question from the public documents alone, by its own rules."""

    def __init__(self, public):
        self.public = public
        self.texts = {d["title"]: d["text"] for d in public["documents"]}
        self.used = []

    def fact(self, title, relation):
        found = re.search(FACTS[relation], self.texts[title])
        if found is None:
            return None
        self.used.append(title)
        return next(group for group in found.groups() if group)

    def follow(self, title, chain):
        for relation in chain.split():
            title = self.fact(title, relation)
        return title

    def answer(self):
        question = self.public["question"]
        for rule in (self.term, self.compare, self.rank):
            if (found := rule(question)) is not None:
                return found
        [(chain, name)] = [(c, m[1]) for p, c in CHAINS.items() if (m := re.fullmatch(p, question))]
        return self.follow(name, chain)

    def term(self, question):
        if "mayor" not in question:
            return None
        year = int(re.search(r"\d{4}", question)[0])
        if river := re.search(r"the (River \w+)\?", question):
            [town] = [t for t in self.texts if f"the {river[1]}." in self.texts[t]]
            self.used.append(town)
        else:
            town = re.search(r"mayor of (\w+) in", question)[1]
        [holder] = [
            title
            for title, text in self.texts.items()
            if (m := TERM.search(text)) and m[1] == town and int(m[2]) <= year <= int(m[3])
        ]
        self.used.append(holder)
        return holder

    def compare(self, question):
        found = re.fullmatch(r"Which (.+) (earlier|later), (?:the )?(.+) or (?:the )?(.+)\?", question)
        if found is None:
            return None
        names = [found[3], found[4]]
        if found[1].startswith("book"):
            names = re.fullmatch(r".*(?:earlier|later), (.+) or (.+)\?", question).groups()
        years = {name: int(self.follow(name, COMPARED[found[1]])) for name in names}
        return (min if found[2] == "earlier" else max)(years, key=years.get)

    def rank(self, question):
        found = re.search(r"(?:built|written|designed|book) by (.+?) (?:was|that was|set|cross)\b", question)
        if found is None or not re.search(r"(first|last)\?$", question):
            return None
        [(year, link)] = [(y, link) for y, link in RANKED.items() if f" {y} " in question]
        members = {t: int(self.fact(t, year)) for t in self.texts if f" {found[1]}." in self.texts[t]}
        assert all(self.fact(t, link) == found[1] for t in members)
        best = (min if question.endswith("first?") else max)(members, key=members.get)
        for words, relation in (
            ("Who is the captain", "captain"),
            ("In which town", "scene"),
            ("Which river", "spans"),
        ):
            if question.startswith(words):
                return self.fact(best, relation)
        return best


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_answer_and_its_sources_follow_from_the_documents_alone(seed):
    store = RESEARCH.tasks(seed=seed, n=100, path=None)
    for task in store.tasks:
        reader, sealed = Reader(task.public), store.sealed[task.id].values
        assert reader.answer() == sealed["answer"], task.public["question"]
        ids = {d["title"]: d["id"] for d in task.public["documents"]}
        assert {ids[title] for title in reader.used} == set(sealed["supporting"]), task.public["question"]


def test_every_answer_stands_in_a_supporting_document_and_rivals_stand_elsewhere_or_in_the_question():
    for task in STORE.tasks:
        sealed = STORE.sealed[task.id].values
        texts = {d["id"]: d["text"] for d in task.public["documents"]}
        assert any(says(texts[name], sealed["answer"]) for name in sealed["supporting"])
        assert sealed["answer"] not in sealed["rivals"]
        assert not any(says(rival, sealed["answer"]) or says(sealed["answer"], rival) for rival in sealed["rivals"])


def test_the_same_seed_gives_the_same_tasks_and_another_seed_others():
    def dump(seed):
        store = RESEARCH.tasks(seed=seed, n=100, path=None)
        return [
            canonical_json([t.id, t.hash, t.public, store.sealed[t.id].values, store.answers[t.id].text.reference])
            for t in store.tasks
        ]

    assert dump(0) == dump(0)
    assert not set(dump(0)) & set(dump(1))


def test_a_fifth_is_easy_a_fifth_is_hard_and_no_two_tasks_are_the_same():
    assert Counter(t.difficulty for t in STORE.tasks) == {"easy": 20, "standard": 60, "hard": 20}
    assert Counter(t.difficulty for t in RESEARCH.tasks(seed=3, n=20, path=None).tasks) == {
        "easy": 4,
        "standard": 12,
        "hard": 4,
    }
    keys = {canonical_json([t.public, STORE.sealed[t.id].values["answer"]]) for t in STORE.tasks}
    questions = {t.public["question"] for t in STORE.tasks}
    assert len(keys) == len(questions) == 100
    assert STORE.tasks[20].id == "standard-000"


def test_six_templates_each_in_training_and_evaluation():
    split = split_tasks(STORE.tasks)
    assert len({t.template for t in split}) == 6
    assert len({(t.template, t.split) for t in split}) == 12


def test_harder_tasks_have_more_documents_more_sources_and_more_slots():
    def mean(figure):
        return [
            sum(figure(t) for t in STORE.tasks if t.difficulty == d) / sum(t.difficulty == d for t in STORE.tasks)
            for d in ("easy", "standard", "hard")
        ]

    for figure in (
        lambda t: len(t.public["documents"]),
        lambda t: sum(len(d["text"]) for d in t.public["documents"]),
        lambda t: len(STORE.sealed[t.id].values["supporting"]),
        lambda t: len(STORE.answers[t.id].text.slots),
    ):
        easy, standard, hard = mean(figure)
        assert easy < standard < hard
    assert all(3 <= len(STORE.answers[t.id].text.slots) <= 8 for t in STORE.tasks)
    assert all(6 <= len(t.public["documents"]) <= 20 for t in STORE.tasks)
    assert all(2 <= d["text"].count(".") <= 5 for t in STORE.tasks for d in t.public["documents"])


def test_slots_name_evidence_that_holds_what_they_need():
    for task in STORE.tasks:
        supporting = STORE.sealed[task.id].values["supporting"]
        answer, *rest = STORE.answers[task.id].text.slots
        assert {name for name in answer.helped_by if name.startswith("doc-")} == set(supporting)
        assert all(
            set(slot.helped_by) <= {*supporting, *(s.replace("doc", "hit") for s in supporting)} for slot in rest
        )
        assert read_draft(STORE.answers[task.id].text.reference).citations == tuple(supporting)


def test_questions_and_documents_do_not_carry_the_seal():
    for task in STORE.tasks:
        assert set(task.public) == {"question", "kind", "documents"}
        assert all(set(d) == {"id", "title", "text", "lead"} for d in task.public["documents"])
