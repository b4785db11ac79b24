"""How an episode of `research` goes: what is seen when, what opens, what a check and a claim say, and the grade."""

import asyncio

import pytest

from harness_mdp.errors import ConfigError
from harness_mdp.executors.protocol import Completion
from harness_mdp.mdp import Action, Status, advance, legal_mask, start
from harness_mdp.scoring.rubric import rubric_value
from harness_mdp.settings.acting import act
from harness_mdp.settings.prompts import bracketed_ids, read_sections
from harness_mdp.settings.protocol import Workspace
from harness_mdp.settings.research import Research
from harness_mdp.settings.scripts import script_policy
from tests.runs import run, simulated

RESEARCH = Research()
STORE = RESEARCH.tasks(seed=0, n=100, path=None)


def pick(template, difficulty="standard"):
    return next(t for t in STORE.tasks if t.template == template and t.difficulty == difficulty)


def sealed(task):
    return STORE.sealed[task.id].values


class Play:
    """Carries out actions with replies given in advance; keeps state and prompts."""

    def __init__(self, task, *replies):
        self.workspace, self.replies, self.prompts = Workspace(task), list(replies), []
        self.state = start(RESEARCH.horizon, RESEARCH.budgets)

    async def ask(self, purpose, messages):
        self.prompts.append(messages)
        return Completion(self.replies.pop(0), 1, 1, None, 0.0, "stop", "fixed")

    def act(self, *actions):
        for action in actions:
            event = asyncio.run(act(RESEARCH, action, self.workspace, self.ask))
            self.state = advance(self.state, event)
        return event

    def flags(self):
        return dict(zip(RESEARCH.schema.flags, RESEARCH.flags(self.state), strict=True))


def quality(task, reply):
    return rubric_value(asyncio.run(RESEARCH.criteria(task, STORE.sealed[task.id], RESEARCH.parse(reply))))


def test_observe_tells_what_is_wanted_then_the_titles_then_nothing():
    task = pick("bridge")
    play = Play(task)
    assert play.act(Action.OBSERVE).evidence == ("asked",)
    assert play.act(Action.OBSERVE).evidence == ("titles",)
    assert play.act(Action.OBSERVE).evidence == ()
    assert all(d["title"] in play.workspace.evidence["titles"] for d in task.public["documents"])


def test_retrieve_brings_at_most_three_hits_at_a_time_the_best_first_until_the_corpus_is_exhausted():
    for task in STORE.tasks[::20]:
        play = Play(task)
        brought = [play.act(Action.RETRIEVE).evidence for _ in range(len(task.public["documents"]) + 1)]
        assert brought[-1] == ()
        assert all(len(names) <= 3 for names in brought)
        assert sum(map(len, brought)) == len(task.public["documents"]) == len(play.state.evidence)


def test_documents_much_less_like_the_question_than_the_best_wait_for_the_next_retrieve():
    def first(template, difficulty="standard"):
        tasks = [t for t in STORE.tasks if t.template == template and t.difficulty == difficulty]
        return [len(Play(task).act(Action.RETRIEVE).evidence) for task in tasks]

    assert first("one_hop_name", "easy").count(1) > 5  # the question names the only document that matters
    assert first("superlative").count(3) > 5  # all members of a group are alike


def test_the_document_of_a_one_hop_question_is_found_first():
    for task in STORE.tasks:
        if task.template.startswith("one_hop"):
            play = Play(task)
            play.act(Action.RETRIEVE)
            assert play.act(Action.CALL_TOOL).evidence == tuple(sealed(task)["supporting"]), task.public["question"]


def test_opening_follows_names_met_in_open_documents_to_the_end_of_the_chain():
    for difficulty in ("standard", "hard"):
        for task in STORE.tasks:
            if task.template == "bridge" and task.difficulty == difficulty:
                play = Play(task)
                for _ in sealed(task)["supporting"]:
                    play.act(Action.RETRIEVE, Action.CALL_TOOL)
                opened = [name for name in play.workspace.evidence if name.startswith("doc-")]
                assert opened == sealed(task)["supporting"], task.public["question"]


def test_a_call_with_nothing_left_to_open_is_a_tool_error_and_needs_a_hit_to_be_legal():
    play = Play(pick("comparison"))
    assert not legal_mask(RESEARCH.rules, play.state)[Action.CALL_TOOL]
    play.act(Action.RETRIEVE)
    assert legal_mask(RESEARCH.rules, play.state)[Action.CALL_TOOL]
    play.act(Action.CALL_TOOL, Action.CALL_TOOL, Action.CALL_TOOL)
    event = play.act(Action.CALL_TOOL)
    assert event.tool.failed
    assert event.evidence == ()
    assert play.state.tool_errors == 1


def test_tool_first_opens_what_was_found_and_never_calls_the_tool_in_vain():
    episodes = run(RESEARCH, STORE.tasks[::4], script_policy(RESEARCH, "tool_first"), simulated(STORE), STORE.sealed)
    calls = [[s.event for s in e.steps if s.action is Action.CALL_TOOL] for e in episodes]
    assert {len(events) for events in calls} == {1, 2}
    assert not any(event.tool.failed for events in calls for event in events)


def test_the_prompt_shows_hits_and_once_there_are_any_open_documents_alone():
    play = Play(pick("bridge"), *["Nowhere"] * 3)
    play.act(Action.DRAFT, Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.CALL_TOOL, Action.DRAFT)
    bare, hits, opened = map(read_sections, play.prompts)
    question = play.workspace.task.public["question"]
    assert bare["Task"] == question
    assert "Evidence" not in bare
    assert "in a few words" in bare["Instructions"]
    assert bracketed_ids(hits["Evidence"]) == tuple(name for name in play.state.evidence if name.startswith("hit-"))
    assert play.workspace.evidence["asked"].removeprefix("The answer is ").rstrip(".") in hits["Instructions"]
    assert bracketed_ids(opened["Evidence"]) == tuple(name for name in play.state.evidence if name.startswith("doc-"))
    assert "Draft" not in opened


def test_every_sentence_in_a_prompt_is_followed_by_its_document():
    task = pick("one_hop_name", "easy")
    play = Play(task, "Nowhere", "Nowhere")
    play.act(Action.OBSERVE, Action.OBSERVE, Action.RETRIEVE, Action.DRAFT, Action.CALL_TOOL, Action.DRAFT)
    [source] = sealed(task)["supporting"]
    [document] = [d for d in task.public["documents"] if d["id"] == source]
    hits, opened = (read_sections(prompt)["Evidence"] for prompt in play.prompts)
    assert f"[{source.replace('doc', 'hit')}] {document['lead'].rstrip('.')} ({source}).\n" in hits + "\n"
    assert opened == f"[{source}] " + document["text"].replace(".", f" ({source}).")
    assert play.workspace.evidence[source] == document["text"]


def test_the_longest_prompt_fits_a_very_small_model():
    for task in STORE.tasks:
        play = Play(task, "Answer: Nowhere\nSources:", "Answer: Nowhere\nSources:")
        play.act(Action.OBSERVE, Action.OBSERVE, *[Action.RETRIEVE] * 2, *[Action.CALL_TOOL] * 4, Action.DRAFT)
        play.act(Action.REVISE)
        assert sum(len(m.content) for m in play.prompts[-1]) < 4000  # about 1,000 tokens of 2,048


def test_the_check_passes_a_right_draft_once_its_sources_are_open_and_names_what_is_missing_before():
    task = pick("one_hop_name", "easy")
    right = STORE.answers[task.id].text.reference
    play = Play(task, right, "OK", "OK")
    play.act(Action.OBSERVE, Action.RETRIEVE, Action.DRAFT)
    [source] = sealed(task)["supporting"]
    before = play.act(Action.CHECK).check
    assert f"{source}: cited but not opened" in before.problems
    play.act(Action.CALL_TOOL)
    after = play.act(Action.CHECK).check
    assert after.problems == ()
    assert after.score == 1.0 > before.score


@pytest.mark.parametrize(
    ("draft", "problem"),
    [
        ("Answer: Nobody Atall\nSources:", "no source is cited"),
        ("Answer: Nobody Atall\nSources: [doc-99]", "doc-99: not in the corpus"),
        ("Answer: 1834\nSources: [doc-1]", "the answer is not the name of a person alone"),
    ],
)
def test_the_check_names_the_problem(draft, problem):
    task = next(t for t in STORE.tasks if t.public["kind"] == "person")
    play = Play(task, draft, "OK")
    play.act(Action.DRAFT)
    assert problem in play.act(Action.CHECK).check.problems


def test_claims_gain_support_as_documents_open_and_the_flags_follow():
    task = pick("bridge")
    play = Play(task, STORE.answers[task.id].text.reference)
    play.act(Action.DRAFT)
    assert [claim.supported for claim in play.state.claims] == [False] * 3
    assert not any(play.flags().values())
    play.act(Action.RETRIEVE)
    assert play.flags()["hits_unopened"]
    play.act(Action.CALL_TOOL)
    assert not play.flags()["hits_unopened"]
    play.act(Action.RETRIEVE, Action.RETRIEVE, Action.CALL_TOOL)
    assert [claim.supported for claim in play.state.claims] == [True] * 3
    assert play.flags() == {
        "document_open": True,
        "hits_unopened": True,
        "answer_found": True,
        "sources_open": True,
    }
    assert all(len(claim.text) <= 80 for claim in play.state.claims)


def test_the_reference_scores_one_and_every_single_fault_less():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        assert quality(task, text.reference) == 1.0
        for index, slot in enumerate(text.slots):
            for choice in range(1, len(slot.options)):
                choices = [0] * len(text.slots)
                choices[index] = choice
                assert RESEARCH.parse(text.reply(choices)) == text.render(choices)
                assert quality(task, text.reply(choices)) < 1.0
                assert text.read(text.render(choices)) == choices


def test_a_plausible_wrong_answer_with_perfect_sources_stays_below_a_half():
    for task in STORE.tasks:
        text = STORE.answers[task.id].text
        for choice in range(1, len(text.slots[0].options)):
            assert quality(task, text.render([choice] + [0] * (len(text.slots) - 1))) < 0.5


def test_the_rubric_is_blind_to_style():
    task = pick("one_hop_name", "easy")
    answer, [source] = sealed(task)["answer"], sealed(task)["supporting"]
    number = source.removeprefix("doc-")
    for reply in (
        f"answer:   {answer.upper()}.\n\nsources: {source}",
        f"**Answer:** the {answer}\n**Sources:** [{source}]",
        f'{{"citations": ["{source}"], "answer": "{answer}"}}',
        f"The answer that I found is {answer} [{source}].",
        f"Answer: It is {answer}.\nSource: Doc {number}",
    ):
        assert quality(task, reply) == 1.0, reply


def test_naming_rivals_hedging_denying_or_copying_earns_nothing_for_the_answer():
    task = pick("comparison")
    answer, rival = sealed(task)["answer"], STORE.answers[task.id].text.slots[0].wrong[0]
    for reply in (f"{answer} or {rival}", f"It is not {answer}", f"{answer} " + "and so on " * 20):
        criteria = asyncio.run(RESEARCH.criteria(task, STORE.sealed[task.id], RESEARCH.parse(f"Answer: {reply[:190]}")))
        assert criteria[0].score == 0.0, reply
    year = next(t for t in STORE.tasks if t.public["kind"] == "year")
    reply = f"Answer: {sealed(year)['answer']} or 2023"
    assert asyncio.run(RESEARCH.criteria(year, STORE.sealed[year.id], reply))[0].score == 0.0


def test_a_reply_that_cannot_be_read_is_a_failed_step_and_leaves_the_draft():
    play = Play(pick("bridge"), "Answer: Nowhere\nSources:", "I am sorry, I would need more information to do that.")
    play.act(Action.DRAFT)
    event = play.act(Action.REVISE)
    assert event.status is Status.ERROR
    assert play.workspace.version == 1


def test_a_path_is_refused_because_there_are_no_benchmark_files(tmp_path):
    with pytest.raises(ConfigError, match=r"setting\.path"):
        RESEARCH.tasks(seed=0, n=10, path=tmp_path)
    with pytest.raises(ConfigError, match="at least 1"):
        RESEARCH.tasks(seed=0, n=0, path=None)


def test_simulated_episodes_run_to_the_end_and_returns_spread():
    returns = {}
    for name in RESEARCH.scripts:
        episodes = run(
            RESEARCH, STORE.tasks[::5], script_policy(RESEARCH, name), simulated(STORE), STORE.sealed, rollouts=2
        )
        returns[name] = [e.return_ for e in episodes]
        assert all(0.0 <= value <= 1.0 for value in returns[name])
    mean = sum(returns["base"]) / len(returns["base"])
    assert 0.15 < mean < 0.95
    assert len({round(value, 3) for value in returns["base"]}) > 5


def test_open_documents_make_simulated_drafts_better():
    def mean(name):
        episodes = run(RESEARCH, STORE.tasks, script_policy(RESEARCH, name), simulated(STORE), STORE.sealed, rollouts=2)
        return sum(e.return_ for e in episodes) / len(episodes)

    assert mean("tool_first") > mean("base")
