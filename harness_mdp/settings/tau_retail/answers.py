"""What the simulated executor knows of a task: the right draft, with the places where an agent goes wrong.

A right draft identifies the customer, makes the calls that change data, and says the required outputs; look-ups
and calls that fail on purpose are left out, since they change nothing. Slots are arguments of those calls, a call
left out, a call that nobody asked for, and the outputs. Every wrong piece is tried: one that leaves the native
score at 1 is no fault and is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness_mdp.hashing import canonical_json
from harness_mdp.settings.protocol import Evidence
from harness_mdp.settings.slots import Slot, SlottedText
from harness_mdp.settings.tasks import Answer
from harness_mdp.settings.tau_retail.data import Database, Shop
from harness_mdp.settings.tau_retail.draft import Call, call_json, play
from harness_mdp.settings.tau_retail.faults import FaultFinder, wrong_output
from harness_mdp.settings.tau_retail.lookup import lookup_rounds
from harness_mdp.settings.tau_retail.scoring import native_score, sealed_values
from harness_mdp.settings.tau_retail.tools import TOOLS, TRANSFER

__all__ = ["MAX_SLOTS", "MIN_SLOTS", "answer"]

MIN_SLOTS = 3
MAX_SLOTS = 8
_MAX_OUTPUT_SLOTS = 3
_CALL = ',{"'
"""How a whole call begins in the list of calls."""

Part = str | Slot
_Check = Callable[[str], bool]


def answer(
    base: Database,
    user_id: str,
    instruction: str,
    actions: Sequence[Call],
    outputs: Sequence[str],
    seen: Sequence[Evidence],
) -> Answer:
    """The answer of a task; `seen` is what `observe` can bring."""
    found = [item for part in lookup_rounds(base, instruction) for item in part]
    texts = {item.id: item.text for item in (*seen, *found)}
    return Answer(_Writer(base, user_id, instruction, tuple(actions), tuple(outputs), texts).text())


@dataclass(frozen=True)
class _Writer:
    base: Database
    user_id: str
    instruction: str
    actions: tuple[Call, ...]
    outputs: tuple[str, ...]
    texts: dict[str, str]
    """Evidence that can be gathered, by id."""

    def text(self) -> SlottedText:
        ran = play(Shop(self.base), self.actions, ends_at_transfer=False)
        writes = [entry.call for entry in ran if entry.outcome.ok and TOOLS[entry.call.name].writes]
        faults = FaultFinder(self.base, self.user_id, self.texts, tuple(writes))
        transfers = [entry.call for entry in ran if entry.call.name == TRANSFER and entry.outcome.ok][:1]
        tail = [f",{call_json(call.name, call.arguments)}" for call in transfers]
        said = self._respond()
        calls = [
            self._pruned(faults.call_parts(number, call), number, writes, tail) for number, call in enumerate(writes)
        ]
        room = MAX_SLOTS - 1 - _n_slots(said)
        listed: list[Part] = [part for parts in self._collapsed(calls, writes, faults, room) for part in parts]
        listed += self._extras(faults, listed, tail, said, MIN_SLOTS - _n_slots([*listed, *said]))
        return self._assemble(_distinct(listed), tail, said)

    def _assemble(self, listed: Sequence[Part], tail: Sequence[str], said: Sequence[Part]) -> SlottedText:
        parts = ['{"calls":[', self._identify(), *listed, *tail, '],"respond":"', *said, '"}']
        return _effective(SlottedText(_joined(parts), fence="json"), self._scores_one)

    def _scores_one(self, text: str) -> bool:
        return native_score(self.base, sealed_values(self.actions, self.outputs), text) == 1.0

    def _identify(self) -> str:
        user = self.base.users[self.user_id]
        if user["email"].lower() in self.instruction.lower():
            return call_json("find_user_id_by_email", {"email": user["email"]})
        return call_json("find_user_id_by_name_zip", {**user["name"], "zip": user["address"]["zip"]})

    def _respond(self) -> list[Part]:
        if not self.outputs:
            return ["All that you asked for and that the policy allows is done."]
        parts: list[Part] = ["Done as far as the policy allows. You asked for: "]
        for number, output in enumerate(self.outputs):
            parts.append("; " if number else "")
            wrong = tuple(_escaped(text) for text in wrong_output(output))
            holding = tuple(name for name, text in self.texts.items() if output.lower() in text.lower())[:2]
            slot = Slot(_escaped(output), wrong, f"what is said about question {number + 1} may be wrong", holding)
            parts.append(slot if number < _MAX_OUTPUT_SLOTS else slot.correct)
        return [*parts, "."]

    def _pruned(self, parts: list[Part], number: int, writes: Sequence[Call], tail: Sequence[str]) -> list[Part]:
        """Call `number` with only those faults that lower the score, all else being right."""
        before = [f",{call_json(call.name, call.arguments)}" for call in writes[:number]]
        after = [f",{call_json(call.name, call.arguments)}" for call in writes[number + 1 :]]
        said = [part.correct if isinstance(part, Slot) else part for part in self._respond()]
        whole = self._assemble([*before, *parts, *after], tail, said)
        kept = iter(whole.slots)
        current = next(kept, None)
        pruned: list[Part] = []
        for part in parts:
            if isinstance(part, Slot) and current is not None and part.problem == current.problem:
                pruned.append(current)
                current = next(kept, None)
            else:
                pruned.append(part.correct if isinstance(part, Slot) else part)
        return pruned

    def _collapsed(
        self, calls: list[list[Part]], writes: Sequence[Call], faults: FaultFinder, room: int
    ) -> list[list[Part]]:
        """With several calls, some become one slot each (left out, or one argument wrong), so that slots fit `room`."""
        calls = list(calls)
        whole: set[int] = set()
        if len(calls) > 1:
            whole.add(len(calls) - 1)
        while len(whole) < len(calls) and _total(calls, whole) > room:
            whole.add(max((i for i in range(len(calls)) if i not in whole), key=lambda i: (_n_slots(calls[i]), i)))
        for number in sorted(whole):
            calls[number] = [faults.whole_call(number, writes[number], calls[number])]
        for number in range(max(0, len(whole) - room)):  # more calls than slots: the first are simply right
            calls[number] = [f",{call_json(writes[number].name, writes[number].arguments)}"]
        return calls

    def _extras(
        self, faults: FaultFinder, listed: Sequence[Part], tail: Sequence[str], said: Sequence[Part], wanted: int
    ) -> list[Part]:
        """At least one slot that is empty when right: a call that nobody asked for."""
        extras: list[Part] = []
        for slot in faults.unasked_calls():
            if len(extras) >= max(1, wanted):
                break
            kept = self._assemble([*map(_right, listed), slot], tail, [*map(_right, said)])
            extras += kept.slots
        return extras


def _effective(text: SlottedText, scores_one: _Check) -> SlottedText:
    """Without wrong pieces that are no fault; a slot without wrong pieces becomes plain text."""
    n = len(text.slots)
    kept: list[Part] = []
    number = 0
    for part in text.parts:
        if not isinstance(part, Slot):
            kept.append(part)
            continue
        wrong = tuple(
            piece
            for index, piece in enumerate(part.wrong, start=1)
            if not scores_one(text.render([index if i == number else 0 for i in range(n)]))
        )
        kept.append(Slot(part.correct, wrong, part.problem, part.helped_by) if wrong else part.correct)
        number += 1
    return SlottedText(_joined(kept), fence=text.fence)


def _distinct(listed: Sequence[Part]) -> list[Part]:
    """No call twice among the slots that hold whole calls: the same text must not come from two choices."""
    taken = {part.correct for part in listed if isinstance(part, Slot) and part.correct.startswith(_CALL)}
    kept: list[Part] = []
    for part in listed:
        if isinstance(part, Slot) and any(piece.startswith(_CALL) for piece in part.options):
            wrong = tuple(piece for piece in part.wrong if piece not in taken)
            taken.update(piece for piece in wrong if piece)
            kept.append(Slot(part.correct, wrong, part.problem, part.helped_by) if wrong else part.correct)
        else:
            kept.append(part)
    return kept


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Neighbouring plain texts as one."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _right(part: Part) -> str:
    return part.correct if isinstance(part, Slot) else part


def _n_slots(parts: Sequence[Part]) -> int:
    return sum(isinstance(part, Slot) for part in parts)


def _total(calls: Sequence[Sequence[Part]], whole: set[int]) -> int:
    return sum(1 if number in whole else _n_slots(parts) for number, parts in enumerate(calls))


def _escaped(text: str) -> str:
    return canonical_json(text)[1:-1]
