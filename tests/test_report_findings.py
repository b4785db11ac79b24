"""The headline says what was shown and no more, and the sentences under it cannot be taken for intervals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from analysis.comparison import compare
from analysis.report.cautions import in_words
from analysis.report.evaluated import Evaluated
from analysis.report.families import Family
from analysis.report.findings import finding_of
from analysis.verdict import verdicts
from tests.arms import frame, rows

RULE = "check_revise"
SETTINGS = ("coding", "planning")


def helped(*gains: float, rule: float = 0.1):
    """What is said of a learner with so much more quality than base in each setting, exact to a thousandth or so."""
    parts = [
        rows(arm, gain, setting=setting)
        for setting, learned in zip(SETTINGS, gains, strict=False)
        for arm, gain in (("base", 0.0), (RULE, rule), ("aw", learned))
    ]
    noise = np.random.default_rng(0).normal(0, 0.001, sum(map(len, parts)))
    episodes = frame(*parts).with_columns(pl.col("return") / 2 + 0.2 + pl.Series(noise))
    arms = ("base", RULE, "aw")
    keys = {"base": None, RULE: None, "aw": "aw"}
    evaluations = tuple(
        Evaluated(0, name, name, ("eval-1",), "simulated-weak-v1", arms, ("aw",), keys, episodes, ())
        for name in SETTINGS[: len(gains)]
    )
    comparison = compare(episodes, "base", draws=300)
    family = Family("", evaluations, comparison, None, verdicts(episodes, ["aw"], RULE), ())
    return finding_of(family, RULE).helped


@pytest.mark.parametrize(
    ("gains", "rule", "headline"),
    [
        ((0.2, 0.2), 0.1, "Yes: aw beats check_revise in every setting"),
        ((0.2, 0.0), 0.1, "In places: aw beats check_revise in 1 of 2 settings, and is worse in 1"),
        ((0.1, 0.0), 0.1, "No evidence that learning beats check_revise"),
        ((0.0, 0.0), 0.1, "No: every learned controller is worse than check_revise"),
        ((-0.2, -0.2), -0.3, "No: what beats check_revise is not above base"),
    ],
)
def test_the_headline_says_what_was_shown(gains, rule, headline) -> None:
    assert helped(*gains, rule=rule).word == headline


def test_a_range_over_settings_is_called_one() -> None:
    said = helped(0.2, -0.1).sentences
    (told,) = [sentence for sentence in said if sentence.startswith("aw against check_revise")]
    assert told.startswith("aw against check_revise: better in 1 and worse in 1 of 2 settings, differences from −0.1")
    assert "[" not in told
    assert helped(0.2).sentences[0].startswith("check_revise against base: better (+0.0")


def test_notes_of_statistics_are_put_into_words() -> None:
    assert in_words("mean: zero variance; delta: open end") == (
        "mean: the same in every task; difference: nearly the same in every task"
    )
