"""The dataset card as Markdown, with the front matter that dataset hubs read.

What stands in it came from users and models (policy names, labels, licences): it is shown as text, never as markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from buffers.card import MODEL
from harness_mdp.hashing import Json

__all__ = ["card_text", "plain"]

_MARKUP = re.compile(r"([\\`*{}\[\]<>#|~$&!])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def plain(value: Json) -> str:
    """`value` as one line of Markdown that shows it literally; None is a dash."""
    return "-" if value is None else _MARKUP.sub(r"\\\1", _CONTROL.sub(" ", str(value)))


def card_text(card: Mapping[str, Json]) -> str:
    """The README of a card."""
    totals, parts = card["totals"], [*_front_matter(card), "# Episodes of a frozen LLM agent", ""]
    parts += [
        "One row an episode: a task, a policy that chose the structural actions (observe, retrieve, call_tool, draft, "
        "check, revise, submit), the executor's work, and the return of a sealed rubric. Every step has its legal "
        "actions, the base action, and the behaviour policy's full distribution, so that another policy can be learned "
        "from it and judged on it. Made with harness-mdp; format: row schema version "
        f"{card['schema_version']}.",
        "",
        *_warnings(card),
        "## How many",
        "",
        f"{totals['episodes']} episodes, {totals['steps']} steps, {totals['tokens']} tokens, {_cost(totals)}.",
        "",
        *_table(card["counts"], ("setting", "phase", "split", "eval_status", "episodes")),
        _missing(card),
        "Ended by: " + (", ".join(f"{plain(k)} {n}" for k, n in card["terminations"].items()) or "-") + ".",
        "",
        "## Settings and licences of their tasks",
        "",
        *_table(
            card["settings"],
            ("setting", "setting_version", "horizon", "token_budget", "usd_budget", "tasks", "episodes", "steps"),
        ),
        *(f"- {plain(setting)}: {plain(licence)}" for setting, licence in card["licences"].items()),
        "",
        "## Who acted: executor",
        "",
        *_table(card["models"], ("fingerprint", "simulated", *MODEL, "episodes")),
        "## Who acted: policies",
        "",
        *_table(
            card["policies"],
            ("setting", "phase", "policy", "policy_fingerprint", "episodes", "invalid", "mean_return"),
        ),
        "Propensities: " + (", ".join(f"{plain(k)} {n}" for k, n in card["propensities"].items()) or "-") + ".",
        "",
        "## Made by",
        "",
        *_table(card["runs"], ("run", "phase", "episodes", "git_commit")),
        *_versions(card["runs"]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _front_matter(card: Mapping[str, Json]) -> list[str]:
    """YAML of quoted strings, which JSON's are."""
    licences = sorted({part.split(" ")[0].lower() for text in card["licences"].values() for part in text.split("; ")})
    known = [name for name in licences if re.fullmatch(r"[a-z0-9.-]+", name) and name != "not"] or ["unknown"]
    tags = [
        "offline-reinforcement-learning",
        "llm-agents",
        "harness-mdp",
        *(["simulated"] if card["simulated"] else []),
    ]
    return [
        "---",
        'pretty_name: "Episodes of a frozen LLM agent"',
        f"license: {json.dumps(known)}",
        f"tags: {json.dumps(tags)}",
        "---",
        "",
    ]


def _warnings(card: Mapping[str, Json]) -> list[str]:
    lines: list[str] = []
    if card["simulated"]:
        every = all(model["simulated"] for model in card["models"])
        whose = "The executor is" if every else "One of the executors is"
        lines.append(f"> **Simulated.** {whose} a seeded stand-in for a model; no figure of it is one of a model.")
    if len(card["executors"]) > 1:
        lines.append(f"> **{len(card['executors'])} executors** acted here; learn from one, named by its fingerprint.")
    if "estimated" in card["propensities"]:
        lines.append("> **Estimated propensities.** Some were not logged; off-policy estimates rest on the estimate.")
    return [line for each in lines for line in (each, "")]


def _missing(card: Mapping[str, Json]) -> str:
    missing: Mapping[str, int] = card["infra_missing"]
    by = ", ".join(f"{plain(setting)} {n}" for setting, n in missing.items())
    return (
        f"infra_missing: {sum(missing.values())}{f' ({by})' if by else ''}; attempted, failed for reasons outside the "
        "agent, and so without a return: no row.\n"
    )


def _cost(sums: Mapping[str, Json]) -> str:
    return "price unknown" if sums["cost_usd"] is None else f"{sums['cost_usd']:.4f} USD"


def _table(rows: Sequence[Mapping[str, Json]], names: Sequence[str]) -> list[str]:
    """A table of the columns that any row has."""
    there = [name for name in names if any(row.get(name) is not None for row in rows)] or list(names)
    lines = [there, ["---"] * len(there), *([_shown(row.get(name)) for name in there] for row in rows)]
    return [*(f"| {' | '.join(cells)} |" for cells in lines), ""]


def _shown(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4f}" if isinstance(value, float) else plain(value)


def _versions(runs: Iterable[Mapping[str, Json]]) -> list[str]:
    """Every version that any run recorded."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, number in run["versions"].items():
            found.setdefault(name, set()).add(str(number))
    if not found:
        return ["Versions: not recorded."]
    return [f"Versions: {', '.join(f'{plain(name)} {_either(found[name])}' for name in sorted(found))}."]


def _either(numbers: Iterable[str]) -> str:
    return " and ".join(plain(number) for number in sorted(numbers))
