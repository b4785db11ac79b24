"""A seeded stand-in for a model: real prompts in, real text out, no key and no network.

It plays the model, so it may know the answer of a task (from the task store, as `Answer`), and writes it with
concrete faults. What it does is a pure function of (request, task, draw key): everything it can use is read
from the prompt it is sent, as a model would: evidence, tool results, the draft, the problems named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from harness_mdp.executors.protocol import Completion, Purpose, Request
from harness_mdp.executors.reply import estimated_tokens
from harness_mdp.executors.skill import SkillProfile
from harness_mdp.hashing import generator
from harness_mdp.settings.prompts import bracketed_ids, read_sections
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer

__all__ = ["SimulatedExecutor"]

GARBLED = "I am sorry, I would need more information to do that."


class SimulatedExecutor:
    """Writes, reviews and revises with the faults of a `SkillProfile`."""

    def __init__(self, profile: SkillProfile, answers: Mapping[str, Answer], difficulties: Mapping[str, str]) -> None:
        """Args:
        profile: how often it goes wrong, where a task's `Answer.skill` says nothing else.
        answers: by task id, from the task store.
        difficulties: `easy`, `standard` or `hard` by task id.
        """
        self.profile = profile
        self._answers = answers
        self._difficulties = difficulties
        self._fingerprint = f"simulated-{profile.name}-v{profile.version}-{profile.fingerprint}"

    @property
    def fingerprint(self) -> str:
        """Profile name, version and a hash of its figures."""
        return self._fingerprint

    @property
    def simulated(self) -> bool:
        """True: figures made with it say so."""
        return True

    async def complete(self, request: Request) -> Completion:
        """Reply to `request`; never fails, costs nothing, takes no time worth counting."""
        text = self._reply(request)
        return Completion(
            text=text,
            prompt_tokens=sum(estimated_tokens(len(message.content)) for message in request.messages),
            completion_tokens=estimated_tokens(len(text)),
            cost_usd=0.0,
            seconds=0.0,
            finish_reason="stop",
            model=self.fingerprint,
        )

    async def close(self) -> None:
        """Nothing to release."""

    def _reply(self, request: Request) -> str:
        rng = generator("simulated", request.key(self.fingerprint))
        answer = self._answers[request.task_id]
        sections = read_sections(request.messages)
        profile = answer.skill or self.profile
        if rng.random() < profile.garble:
            return GARBLED
        match request.purpose:
            case Purpose.DRAFT:
                return answer.text.reply(self._draft(profile, request, answer.text, sections, rng))
            case Purpose.REVISE:
                return answer.text.reply(self._revise(profile, request, answer.text, sections, rng))
            case Purpose.CHECK:
                return self._review(profile, answer.text, sections, rng)
            case Purpose.TOOL:
                return self._choose_tool(profile, answer, sections, rng)

    def _draft(
        self,
        profile: SkillProfile,
        request: Request,
        text: SlottedText,
        sections: Mapping[str, str],
        rng: np.random.Generator,
    ) -> list[int]:
        at_hand = set(bracketed_ids(sections.get("Evidence", "")))
        at_hand.update(bracketed_ids(sections.get("Tool results", "")))
        base = profile.fault(self._difficulties[request.task_id])
        chances = [
            self._fault_chance(profile, base, slot, index, at_hand, request.task_hash)
            for index, slot in enumerate(text.slots)
        ]
        faulty = rng.random(len(chances)) < np.array(chances)
        return [_wrong(slot, rng) if bad else 0 for slot, bad in zip(text.slots, faulty, strict=True)]

    def _fault_chance(
        self, profile: SkillProfile, base: float, slot: Slot, index: int, at_hand: set[str], task_hash: str
    ) -> float:
        """Base chance, shifted by the slot's own difficulty, relieved by the evidence at hand."""
        own = generator("slot", profile.name, task_hash, index).normal() * profile.slot_spread
        chance = 1.0 / (1.0 + math.exp(-(math.log(base / (1.0 - base)) + own)))
        if slot.helped_by:
            share = sum(name in at_hand for name in slot.helped_by) / len(slot.helped_by)
        else:
            share = len(at_hand) / (len(at_hand) + 1)
        return chance * (1.0 - profile.evidence_relief * share)

    def _revise(
        self,
        profile: SkillProfile,
        request: Request,
        text: SlottedText,
        sections: Mapping[str, str],
        rng: np.random.Generator,
    ) -> list[int]:
        choices = text.read(sections.get("Draft", ""))
        if choices is None:  # a draft that it did not write: start over
            return self._draft(profile, request, text, sections, rng)
        listed = [line.removeprefix("- ") for line in sections.get("Problems", "").splitlines()]
        own_words = {slot.problem for slot in text.slots}
        shown = any(line not in own_words for line in listed)
        draws = rng.random(len(choices))
        revised: list[int] = []
        for slot, choice, draw in zip(text.slots, choices, draws, strict=True):
            if choice == 0:
                revised.append(_wrong(slot, rng) if draw < profile.breaks else 0)
            else:
                revised.append(0 if draw < self._repair_chance(profile, slot, listed, shown) else choice)
        return revised

    def _repair_chance(self, profile: SkillProfile, slot: Slot, listed: list[str], shown: bool) -> float:
        if slot.problem in listed:
            return profile.repair_named
        return profile.repair_shown if shown else profile.repair_blind

    def _review(
        self, profile: SkillProfile, text: SlottedText, sections: Mapping[str, str], rng: np.random.Generator
    ) -> str:
        choices = text.read(sections.get("Draft", ""))
        if choices is None:
            return "OK"
        chances = [profile.review_hit if choice else profile.review_alarm for choice in choices]
        named = rng.random(len(chances)) < np.array(chances)
        lines = [f"- {slot.problem}" for slot, flag in zip(text.slots, named, strict=True) if flag]
        return "\n".join(lines) or "OK"

    def _choose_tool(
        self, profile: SkillProfile, answer: Answer, sections: Mapping[str, str], rng: np.random.Generator
    ) -> str:
        done = sections.get("Tool results", "")
        missing = [call for call in answer.tool_calls if call not in done]
        if answer.wrong_tool_calls and rng.random() < profile.tool_slip:
            return answer.wrong_tool_calls[int(rng.integers(len(answer.wrong_tool_calls)))]
        return (missing or list(answer.tool_calls[-1:]) or ["none"])[0]


def _wrong(slot: Slot, rng: np.random.Generator) -> int:
    return 1 + int(rng.integers(len(slot.wrong)))
